"""Potentials that are linear in their parameters: exact linear programming applies to them."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from aprl.rewards.encoding import as_tensor
from aprl.rewards.potentials.base import LinearInParameters
from aprl.rewards.scaling import FixedScale


class TabularPotential(LinearInParameters):
    """One number per state, for environments whose states are numbered."""

    kind = "tabular"

    def __init__(self, num_states: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(num_states, dtype=torch.float64))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`; states are `(n,)` integers."""
        return self.values[states.argmax(dim=1) if states.is_floating_point() else states]

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        return {"kind": self.kind, "num_states": len(self.values)}

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        return cls(architecture["num_states"])

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self.values.add_(constant)

    def features(self, states: np.ndarray) -> sp.csr_matrix:
        """One-hot rows."""
        rows = (np.ones(len(states)), (np.arange(len(states)), states))
        return sp.csr_matrix(rows, (len(states), len(self.values)))

    def coefficients(self) -> np.ndarray:
        """See `LinearInParameters.coefficients`."""
        return self.values.detach().numpy().copy()

    @torch.no_grad()
    def set_coefficients(self, coefficients: np.ndarray) -> None:
        """See `LinearInParameters.set_coefficients`."""
        self.values.copy_(torch.as_tensor(coefficients))


class LinearPotential(LinearInParameters):
    """A linear function of the state's components, plus a constant."""

    kind = "linear"

    def __init__(self, num_components: int) -> None:
        super().__init__()
        self.norm = FixedScale(num_components)
        self.weight = nn.Parameter(torch.zeros(num_components, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64))

    @classmethod
    def with_slopes(cls, slopes: np.ndarray) -> Self:
        """The potential slopes . s, for known slopes `(num_components,)`."""
        potential = cls(len(slopes))
        potential.weight.data.copy_(torch.as_tensor(slopes))
        return potential

    @property
    def slopes(self) -> np.ndarray:
        """Change of the potential per unit of each state component, `(num_components,)`."""
        return (self.weight / self.norm.std).detach().numpy()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`; states are `(n, num_components)`."""
        return self.norm(states.double()) @ self.weight + self.bias

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        return {"kind": self.kind, "num_components": len(self.weight)}

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        return cls(architecture["num_components"])

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self.bias.add_(constant)

    @torch.no_grad()
    def features(self, states: np.ndarray) -> np.ndarray:
        """Standardised components, and a last column of ones."""
        standard = self.norm(as_tensor(states).double()).numpy()
        return np.column_stack([standard, np.ones(len(standard))])

    def fit_scale(self, states: np.ndarray, reward_scale: float) -> None:
        """Take mean and deviation of the components from the data."""
        self.norm.update(as_tensor(states))

    def coefficients(self) -> np.ndarray:
        """See `LinearInParameters.coefficients`."""
        return np.append(self.weight.detach().numpy(), self.bias.item())

    @torch.no_grad()
    def set_coefficients(self, coefficients: np.ndarray) -> None:
        """See `LinearInParameters.set_coefficients`."""
        self.weight.copy_(torch.as_tensor(coefficients[:-1]))
        self.bias.copy_(torch.as_tensor(coefficients[-1]))
