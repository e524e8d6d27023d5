"""What makes a reward easy to read: few nonzero values, or few changes.

The four objectives of Jenner and Gleave (arXiv:2203.13553): means of |x| or log(1 + |x|) over the
rewards x themselves (sparse) or over differences of related rewards (smooth).
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch

from aprl.errors import unknown_name
from aprl.reward_preprocessing.transitions import Pairs, Transitions

_Array = TypeVar("_Array", np.ndarray, torch.Tensor)


@dataclass(frozen=True)
class Objective:
    """One objective.

    Attributes:
        name: as in configs and file names.
        label: as in figures.
        of: "rewards" themselves or "differences" of related ones.
        logarithmic: log(1 + |x|), which is not convex, instead of |x|.
    """

    name: str
    label: str
    of: Literal["rewards", "differences"]
    logarithmic: bool

    def weights(self, transitions: Transitions) -> tuple[np.ndarray, Pairs | None]:
        """The share of each term in the mean, and the pairs for an objective of differences."""
        if self.of == "rewards":
            return np.full(len(transitions), 1 / len(transitions)), None
        pairs = transitions.pairs()
        return pairs.weight, pairs

    def penalty(self, terms: _Array) -> _Array:
        """|x| or log(1 + |x|), elementwise."""
        size = abs(terms)
        if not self.logarithmic:
            return size
        return torch.log1p(size) if isinstance(size, torch.Tensor) else np.log1p(size)

    def value(self, rewards: np.ndarray, transitions: Transitions) -> float:
        """The objective of `(n,)` rewards on `n` transitions."""
        weights, pairs = self.weights(transitions)
        terms = rewards if pairs is None else rewards[pairs.first] - rewards[pairs.second]
        return float(weights @ self.penalty(terms))


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("sparse_l1", "Sparse (L1)", "rewards", logarithmic=False),
        Objective("smooth_l1", "Smooth (L1)", "differences", logarithmic=False),
        Objective("sparse_log", "Sparse (log)", "rewards", logarithmic=True),
        Objective("smooth_log", "Smooth (log)", "differences", logarithmic=True),
    )
}


def get_objective(name: str) -> Objective:
    """The objective of this name.

    Raises:
        ConfigError: there is none; the message lists near ones.
    """
    if name not in OBJECTIVES:
        raise unknown_name("objective", name, OBJECTIVES)
    return OBJECTIVES[name]
