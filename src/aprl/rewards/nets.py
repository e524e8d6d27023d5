"""Reward networks: from state, action, next state and termination to one number per row.

A net works on encoded rows (`RewardInputs`); `predict` takes what an environment gives.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import nn
from torch.nn.utils import parametrizations

from aprl.errors import ConfigError
from aprl.rewards.encoding import RewardInputs, encode, encoded_width
from aprl.rewards.running_norm import RunningNorm

INPUT_CLIP = 10.0  # standard deviations


class RewardNet(nn.Module, ABC):
    """Base of all reward networks.

    Args:
        observation_space: Box or Discrete.
        action_space: Box or Discrete.
    """

    kind: ClassVar[str]

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        super().__init__()
        self.observation_space, self.action_space = observation_space, action_space

    @abstractmethod
    def forward(self, inputs: RewardInputs) -> torch.Tensor:
        """Rewards `(n,)`, differentiable."""

    @abstractmethod
    def architecture(self) -> dict[str, Any]:
        """Shape of the net in JSON types, from which `from_architecture` rebuilds it."""

    def update_statistics(self, inputs: RewardInputs) -> None:
        """Let running statistics, where the net has any, take transitions into account."""
        for child in self.children():
            if isinstance(child, RewardNet):
                child.update_statistics(inputs)

    def encode(
        self,
        obs: np.ndarray,
        actions: np.ndarray,
        next_obs: np.ndarray,
        terminated: np.ndarray,
    ) -> RewardInputs:
        """Encode what an environment gives, `n` rows each.

        Raises:
            ConfigError: rows that are not of the net's spaces.
        """
        return RewardInputs(
            encode(self.observation_space, obs),
            encode(self.action_space, actions),
            encode(self.observation_space, next_obs),
            torch.from_numpy(np.asarray(terminated).astype(np.float32)),
        )

    def predict(
        self,
        obs: np.ndarray,
        actions: np.ndarray,
        next_obs: np.ndarray,
        terminated: np.ndarray,
    ) -> np.ndarray:
        """Rewards `(n,)` float32 of transitions as an environment gives them; no gradients."""
        with torch.inference_mode():
            return self(self.encode(obs, actions, next_obs, terminated)).numpy()


class Mlp(nn.Module):
    """A perceptron with one output, whose inputs may be normalised by what was seen so far.

    Args:
        inputs: components per row.
        hidden: units per hidden layer.
        normalize_inputs: shift and scale by running statistics; see `update_statistics`.
        spectral_norm: bound each layer's largest singular value by 1 (Miyato et al., ICLR 2018).
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], normalize_inputs: bool, spectral_norm: bool
    ) -> None:
        super().__init__()
        self.norm = RunningNorm(inputs, epsilon=1e-6, clip=INPUT_CLIP) if normalize_inputs else None
        layers: list[nn.Module] = []
        for units in hidden:
            layers += [_linear(inputs, units, spectral_norm), nn.Tanh()]
            inputs = units
        self.layers = nn.Sequential(*layers, _linear(inputs, 1, spectral_norm))

    def update_statistics(self, rows: torch.Tensor) -> None:
        """Let the input normaliser, if there is one, take rows into account."""
        if self.norm is not None:
            self.norm.update(rows)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Outputs `(n,)`."""
        return self.layers(rows if self.norm is None else self.norm(rows)).squeeze(1)


def _linear(inputs: int, units: int, spectral_norm: bool) -> nn.Module:
    layer = nn.Linear(inputs, units)
    return parametrizations.spectral_norm(layer) if spectral_norm else layer


class BasicRewardNet(RewardNet):
    """A perceptron over the parts of a transition that it is told to use.

    Args:
        observation_space: Box or Discrete.
        action_space: Box or Discrete.
        use_state: see the observation.
        use_action: see the action.
        use_next_state: see the next observation.
        use_terminated: see whether the episode ended in a terminal state.
        hidden: units per hidden layer; () is a linear reward.
        normalize_inputs: see `Mlp`.
        spectral_norm: see `Mlp`.

    Raises:
        ConfigError: no part used.
    """

    kind = "basic"

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        *,
        use_state: bool = True,
        use_action: bool = True,
        use_next_state: bool = False,
        use_terminated: bool = False,
        hidden: Sequence[int] = (32, 32),
        normalize_inputs: bool = True,
        spectral_norm: bool = False,
    ) -> None:
        super().__init__(observation_space, action_space)
        self.uses = (use_state, use_action, use_next_state, use_terminated)
        if not any(self.uses):
            raise ConfigError("a reward net must use at least one of state, action, next state")
        self.options = {
            "use_state": use_state,
            "use_action": use_action,
            "use_next_state": use_next_state,
            "use_terminated": use_terminated,
            "hidden": list(hidden),
            "normalize_inputs": normalize_inputs,
            "spectral_norm": spectral_norm,
        }
        obs, act = encoded_width(observation_space), encoded_width(action_space)
        sizes = [size for size, used in zip((obs, act, obs, 1), self.uses, strict=True) if used]
        self.mlp = Mlp(sum(sizes), hidden, normalize_inputs, spectral_norm)

    def _rows(self, inputs: RewardInputs) -> torch.Tensor:
        parts = (inputs.obs, inputs.actions, inputs.next_obs, inputs.terminated[:, None])
        return torch.cat([p for p, used in zip(parts, self.uses, strict=True) if used], dim=1)

    def update_statistics(self, inputs: RewardInputs) -> None:
        """See `RewardNet.update_statistics`."""
        self.mlp.update_statistics(self._rows(inputs))

    def forward(self, inputs: RewardInputs) -> torch.Tensor:
        """See `RewardNet.forward`."""
        return self.mlp(self._rows(inputs))

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind, **self.options}


class ShapedRewardNet(RewardNet):
    """`base(s, a, s') + gamma * (1 - terminated) * potential(s') - potential(s)`.

    Shaping by a potential leaves optimal policies as they are (Ng, Harada and Russell, ICML 1999).
    The potential of a terminal state is 0; one in which a time limit struck keeps its own.

    Args:
        base: the reward that is shaped.
        gamma: the learner's discount factor.
        hidden: units per hidden layer of the potential.
        normalize_inputs: see `Mlp`.
        spectral_norm: see `Mlp`.
    """

    kind = "shaped"

    def __init__(
        self,
        base: RewardNet,
        gamma: float,
        *,
        hidden: Sequence[int] = (32, 32),
        normalize_inputs: bool = True,
        spectral_norm: bool = False,
    ) -> None:
        super().__init__(base.observation_space, base.action_space)
        if not 0 <= gamma <= 1:
            raise ConfigError(f"gamma must be in [0, 1], got {gamma}")
        self.base, self.gamma = base, gamma
        self.options = {
            "hidden": list(hidden),
            "normalize_inputs": normalize_inputs,
            "spectral_norm": spectral_norm,
        }
        size = encoded_width(base.observation_space)
        self.potential = Mlp(size, hidden, normalize_inputs, spectral_norm)

    def update_statistics(self, inputs: RewardInputs) -> None:
        """See `RewardNet.update_statistics`."""
        super().update_statistics(inputs)
        self.potential.update_statistics(inputs.obs)

    def forward(self, inputs: RewardInputs) -> torch.Tensor:
        """See `RewardNet.forward`."""
        later = self.gamma * (1 - inputs.terminated) * self.potential(inputs.next_obs)
        return self.base(inputs) + later - self.potential(inputs.obs)

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        base = self.base.architecture()
        return {"kind": self.kind, "base": base, "gamma": self.gamma, **self.options}


class RewardEnsemble(RewardNet):
    """The mean of several nets, and how much they disagree.

    Args:
        members: at least 2, over the same spaces.
        std_weight: standard deviations of the members that are added to their mean; negative to be
            careful where they disagree.

    Raises:
        ConfigError: fewer than 2 members, or members over different spaces.
    """

    kind = "ensemble"

    def __init__(self, members: Sequence[RewardNet], std_weight: float = 0.0) -> None:
        if len(members) < 2:
            raise ConfigError(f"an ensemble needs at least 2 members, got {len(members)}")
        first = members[0]
        spaces_of = [(m.observation_space, m.action_space) for m in members]
        if any(pair != spaces_of[0] for pair in spaces_of):
            raise ConfigError("the members of an ensemble must have the same spaces")
        super().__init__(first.observation_space, first.action_space)
        self.members = nn.ModuleList(members)
        self.std_weight = std_weight

    def update_statistics(self, inputs: RewardInputs) -> None:
        """See `RewardNet.update_statistics`."""
        for member in self.members:
            assert isinstance(member, RewardNet)
            member.update_statistics(inputs)

    def each(self, inputs: RewardInputs) -> torch.Tensor:
        """Rewards of every member, `(members, n)`."""
        return torch.stack([member(inputs) for member in self.members])

    def forward(self, inputs: RewardInputs) -> torch.Tensor:
        """See `RewardNet.forward`."""
        rewards = self.each(inputs)
        mean = rewards.mean(dim=0)
        return mean + self.std_weight * rewards.std(dim=0) if self.std_weight else mean

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        members = [m.architecture() for m in self.members if isinstance(m, RewardNet)]
        return {"kind": self.kind, "members": members, "std_weight": self.std_weight}


class NormalizedRewardNet(RewardNet):
    """Another net's reward, shifted and scaled by its running mean and standard deviation.

    Args:
        base: the net; its own statistics are updated first.
    """

    kind = "normalized"

    def __init__(self, base: RewardNet) -> None:
        super().__init__(base.observation_space, base.action_space)
        self.base = base
        self.norm = RunningNorm(1)

    @torch.no_grad()
    def update_statistics(self, inputs: RewardInputs) -> None:
        """See `RewardNet.update_statistics`."""
        super().update_statistics(inputs)
        self.norm.update(self.base(inputs)[:, None])

    def forward(self, inputs: RewardInputs) -> torch.Tensor:
        """See `RewardNet.forward`."""
        return self.norm(self.base(inputs)[:, None]).squeeze(1)

    def architecture(self) -> dict[str, Any]:
        """See `RewardNet.architecture`."""
        return {"kind": self.kind, "base": self.base.architecture()}
