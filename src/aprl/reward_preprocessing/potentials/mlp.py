"""A potential that is a small network."""

from typing import Any, Self

import numpy as np
import torch
from torch import nn

from aprl.reward_preprocessing.potentials.base import StandardisedInput
from aprl.reward_preprocessing.tensors import relu_tower


class MlpPotential(StandardisedInput):
    """A network with ReLU units; its output is in units of the reward's size.

    Args:
        num_components: of a state.
        num_hidden: hidden layers.
        hidden_size: units per hidden layer.
        seed: of the initial weights; the last layer starts at zero, so that phi does.
    """

    kind = "mlp"
    output_scale: torch.Tensor

    def __init__(
        self, num_components: int, num_hidden: int = 1, hidden_size: int = 64, seed: int = 0
    ) -> None:
        super().__init__(num_components)
        self.num_hidden, self.hidden_size = num_hidden, hidden_size
        self.register_buffer("output_scale", torch.ones((), dtype=torch.float64))
        self.tower = relu_tower([num_components, *[hidden_size] * num_hidden, 1], seed)
        self._last.weight.data.zero_()
        self._last.bias.data.zero_()

    @property
    def _last(self) -> nn.Linear:
        last = self.tower[-1]
        assert isinstance(last, nn.Linear)
        return last

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`; states are `(n, num_components)`."""
        return self.tower(self.standardise(states)).squeeze(1) * self.output_scale

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        sizes = {"num_hidden": self.num_hidden, "hidden_size": self.hidden_size}
        return {"kind": self.kind, "num_components": self.num_components, **sizes}

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        return cls(**{key: value for key, value in architecture.items() if key != "kind"})

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self._last.bias.add_(constant / self.output_scale)

    def fit_scale(self, states: np.ndarray, reward_scale: float) -> None:
        """See `Potential.fit_scale`."""
        super().fit_scale(states, reward_scale)
        self.output_scale.fill_(reward_scale)
