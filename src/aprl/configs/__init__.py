"""Named configurations: data only."""
