"""Rewards made of other rewards: shaped by a potential, rescaled, normalised, averaged."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import ConfigError
from aprl.policies.spaces import fits
from aprl.rewards.base import RewardNet, RewardWrapper, build
from aprl.rewards.encoding import RewardInputs
from aprl.rewards.potentials import POTENTIALS, Potential
from aprl.rewards.scaling import RunningNorm


def require_gamma(gamma: float) -> None:
    """Check a discount.

    Raises:
        ConfigError: it is not in (0, 1].
    """
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 < gamma <= 1:
        raise ConfigError(f"gamma must be in (0, 1], got {gamma!r}")


class ShapedRewardNet(RewardWrapper):
    """base(s, a, s') + gamma * (1 - terminated) * phi(s') - phi(s).

    Ng, Harada and Russell (ICML 1999): optimal policies are those of the base. A terminal state has
    potential 0; one in which a time limit struck keeps its own.

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

    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """See `RewardNet.update_statistics`."""
        super().update_statistics(state, action, next_state, terminated)
        self.potential.fit_scale(state.numpy(), 1.0)

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        later = self.potential(next_state)
        if terminated.dtype == torch.bool:  # the potential of a terminal state may be anything
            later = self.gamma * torch.where(terminated, 0.0, later)
        else:
            later = self.gamma * (1 - terminated.to(later.dtype)) * later
        return self.base(state, action, next_state, terminated) + later - self.potential(state)

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


class NormalizedRewardNet(RewardWrapper):
    """Another net's reward, shifted and scaled by its running mean and standard deviation.

    Args:
        base: the net; its own statistics are updated first.
    """

    kind = "normalized"

    def __init__(self, base: RewardNet) -> None:
        super().__init__(base)
        self.norm = RunningNorm(1)

    @torch.no_grad()
    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """See `RewardNet.update_statistics`."""
        super().update_statistics(state, action, next_state, terminated)
        self.norm.update(self.base(state, action, next_state, terminated)[:, None])

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        rewards = self.base(state, action, next_state, terminated)
        return self.norm(rewards[:, None]).squeeze(1)

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
    """The mean of several rewards for the same environment, and how much they disagree.

    Args:
        members: at least 1.
        std_weight: sample standard deviations of the members that are added to their mean; negative
            to be careful where they disagree.

    Raises:
        ConfigError: no members, only one but a spread asked for, or members for different
            environments.
    """

    kind = "ensemble"

    def __init__(self, members: Sequence[RewardNet], std_weight: float = 0.0) -> None:
        if not members:
            raise ConfigError("an ensemble needs at least one member")
        if std_weight and len(members) < 2:
            raise ConfigError("the spread of an ensemble (std_weight) needs at least 2 members")
        first = members[0]
        super().__init__(first.observation_space, first.action_space)
        for member in members:
            if not fits(member.observation_space, first.observation_space) or not fits(
                member.action_space, first.action_space
            ):
                raise ConfigError("members of an ensemble must reward the same environment")
        self.members = nn.ModuleList(members)
        self.std_weight = float(std_weight)

    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """See `RewardNet.update_statistics`."""
        for member in self.members:
            assert isinstance(member, RewardNet)
            member.update_statistics(state, action, next_state, terminated)

    def each(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """Rewards of every member, `(members, n)`."""
        columns = (state, action, next_state, terminated)
        return torch.stack([member(*columns) for member in self.members])

    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """See `RewardNet.forward`."""
        rewards = self.each(state, action, next_state, terminated)
        mean = rewards.mean(dim=0)
        return mean + self.std_weight * rewards.std(dim=0) if self.std_weight else mean

    @torch.no_grad()
    def disagreement(
        self,
        state: np.ndarray,
        action: np.ndarray,
        next_state: np.ndarray,
        terminated: np.ndarray,
    ) -> np.ndarray:
        """Standard deviation `(n,)` of the members' rewards; shapes as in `predict`."""
        columns = RewardInputs.raw(state, action, next_state, terminated)
        return self.each(*columns).std(dim=0, correction=0).numpy()

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        members = [member.architecture() for member in self.members]  # type: ignore[operator]
        return {"kind": self.kind, "members": members, "std_weight": self.std_weight}

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """See `RewardNet.from_architecture`."""
        members = [
            build(member, observation_space, action_space) for member in architecture["members"]
        ]
        return cls(members, architecture["std_weight"])
