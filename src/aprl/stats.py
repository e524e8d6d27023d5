"""Counts and intervals: a win rate never travels without them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

Z_95 = 1.959963984540054  # two-sided 95 % quantile of the standard normal


def wilson_interval(successes: float, trials: float, z: float = Z_95) -> tuple[float, float]:
    """Wilson (1927) score interval of a proportion.

    Args:
        successes: number of successes, 0 <= successes <= trials.
        trials: number of trials.
        z: normal quantile; the default gives 95 %.

    Returns:
        (low, high), both in [0, 1]; (0, 1) when there are no trials.

    Raises:
        ValueError: counts out of range.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials, got {successes} of {trials}")
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    denominator = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / denominator
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / denominator
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True)
class WinRate:
    """A proportion of games won, with its counts."""

    wins: int
    games: int

    @property
    def rate(self) -> float:
        """Fraction of games won; NaN before the first game."""
        return self.wins / self.games if self.games else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval."""
        return wilson_interval(self.wins, self.games)

    def __str__(self) -> str:
        low, high = self.interval
        percent = f"{100 * self.rate:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        return f"{percent} ({self.wins}/{self.games})"


def disjoint(a: WinRate, b: WinRate) -> bool:
    """Whether the two 95 % intervals do not overlap."""
    return a.interval[1] < b.interval[0] or b.interval[1] < a.interval[0]


@dataclass(frozen=True)
class MeanEstimate:
    """A mean of independent values, such as episode returns, with how many there were.

    Attributes:
        mean: of the values; NaN if there are none.
        std: sample standard deviation; NaN below 2 values.
        count: number of values.
    """

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanEstimate":
        """Estimate from values."""
        count = len(values)
        mean = math.fsum(values) / count if count else math.nan
        if count < 2:
            return cls(mean, math.nan, count)
        spread = math.fsum((value - mean) ** 2 for value in values)
        return cls(mean, math.sqrt(spread / (count - 1)), count)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval by Student's t; infinite below 2 values."""
        if self.count < 2:
            return -math.inf, math.inf
        half = float(stdtrit(self.count - 1, 0.975)) * self.std / math.sqrt(self.count)
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.1f} [{low:.1f}, {high:.1f}] ({self.count})"
