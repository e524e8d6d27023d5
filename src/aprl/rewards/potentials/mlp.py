"""A potential that is a small network."""

import math
from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import ConfigError
from aprl.policies import spaces as space_json
from aprl.rewards.encoding import as_tensor, encode, encoded_width
from aprl.rewards.perceptron import Perceptron, PerceptronOptions
from aprl.rewards.potentials.base import Potential


class MlpPotential(Potential):
    """A perceptron over the encoded state; its output is in units of the reward's size.

    Args:
        observation_space: Box or Discrete.
        hidden_sizes: see `Perceptron`.
        seed: see `Perceptron`.
        output_scale: units of reward per unit of the perceptron's output; see `fit_scale`.
        start_at_zero: begin with a last layer of zeros, so that phi is zero everywhere.
        options: see `PerceptronOptions`.

    Raises:
        ConfigError: unknown sizes or options, or ones that exclude each other.
    """

    kind = "mlp"

    def __init__(
        self,
        observation_space: spaces.Space,
        hidden_sizes: Sequence[int] = (64,),
        seed: int | None = 0,
        *,
        output_scale: float = 1.0,
        start_at_zero: bool = True,
        **options: Unpack[PerceptronOptions],
    ) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.mlp = Perceptron(encoded_width(observation_space), hidden_sizes, seed=seed, **options)
        if not math.isfinite(output_scale):
            raise ConfigError(f"output_scale must be a number, got {output_scale}")
        self.output_scale = output_scale
        if start_at_zero and self.mlp.options["spectral_norm"]:
            raise ConfigError("a layer of zeros has no spectral norm; give start_at_zero=False")
        if start_at_zero:
            self._last.weight.data.zero_()
            self._last.bias.data.zero_()

    @property
    def _last(self) -> nn.Linear:
        last = self.mlp.layers[-1]
        assert isinstance(last, nn.Linear)
        return last

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`."""
        rows = encode(self.observation_space, states, self.mlp.dtype)
        outputs = self.mlp(rows)
        return outputs if self.output_scale == 1 else outputs * self.output_scale

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        space = space_json.to_json(self.observation_space)
        return {
            "kind": self.kind,
            "observation_space": space,
            "output_scale": self.output_scale,
            **self.mlp.options,
        }

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        options = {name: value for name, value in architecture.items() if name != "kind"}
        space = space_json.from_json(options.pop("observation_space"))
        return cls(space, **options, start_at_zero=False)

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self._last.bias.add_(constant / self.output_scale)

    def fit_scale(self, states: np.ndarray, reward_scale: float) -> None:
        """See `Potential.fit_scale`."""
        rows = encode(self.observation_space, as_tensor(states), self.mlp.dtype)
        self.mlp.update_statistics(rows)
        self.output_scale = float(reward_scale)
