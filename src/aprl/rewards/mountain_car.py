"""The reward of the mountain car: -1 per step until the car is at the top."""

from typing import Any, Self

import torch
from gymnasium import spaces

from aprl.rewards.base import RewardNet

GOAL_POSITION = 0.5


class MountainCarRewardNet(RewardNet):
    """0 in states at or beyond the goal's position, else -1."""

    kind = "mountain_car"

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`; the first component of a state is the position."""
        return (state[:, 0] >= GOAL_POSITION).double() - 1

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        return cls(observation_space, action_space)
