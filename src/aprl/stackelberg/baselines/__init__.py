"""What sample-efficient MAL is compared with; all learn through `aprl.stackelberg.runner`."""
