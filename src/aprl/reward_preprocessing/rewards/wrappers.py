"""Rewards made of other rewards: shaped by a potential, rescaled, averaged."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import ConfigError
from aprl.policies.spaces import fits
from aprl.reward_preprocessing.potentials import POTENTIALS, Potential
from aprl.reward_preprocessing.rewards.base import RewardNet, RewardWrapper, build
from aprl.reward_preprocessing.tensors import as_tensor
from aprl.reward_preprocessing.transitions import Transitions


def require_gamma(gamma: float) -> None:
    """Check a discount.

    Raises:
        ConfigError: it is not in (0, 1].
    """
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 < gamma <= 1:
        raise ConfigError(f"gamma must be in (0, 1], got {gamma!r}")


class ShapedRewardNet(RewardWrapper):
    """base(s, a, s') + gamma * phi(s') - phi(s), where phi(s') is 0 if s' is terminal.

    Ng, Harada and Russell (ICML 1999): optimal policies are those of the base.

    Args:
        base: the reward to shape.
        potential: phi.
        gamma: discount, in (0, 1]; policies stay the same under this discount.

    Raises:
        ConfigError: gamma out of range.
    """

    kind = "shaped"

    def __init__(self, base: RewardNet, potential: Potential, gamma: float) -> None:
        require_gamma(gamma)
        super().__init__(base)
        self.potential = potential
        self.gamma = float(gamma)

    def fit_scale(self, transitions: Transitions) -> None:
        """See `RewardNet.fit_scale`."""
        super().fit_scale(transitions)
        self.potential.fit_scale(transitions.states, 1.0)

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        base = self.base(state, action, next_state, terminated)
        gained = torch.where(terminated, 0.0, self.potential(next_state))
        return base + self.gamma * gained - self.potential(state)

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {
            "kind": self.kind,
            "gamma": self.gamma,
            "base": self.base.architecture(),
            "potential": self.potential.architecture(),
        }

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        base = build(architecture["base"], observation_space, action_space)
        kind = architecture["potential"]["kind"]
        potential = POTENTIALS[kind].from_architecture(architecture["potential"])
        return cls(base, potential, architecture["gamma"])


class AffineRewardNet(RewardWrapper):
    """scale * (base - shift).

    A shift keeps optimal policies only where no episode terminates, a scale only if positive.
    """

    kind = "affine"

    def __init__(self, base: RewardNet, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(base)
        self.scale = nn.Parameter(torch.tensor(float(scale), dtype=torch.float64))
        self.shift = nn.Parameter(torch.tensor(float(shift), dtype=torch.float64))

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        return self.scale * (self.base(state, action, next_state, terminated) - self.shift)

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind, "base": self.base.architecture()}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        return cls(build(architecture["base"], observation_space, action_space))


class RewardEnsemble(RewardNet):
    """The mean of several rewards for the same environment.

    Raises:
        ConfigError: no members, or members for different environments.
    """

    kind = "ensemble"

    def __init__(self, members: Sequence[RewardNet]) -> None:
        if not members:
            raise ConfigError("an ensemble needs at least one member")
        first = members[0]
        super().__init__(first.observation_space, first.action_space)
        for member in members:
            if not fits(member.observation_space, first.observation_space) or not fits(
                member.action_space, first.action_space
            ):
                raise ConfigError("members of an ensemble must reward the same environment")
        self.members = nn.ModuleList(members)

    def fit_scale(self, transitions: Transitions) -> None:
        """See `RewardNet.fit_scale`."""
        for member in self.members:
            assert isinstance(member, RewardNet)
            member.fit_scale(transitions)

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        return self._all(state, action, next_state, terminated).mean(dim=0)

    def _all(self, *columns: torch.Tensor) -> torch.Tensor:
        return torch.stack([member(*columns) for member in self.members])

    @torch.no_grad()
    def disagreement(
        self,
        state: np.ndarray,
        action: np.ndarray,
        next_state: np.ndarray,
        terminated: np.ndarray,
    ) -> np.ndarray:
        """Standard deviation `(n,)` of the members' rewards; shapes as in `predict`."""
        columns = (as_tensor(column) for column in (state, action, next_state, terminated))
        return self._all(*columns).std(dim=0, correction=0).numpy()

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        members = [member.architecture() for member in self.members]  # type: ignore[operator]
        return {"kind": self.kind, "members": members}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        members = architecture["members"]
        return cls([build(member, observation_space, action_space) for member in members])
