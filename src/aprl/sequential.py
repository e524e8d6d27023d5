"""Playing until a win rate is known well enough, with an interval that accounts for the looking.

Games are played in groups; after each, one looks whether the Wilson interval is narrow enough, and
stops if so. A Wilson or Clopper-Pearson interval computed as if the number of games had been fixed
covers the true rate less often than it says, since one stops where luck has made it narrow. Here
the interval is found by inverting tests under the plan that was really followed: outcomes of the
plan are ordered by the proportion of wins, and the limits are the rates at which what was observed
or something more extreme has probability 2.5 %, the observed outcome counted half (mid-p).
Jennison and Turnbull, Group Sequential Methods (2000), chapter 12.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from aprl.stats import wilson_interval

_ALPHA = 0.05


@dataclass(frozen=True)
class StoppingPlan:
    """When to look, and when to stop.

    Attributes:
        looks: numbers of games after which one looks, increasing; play ends with the last.
        width: of the 95 % interval, at which play stops.
    """

    looks: tuple[int, ...]
    width: float

    @classmethod
    def of(cls, width: float, most: int, first: int = 100, every: int = 50) -> "StoppingPlan":
        """Looks at `first`, then every `every` games, up to `most`.

        Raises:
            ValueError: a width outside (0, 1), or counts below 1.
        """
        if not 0 < width < 1 or min(most, first, every) < 1:
            raise ValueError(f"cannot plan for width {width}, {most} games, {first}, {every}")
        looks = [*range(min(first, most), most, every), most]
        return cls(tuple(looks), width)

    def stops(self, wins: int, games: int) -> bool:
        """Whether play ends after a look."""
        low, high = wilson_interval(wins, games)
        return games >= self.looks[-1] or high - low <= self.width

    @cached_property
    def _stopped(self) -> list[np.ndarray]:
        """Per look, where play stops: `(games + 1,)` bool by number of wins."""
        return [np.array([self.stops(s, n) for s in range(n + 1)]) for n in self.looks]

    def outcomes(self, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every way in which play can end, under a true win rate.

        Returns:
            Wins, games and probability of each, `(outcomes,)`.
        """
        wins, games, probabilities = [], [], []
        alive, before = np.ones(1), 0
        for number, stopped in zip(self.looks, self._stopped, strict=True):
            group = number - before
            step = binom.pmf(np.arange(group + 1), group, rate)
            alive = np.convolve(alive, step)
            ended = np.flatnonzero(stopped)
            wins.append(ended)
            games.append(np.full(len(ended), number))
            probabilities.append(alive[ended])
            alive = np.where(stopped, 0.0, alive)
            before = number
        return np.concatenate(wins), np.concatenate(games), np.concatenate(probabilities)

    def interval(self, wins: int, games: int) -> tuple[float, float]:
        """95 % interval of the rate, after play that followed this plan ended.

        Raises:
            ValueError: the plan does not end play there.
        """
        if games not in self.looks or not 0 <= wins <= games or not self.stops(wins, games):
            raise ValueError(f"{wins} of {games} games is not where the plan {self} stops")
        observed = wins / games

        def above(rate: float) -> float:
            """Probability of more than the observed proportion, and half that of the same."""
            found, of, probability = self.outcomes(rate)
            share = found / of
            same = np.abs(share - observed) < 1e-12
            return float(
                probability[(share > observed) & ~same].sum() + probability[same].sum() / 2
            )

        low = 0.0
        if wins > 0:
            low = brentq(lambda rate: above(rate) - _ALPHA / 2, 0.0, observed, xtol=1e-6)
        high = 1.0
        if wins < games:
            high = brentq(lambda rate: above(rate) - (1 - _ALPHA / 2), observed, 1.0, xtol=1e-6)
        return float(low), float(high)

    def coverage(self, rate: float) -> float:
        """Probability that the interval covers the true rate; exact but for unlikely outcomes."""
        total = 0.0
        for wins, games, probability in zip(*self.outcomes(rate), strict=True):
            if probability > 1e-6:
                low, high = self.interval(int(wins), int(games))
                total += float(probability) * (low <= rate <= high)
        return total
