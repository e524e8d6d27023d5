"""What every reward net has in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import RewardError
from aprl.policies.spaces import describe, fits
from aprl.rewards.encoding import RewardInputs, encode

BATCH = 65536  # rows per call in `predict`

KINDS: dict[str, type["RewardNet"]] = {}  # every subclass with a kind, by it


class TransitionArrays(Protocol):
    """Transitions whose columns, as an environment gives them, go by these names."""

    @property
    def states(self) -> np.ndarray:
        """`(n, ...)`."""

    @property
    def actions(self) -> np.ndarray:
        """`(n, ...)`."""

    @property
    def next_states(self) -> np.ndarray:
        """`(n, ...)`."""

    @property
    def terminated(self) -> np.ndarray:
        """`(n,)` bool."""


class RewardNet(nn.Module, ABC):
    """A reward r(s, a, s', terminated).

    A subclass names its kind and rebuilds itself from its architecture, so that a file can hold it.

    Args:
        observation_space: of the environment that it rewards.
        action_space: of the environment that it rewards.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.action_space = action_space

    @abstractmethod
    def forward(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> torch.Tensor:
        """Rewards `(n,)` of `n` transitions.

        Columns are raw or encoded, see `aprl.rewards.encoding`. Perceptrons, and all that is made
        of them, are differentiable in encoded ones.

        Args:
            state: `(n, ...)` floats, or `(n,)` int64 where states are numbered.
            action: `(n, ...)` floats, or `(n,)` int64 where actions are numbered.
            next_state: like `state`.
            terminated: `(n,)` bool, or floats from 0 to 1: `next_state` is terminal.
        """

    @abstractmethod
    def architecture(self) -> dict[str, Any]:
        """What `from_architecture` needs beside the spaces, as JSON types."""

    @classmethod
    @abstractmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
    ) -> Self:
        """Build the net with weights that are still to be loaded."""

    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """Let the scales of inputs, where there are any, take transitions into account.

        Fixed scales become those of these transitions, running statistics move on. Columns as in
        `forward`.
        """

    @property
    def unwrapped(self) -> "RewardNet":
        """The innermost net of a stack of wrappers."""
        return self

    def encode(
        self,
        obs: np.ndarray,
        actions: np.ndarray,
        next_obs: np.ndarray,
        terminated: np.ndarray,
    ) -> RewardInputs:
        """Encode what an environment gives, `n` rows each, as float32.

        Raises:
            ConfigError: rows that are not of the net's spaces.
        """
        raw = RewardInputs.raw(obs, actions, next_obs, terminated)
        return RewardInputs(
            encode(self.observation_space, raw.obs),
            encode(self.action_space, raw.actions),
            encode(self.observation_space, raw.next_obs),
            raw.terminated.float(),
        )

    @torch.no_grad()
    def predict(
        self,
        state: np.ndarray,
        action: np.ndarray,
        next_state: np.ndarray,
        terminated: np.ndarray,
    ) -> np.ndarray:
        """Rewards `(n,)` of transitions as an environment gives them, in the net's precision."""
        columns = RewardInputs.raw(state, action, next_state, terminated)
        parts = zip(*(torch.split(column, BATCH) for column in columns), strict=True)
        return torch.cat([self(*part) for part in parts]).numpy()

    def rewards(self, transitions: TransitionArrays) -> np.ndarray:
        """Rewards `(n,)` float64 of transitions.

        Raises:
            RewardError: a reward that is not finite.
        """
        t = transitions
        rewards = self.predict(t.states, t.actions, t.next_states, t.terminated).astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(rewards))
        if len(bad):
            row = bad[0]
            raise RewardError(
                f"the reward net gives {rewards[row]} for state {t.states[row]}, action "
                f"{t.actions[row]} (and for {len(bad) - 1} other transitions); rewards must be "
                "finite"
            )
        return rewards

    def require_fit(
        self, observation_space: spaces.Space, action_space: spaces.Space, name: str
    ) -> None:
        """Check that the net is for this environment.

        Args:
            observation_space: of the environment.
            action_space: of the environment.
            name: what the net is called in the message, such as its path.

        Raises:
            RewardError: its spaces are of other kinds or sizes.
        """
        for what, ours, theirs in (
            ("states", self.observation_space, observation_space),
            ("actions", self.action_space, action_space),
        ):
            if not fits(ours, theirs):
                raise RewardError(
                    f"{name} is a reward for another environment: its {what} are "
                    f"{describe(ours)}, the environment's {describe(theirs)}"
                )


def build(
    architecture: dict[str, Any], observation_space: spaces.Space, action_space: spaces.Space
) -> RewardNet:
    """Build a net of any kind from what its `architecture` returned, weights still to be loaded.

    Raises:
        RewardError: no such kind.
    """
    kind = architecture["kind"]
    if kind not in KINDS:
        raise RewardError(f"reward net of unknown kind {kind!r}; known: {', '.join(sorted(KINDS))}")
    return KINDS[kind].from_architecture(architecture, observation_space, action_space)


class RewardWrapper(RewardNet):
    """A reward net made of another one, its `base`."""

    def __init__(self, base: RewardNet) -> None:
        super().__init__(base.observation_space, base.action_space)
        self.base = base

    def update_statistics(
        self,
        state: torch.Tensor,
        action: torch.Tensor,
        next_state: torch.Tensor,
        terminated: torch.Tensor,
    ) -> None:
        """See `RewardNet.update_statistics`."""
        self.base.update_statistics(state, action, next_state, terminated)

    @property
    def unwrapped(self) -> RewardNet:
        """See `RewardNet.unwrapped`."""
        return self.base.unwrapped
