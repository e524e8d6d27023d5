"""Potentials: functions of the state that shape a reward without changing what it asks for.

A potential phi turns a reward into r + gamma * phi(s') - phi(s), with phi = 0 in terminal states
(Ng, Harada and Russell, ICML 1999).
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from aprl.rewards.encoding import as_tensor


class Potential(nn.Module, ABC):
    """A function of the state.

    A subclass names its kind and rebuilds itself from its architecture, so that a file can hold it.
    """

    kind: ClassVar[str]

    @abstractmethod
    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Potential `(n,)` of `n` states, without the rule for terminal states.

        Args:
            states: raw or encoded, see `aprl.rewards.encoding`.
        """

    @abstractmethod
    def architecture(self) -> dict[str, Any]:
        """What `from_architecture` needs, as JSON types."""

    @classmethod
    @abstractmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """Build the potential with weights that are still to be loaded."""

    @abstractmethod
    def add_constant(self, constant: float) -> None:
        """Raise the potential by the same amount everywhere."""

    def fit_scale(self, states: np.ndarray, reward_scale: float) -> None:
        """Adapt to the data before training: `(n, ...)` states, and the size of the rewards."""

    @torch.no_grad()
    def of(self, states: np.ndarray) -> np.ndarray:
        """Potential `(n,)` of `(n, ...)` states as arrays."""
        return self(as_tensor(states)).numpy()


class LinearInParameters(Potential):
    """A potential phi(s) = features(s) . coefficients, which linear programming can find."""

    @abstractmethod
    def features(self, states: np.ndarray) -> sp.csr_matrix | np.ndarray:
        """Features `(n, k)` of `n` states."""

    @abstractmethod
    def coefficients(self) -> np.ndarray:
        """The coefficients `(k,)`, a copy."""

    @abstractmethod
    def set_coefficients(self, coefficients: np.ndarray) -> None:
        """Take `(k,)` coefficients of the features."""
