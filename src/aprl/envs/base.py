"""The multi-agent vector environment: agent-major arrays over a batch of games."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

Observations = tuple[np.ndarray, ...]
Infos = list[dict[Any, Any]]
Step = tuple[Observations, np.ndarray, np.ndarray, Infos]


class VecMultiEnv(ABC):
    """A batch of games, all stepped together; a game that ends starts anew in the same step.

    Layout is agent-major. For `A` agents and `N` environments:

    * observations: tuple over agents of float32 arrays `(N, obs_dim)` (Discrete: int64 `(N,)`);
    * actions: sequence over agents of arrays `(N, act_dim)` (or `(N,)`);
    * rewards: `(A, N)` float64; dones: `(N,)` bool, one flag for all agents of a game;
    * infos: list of `N` dicts. They are empty except where the episode ended. There they hold, per
      agent index, a dict of that agent's reward terms (and `winner: True` for the winner), and
      `terminal_observation` (tuple over agents), `TimeLimit.truncated` (bool), and
      `episode` = {`r0`.. return per agent, `l` length in steps}.

    Arrays returned belong to the caller until the next `step` or `reset`.
    """

    num_envs: int
    observation_spaces: tuple[spaces.Space, ...]
    action_spaces: tuple[spaces.Space, ...]

    @property
    def num_agents(self) -> int:
        """Number of players that still need actions from outside."""
        return len(self.action_spaces)

    @abstractmethod
    def reset(self) -> Observations:
        """Start a new episode in every environment."""

    @abstractmethod
    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """Advance every game by one step; see the class for shapes."""

    @abstractmethod
    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """Reward terms of the last step, per term an array `(N,)`, by the *game's* agent index."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue from here: simulator, counters, random generators."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, for the same game and number of environments."""

    def close(self) -> None:  # noqa: B027 - nothing to release is the common case
        """Release resources; the environment must not be used afterwards."""

    @property
    def unwrapped(self) -> "VecMultiEnv":
        """The game itself, below all wrappers."""
        return self


@runtime_checkable
class BranchableGame(Protocol):
    """A game whose states in progress can be copied, also into another batch of the same game."""

    def get_simulator_state(self, env_ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """Complete states of games in progress, opaque rows `(k, n)`."""
        ...

    def set_simulator_state(self, env_ids: Sequence[int] | np.ndarray, rows: np.ndarray) -> None:
        """Put back such rows, into the same or other environments."""
        ...

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`."""
        ...

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        ...


class VecMultiWrapper(VecMultiEnv):
    """A wrapper that passes everything through; subclasses override what they change."""

    def __init__(self, venv: VecMultiEnv) -> None:
        self.venv = venv
        self.num_envs = venv.num_envs
        self.observation_spaces = venv.observation_spaces
        self.action_spaces = venv.action_spaces

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`."""
        return self.venv.reset()

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`."""
        return self.venv.step(actions)

    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """See `VecMultiEnv.terms`."""
        return self.venv.terms(agent_idx)

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`."""
        return {"venv": self.venv.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        self.venv.load_state_dict(state["venv"])

    def close(self) -> None:
        """Close the wrapped environment."""
        self.venv.close()

    @property
    def unwrapped(self) -> VecMultiEnv:
        """The game itself, below all wrappers."""
        return self.venv.unwrapped
