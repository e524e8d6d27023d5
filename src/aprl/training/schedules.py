"""Values that change over a run: learning rate, weight of the dense reward."""

from typing import Protocol

from aprl.errors import ConfigError


class Annealer(Protocol):
    """Maps the run's progress (0 at the start, 1 at the end of the *whole* run) to a value."""

    def __call__(self, progress: float) -> float:
        """The value at `progress`."""
        ...


class ConstantAnnealer:
    """Always the same value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, progress: float) -> float:
        """The value, whatever the progress."""
        return self.value


class LinearAnnealer:
    """From `start` to `end` over the first `end_frac` of the run, then `end`.

    Args:
        start: value at the start.
        end: value from `end_frac` on.
        end_frac: fraction of the run, in [0, 1]; 0 means `end` from the first step.

    Raises:
        ConfigError: `end_frac` outside [0, 1].
    """

    def __init__(self, start: float, end: float, end_frac: float) -> None:
        if not 0 <= end_frac <= 1:
            raise ConfigError(f"anneal_frac must be in [0, 1], got {end_frac}")
        self.start, self.end, self.end_frac = start, end, end_frac

    def __call__(self, progress: float) -> float:
        """Linear interpolation, clamped at `end`."""
        done = 1.0 if self.end_frac == 0 else min(1.0, progress / self.end_frac)
        return self.start + done * (self.end - self.start)
