"""Rewards that are tables."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import ConfigError
from aprl.policies.spaces import describe
from aprl.rewards.base import RewardNet
from aprl.rewards.encoding import decode

INPUTS = ("state", "action", "next_state")


class TabularRewardNet(RewardNet):
    """A table of rewards, looked up by any of state, action and next state.

    Args:
        observation_space: Discrete.
        action_space: Discrete if actions are looked up.
        inputs: what the table's axes are, in the order of `INPUTS`.
        table: its values; None starts at zero.

    Raises:
        ConfigError: spaces or inputs that no table can have, or a table of another shape.
    """

    kind = "tabular"

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        inputs: Sequence[str] = ("state", "next_state"),
        table: np.ndarray | None = None,
    ) -> None:
        super().__init__(observation_space, action_space)
        chosen = tuple(name for name in INPUTS if name in inputs)
        if not chosen or set(inputs) - set(INPUTS):
            raise ConfigError(f"inputs of a table are some of {', '.join(INPUTS)}, got {inputs}")
        axes = {"state": observation_space, "action": action_space, "next_state": observation_space}
        shape = []
        for name in chosen:
            space = axes[name]
            if not isinstance(space, spaces.Discrete) or space.start != 0:
                raise ConfigError(f"a table needs numbered {name}s, not {describe(space)}")
            shape.append(int(space.n))
        if table is not None and np.shape(table) != tuple(shape):
            raise ConfigError(f"the table has shape {np.shape(table)}, expected {tuple(shape)}")
        self.inputs = chosen
        values = np.zeros(shape) if table is None else table
        self.table = nn.Parameter(torch.tensor(values, dtype=torch.float64))

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        columns = {
            "state": (self.observation_space, state),
            "action": (self.action_space, action),
            "next_state": (self.observation_space, next_state),
        }
        return self.table[tuple(decode(*columns[name]) for name in self.inputs)]

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind, "inputs": list(self.inputs)}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        return cls(observation_space, action_space, architecture["inputs"])
