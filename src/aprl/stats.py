"""Counts and intervals: a win rate never travels without them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
        half = student_quantile(self.count - 1) * self.std / math.sqrt(self.count)
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.1f} [{low:.1f}, {high:.1f}] ({self.count})"


def student_quantile(degrees: int, z: float = Z_95) -> float:
    """Quantile of Student's t from that of the normal distribution.

    By Hill's algorithm 396 (Communications of the ACM, 1970), correct to 4 digits from 3 degrees
    of freedom on; exact for 1 and 2.

    Args:
        degrees: of freedom, at least 1.
        z: the normal quantile; the default gives 95 %, two-sided.
    """
    if degrees < 1:
        raise ValueError(f"degrees of freedom must be at least 1, got {degrees}")
    two_tailed = math.erfc(z / math.sqrt(2))
    if degrees == 1:
        return 1 / math.tan(two_tailed * math.pi / 2)
    if degrees == 2:
        return math.sqrt(2 / (two_tailed * (2 - two_tailed)) - 2)
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * two_tailed) ** (2 / degrees)
    if y > 0.05 + a:
        y = z**2
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (z + 0.6)
        c += (((0.05 * d * z - 5) * z - 7) * z - 2) * z + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * z
        y = math.expm1(a * y**2)
    else:
        y = (
            (
                1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3)
                + 0.5 / (degrees + 4)
            )
            * y
            - 1
        ) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)
