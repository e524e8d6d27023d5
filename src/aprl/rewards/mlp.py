"""Rewards that are small networks."""

from collections.abc import Sequence
from typing import Any, Self, Unpack

import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.rewards.base import RewardNet
from aprl.rewards.encoding import encode, encoded_width
from aprl.rewards.perceptron import Perceptron, PerceptronOptions

INPUTS = ("state", "action", "next_state", "terminated")


class MlpRewardNet(RewardNet):
    """A perceptron over the chosen parts of a transition, encoded and concatenated.

    Args:
        observation_space: Box or Discrete.
        action_space: Box or Discrete.
        inputs: some of state, action, next_state, terminated.
        hidden_sizes: see `Perceptron`.
        seed: see `Perceptron`.
        options: see `PerceptronOptions`.

    Raises:
        ConfigError: unknown inputs, sizes or options.
    """

    kind = "mlp"

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        inputs: Sequence[str] = ("state", "action"),
        hidden_sizes: Sequence[int] = (32, 32),
        seed: int | None = 0,
        **options: Unpack[PerceptronOptions],
    ) -> None:
        super().__init__(observation_space, action_space)
        self.inputs = tuple(name for name in INPUTS if name in inputs)
        if not self.inputs or set(inputs) - set(INPUTS):
            raise ConfigError(f"inputs of a reward are some of {', '.join(INPUTS)}, got {inputs}")
        state, action = encoded_width(observation_space), encoded_width(action_space)
        sizes = {"state": state, "action": action, "next_state": state, "terminated": 1}
        size = sum(sizes[name] for name in self.inputs)
        self.mlp = Perceptron(size, hidden_sizes, seed=seed, **options)

    def _rows(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        dtype, parts = self.mlp.dtype, []
        for name in self.inputs:
            if name == "state":
                parts.append(encode(self.observation_space, state, dtype))
            elif name == "action":
                parts.append(encode(self.action_space, action, dtype))
            elif name == "next_state":
                parts.append(encode(self.observation_space, next_state, dtype))
            else:
                parts.append(terminated.to(dtype)[:, None])
        return torch.cat(parts, dim=1)

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        return self.mlp(self._rows(state, action, next_state, terminated))

    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """See `RewardNet.update_statistics`."""
        self.mlp.update_statistics(self._rows(state, action, next_state, terminated))

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind, "inputs": list(self.inputs), **self.mlp.options}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        options = {name: value for name, value in architecture.items() if name != "kind"}
        return cls(observation_space, action_space, **options)
