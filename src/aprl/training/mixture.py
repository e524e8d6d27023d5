"""Embedding a mixture of fixed players: each game is played by one of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aprl.envs.base import Step, VecMultiEnv
from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.training.embedding import CurryVecEnv, GameOutcomes


class MixturePlayer:
    """Several policies at play in a batch of games; one of them plays each episode to its end.

    A member predicts on the rows that it controls and on no others. Its recurrent state is kept per
    environment and is its own initial state wherever it begins an episode.

    Args:
        policies: members; the same object may be in there more than once.
        num_envs: environments.
        weights: how often each member is drawn, in proportion; None: equally often.
        deterministic: play modes instead of samples.
        seed: of the draws.

    Attributes:
        current: index of the member that plays each environment, `(num_envs,)`.

    Raises:
        ConfigError: no members, or weights that are no distribution over them.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        num_envs: int,
        weights: Sequence[float] | None = None,
        deterministic: bool = False,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.policies = list(policies)
        self.num_envs = num_envs
        self.deterministic = deterministic
        self._probabilities = mixture_probabilities(weights, len(self.policies))
        self._rng = np.random.default_rng(seed)
        self.current = np.zeros(num_envs, dtype=np.int64)
        self.begin()

    def begin(self) -> None:
        """All environments start an episode."""
        self._states = [policy.initial_state(self.num_envs) for policy in self.policies]
        self._episode_start = np.ones(self.num_envs, dtype=bool)
        self._draw(self._episode_start)

    def _draw(self, starting: np.ndarray) -> None:
        count = len(self.policies)
        self.current[starting] = self._rng.choice(count, starting.sum(), p=self._probabilities)

    def act(self, obs: np.ndarray) -> np.ndarray:
        """Actions for observations `(num_envs, ...)`."""
        actions: np.ndarray | None = None
        for member, policy in enumerate(self.policies):
            rows = np.flatnonzero(self.current == member)
            if not len(rows):
                continue
            state = self._states[member]
            chosen, after = policy.predict(
                obs[rows],
                None if state is None else state[rows],
                self._episode_start[rows],
                self.deterministic,
            )
            if state is not None:
                state[rows] = after
            if actions is None:
                actions = np.zeros((self.num_envs, *chosen.shape[1:]), chosen.dtype)
            actions[rows] = chosen
        assert actions is not None
        return actions

    def observe_ends(self, dones: np.ndarray) -> None:
        """Draw who plays next where an episode ended, `(num_envs,)` bool."""
        self._episode_start = dones.copy()
        if not dones.any():
            return
        self._draw(dones)
        for policy, state in zip(self.policies, self._states, strict=True):
            if state is not None:
                initial = policy.initial_state(self.num_envs)
                assert initial is not None
                state[dones] = initial[dones]

    def state_dict(self) -> dict[str, Any]:
        """Who plays where, memory, and randomness."""
        return {
            "policies": [policy.state_dict() for policy in self.policies],
            "recurrent": [None if state is None else state.copy() for state in self._states],
            "episode_start": self._episode_start.copy(),
            "current": self.current.copy(),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for policy, saved in zip(self.policies, state["policies"], strict=True):
            policy.load_state_dict(saved)
        self._states = [None if s is None else np.array(s) for s in state["recurrent"]]
        self._episode_start = state["episode_start"]
        self.current = state["current"].copy()
        self._rng.bit_generator.state = state["rng"]


def mixture_probabilities(weights: Sequence[float] | None, members: int) -> np.ndarray:
    """How probable each member is, `(members,)`.

    Raises:
        ConfigError: no members; not one weight per member; a weight that is negative or not finite;
            weights that are all zero.
    """
    if members < 1:
        raise ConfigError("a mixture needs at least one policy")
    if weights is None:
        return np.full(members, 1 / members)
    if len(weights) != members:
        raise ConfigError(f"{members} policies need as many weights, got {len(weights)}")
    values = np.asarray(weights, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise ConfigError(f"weights must not be negative nor all zero, got {list(weights)}")
    return values / values.sum()


class MultiCurryVecEnv(CurryVecEnv):
    """Let a mixture of policies play agent `agent_idx`, one per episode; see `MixturePlayer`.

    The info of a finished game names its member in `embedded_member`.

    Args:
        venv: game with at least one agent left.
        policies: members of the mixture; all with the agent's spaces.
        agent_idx: position of the agent among the agents of `venv`.
        weights: how often each member is drawn, in proportion; None: equally often.
        deterministic: play the modes of the policies instead of sampling from them.
        seed: of the draws of members.

    Raises:
        ConfigError: no such agent, no policies, spaces that do not fit, or unusable weights.
    """

    def __init__(
        self,
        venv: VecMultiEnv,
        policies: Sequence[Policy],
        agent_idx: int,
        weights: Sequence[float] | None = None,
        deterministic: bool = False,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        mixture_probabilities(weights, len(policies))
        for policy in policies:
            super().__init__(venv, policy, agent_idx, deterministic)
        self.policies = list(policies)
        self.mixture = MixturePlayer(policies, venv.num_envs, weights, deterministic, seed)
        self.player = self.mixture
        self.outcomes = [GameOutcomes(venv.num_agents) for _ in policies]

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `CurryVecEnv.step`."""
        members = self.mixture.current.copy()
        step = super().step(actions)
        _, _, dones, infos = step
        for env in np.flatnonzero(dones):
            infos[env]["embedded_member"] = int(members[env])
            self.outcomes[members[env]].count(infos[env])
        return step

    def exchange(self, policies: Sequence[Policy]) -> None:
        """Let as many other policies take the members' places; all episodes begin with `reset`.

        Raises:
            ConfigError: another number of policies.
        """
        if len(policies) != len(self.policies):
            raise ConfigError(f"{len(self.policies)} members cannot become {len(policies)}")
        self.policies = list(policies)
        self.mixture.policies = list(policies)
        self.mixture.begin()
        self.clear()

    def clear(self) -> None:
        """Start counting games anew."""
        for outcomes in self.outcomes:
            outcomes.clear()

    def log_values(self) -> dict[str, float]:
        """Counts and proportions of the games of each member, as `embedded<i>/game_win0`, ..."""
        return {
            f"embedded{member}/{name}": value
            for member, outcomes in enumerate(self.outcomes)
            for name, value in outcomes.log_values().items()
        }

    def state_dict(self) -> dict[str, Any]:
        """See `CurryVecEnv.state_dict`."""
        counts = [outcomes.to_list() for outcomes in self.outcomes]
        return {**super().state_dict(), "members": counts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `CurryVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        for outcomes, saved in zip(self.outcomes, state["members"], strict=True):
            outcomes.from_list(saved)
