"""A bumpy potential of two state components, for rewards that are hard to read on purpose."""

from typing import Any, Self

import numpy as np
import torch
from torch import nn

from aprl.rewards.potentials.base import Potential


class SinusoidPotential(Potential):
    """phi(s) = amplitude * sin(a s0 + b) * sin(c s1 + d) + offset.

    Args:
        amplitude: largest size.
        coefficients: a, b, c, d; b and d in radians, a and c in radians per unit of s0 and s1.
    """

    kind = "sinusoid"
    coefficients: torch.Tensor

    def __init__(self, amplitude: float, coefficients: np.ndarray) -> None:
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(amplitude, dtype=torch.float64))
        self.offset = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_buffer("coefficients", torch.tensor(coefficients, dtype=torch.float64))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`; states are `(n, 2)` or wider."""
        a, b, c, d = self.coefficients
        waves = torch.sin(a * states[:, 0] + b) * torch.sin(c * states[:, 1] + d)
        return self.amplitude * waves + self.offset

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        return {"kind": self.kind}

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        return cls(0.0, np.zeros(4))

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self.offset.add_(constant)
