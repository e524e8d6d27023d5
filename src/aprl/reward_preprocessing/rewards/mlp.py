"""Rewards that are small networks."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from gymnasium import spaces
from torch.nn.functional import one_hot

from aprl.errors import ConfigError
from aprl.policies.spaces import width
from aprl.reward_preprocessing.rewards.base import RewardNet
from aprl.reward_preprocessing.rewards.tabular import INPUTS
from aprl.reward_preprocessing.tensors import as_tensor, relu_tower
from aprl.reward_preprocessing.transitions import Transitions


class MlpRewardNet(RewardNet):
    """ReLU layers over the chosen inputs, concatenated; numbered ones enter one-hot.

    Args:
        observation_space: Discrete or a flat Box.
        action_space: Discrete or a flat Box.
        inputs: some of state, action, next_state.
        hidden_sizes: units per hidden layer.
        seed: of the initial weights.

    Raises:
        ConfigError: unknown inputs or sizes.
    """

    kind = "mlp"
    input_mean: torch.Tensor
    input_std: torch.Tensor

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        inputs: Sequence[str] = ("state", "action"),
        hidden_sizes: Sequence[int] = (32, 32),
        seed: int = 0,
    ) -> None:
        super().__init__(observation_space, action_space)
        self.inputs = tuple(name for name in INPUTS if name in inputs)
        if not self.inputs or set(inputs) - set(INPUTS):
            raise ConfigError(f"inputs of a reward are some of {', '.join(INPUTS)}, got {inputs}")
        if any(type(size) is not int or size < 1 for size in hidden_sizes):
            raise ConfigError(f"hidden_sizes are integers of at least 1, got {hidden_sizes}")
        self.hidden_sizes = list(hidden_sizes)
        self._spaces = {
            "state": observation_space,
            "action": action_space,
            "next_state": observation_space,
        }
        size = sum(width(self._spaces[name]) for name in self.inputs)
        self.register_buffer("input_mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("input_std", torch.ones(size, dtype=torch.float64))
        self.tower = relu_tower([size, *self.hidden_sizes, 1], seed)

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        flat = self._flat({"state": state, "action": action, "next_state": next_state})
        return self.tower((flat - self.input_mean) / self.input_std).squeeze(1)

    def _flat(self, columns: dict[str, torch.Tensor]) -> torch.Tensor:
        parts = []
        for name in self.inputs:
            space, column = self._spaces[name], columns[name]
            numbered = isinstance(space, spaces.Discrete)
            parts.append(one_hot(column, int(space.n)) if numbered else column)  # type: ignore[attr-defined]
        return torch.cat([part.double() for part in parts], dim=1)

    def fit_scale(self, transitions: Transitions) -> None:
        """Standardise the inputs by their mean and deviation in the data."""
        t = transitions
        columns = {"state": t.states, "action": t.actions, "next_state": t.next_states}
        flat = self._flat({name: as_tensor(column) for name, column in columns.items()})
        std = flat.std(dim=0, correction=0)
        self.input_mean.copy_(flat.mean(dim=0))
        self.input_std.copy_(torch.where(std > 1e-8, std, torch.ones_like(std)))

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {
            "kind": self.kind,
            "inputs": list(self.inputs),
            "hidden_sizes": self.hidden_sizes,
        }

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        sizes = architecture["hidden_sizes"]
        return cls(observation_space, action_space, architecture["inputs"], sizes)
