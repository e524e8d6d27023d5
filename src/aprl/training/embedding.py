"""Embedding fixed players in a game, until what is left is an ordinary single-agent `VecEnv`."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from aprl.envs.base import Observations, Step, VecMultiEnv, VecMultiWrapper
from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.policies.network import NetworkPolicy
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.spaces import describe, fits


class Player(Protocol):
    """Somebody at play in a batch of games."""

    def begin(self) -> None:
        """All environments start an episode."""
        ...

    def act(self, obs: np.ndarray) -> np.ndarray:
        """Actions for observations `(num_envs, ...)`."""
        ...

    def observe_ends(self, dones: np.ndarray) -> None:
        """Start a new episode in environments whose episode ended, `(num_envs,)` bool."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Memory and randomness."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


class PolicyPlayer:
    """A policy at play in a batch of games: keeps its recurrent state per environment.

    The state starts as the policy's own `initial_state` (zeros for the published zoo) and returns
    to it wherever an episode starts.
    """

    def __init__(self, policy: Policy, num_envs: int, deterministic: bool = False) -> None:
        self.policy = policy
        self.num_envs = num_envs
        self.deterministic = deterministic
        self.begin()

    def begin(self) -> None:
        """All environments start an episode."""
        self._state = self.policy.initial_state(self.num_envs)
        self._episode_start = np.ones(self.num_envs, dtype=bool)

    def act(self, obs: np.ndarray) -> np.ndarray:
        """Actions for observations `(num_envs, ...)`."""
        actions, self._state = self.policy.predict(
            obs, self._state, self._episode_start, self.deterministic
        )
        return actions

    def observe_ends(self, dones: np.ndarray) -> None:
        """Clear the memory of environments whose episode ended, `(num_envs,)` bool."""
        self._episode_start = dones.copy()
        if self._state is not None and dones.any():
            initial = self.policy.initial_state(self.num_envs)
            assert initial is not None
            self._state = np.array(self._state)
            self._state[dones] = initial[dones]

    def activations(self, obs: np.ndarray) -> dict[str, np.ndarray]:
        """What the policy's network would compute now, without acting: see `NetworkPolicy.hidden`.

        Raises:
            ConfigError: the policy is no network.
        """
        if not isinstance(self.policy, NetworkPolicy):
            raise ConfigError(f"a {type(self.policy).__name__} has no activations to look at")
        return self.policy.hidden(obs, self._state, self._episode_start)

    def state_after(self, obs: np.ndarray) -> np.ndarray:
        """The recurrent state `(num_envs, ...)` that seeing `obs` would lead to.

        Raises:
            ConfigError: the policy has no memory.
        """
        policy = self.policy
        if self._state is None or not isinstance(policy, LstmPolicy):
            raise ConfigError(f"a {type(policy).__name__} has no recurrent state to look at")
        return policy.next_state(obs, self._state, self._episode_start)

    def value(self, obs: np.ndarray) -> np.ndarray:
        """The return that the policy's own value head expects, `(num_envs,)`.

        Raises:
            ConfigError: the policy is no network.
        """
        if not isinstance(self.policy, NetworkPolicy):
            raise ConfigError(f"a {type(self.policy).__name__} does not estimate values")
        return self.policy.value(obs, self._state, self._episode_start)

    def take_over(self, rows: np.ndarray, other: "PolicyPlayer", their_rows: np.ndarray) -> None:
        """Remember in environments `rows` what another player of the same policy remembers."""
        self._episode_start[rows] = other._episode_start[their_rows]
        if self._state is not None:
            assert other._state is not None
            self._state = np.array(self._state)
            self._state[rows] = other._state[their_rows]

    def state_dict(self) -> dict[str, Any]:
        """Memory and randomness."""
        return {
            "policy": self.policy.state_dict(),
            "recurrent": None if self._state is None else self._state.copy(),
            "episode_start": self._episode_start.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.policy.load_state_dict(state["policy"])
        self._state, self._episode_start = state["recurrent"], state["episode_start"]


class CurryVecEnv(VecMultiWrapper):
    """Let `policy` play agent `agent_idx`, and hide that agent's observation and reward.

    The policy's recurrent state is kept per environment (see `PolicyPlayer`); `reset()` clears it.

    Args:
        venv: game with at least one agent left.
        policy: the embedded player; its spaces must be those of the agent.
        agent_idx: position of the agent among the agents of `venv`.
        deterministic: play the mode of the policy instead of sampling from it.

    Raises:
        ConfigError: no such agent, or the policy's spaces do not fit.
    """

    def __init__(
        self, venv: VecMultiEnv, policy: Policy, agent_idx: int, deterministic: bool = False
    ) -> None:
        super().__init__(venv)
        if not 0 <= agent_idx < venv.num_agents:
            raise ConfigError(f"agent_idx must be in 0..{venv.num_agents - 1}, got {agent_idx}")
        _check_fit("observation", policy.observation_space, venv.observation_spaces[agent_idx])
        _check_fit("action", policy.action_space, venv.action_spaces[agent_idx])
        self.observation_spaces = _without(venv.observation_spaces, agent_idx)
        self.action_spaces = _without(venv.action_spaces, agent_idx)
        self.agent_idx = agent_idx
        self.policies = [policy]
        self.player: Player = PolicyPlayer(policy, venv.num_envs, deterministic)
        self._obs: np.ndarray | None = None

    def get_policy(self) -> Policy:
        """The embedded policy."""
        return self.policies[0]

    @property
    def embedded_obs(self) -> np.ndarray:
        """What the embedded player sees now, `(num_envs, obs_dim)`."""
        if self._obs is None:
            raise RuntimeError("call reset() before step()")
        return self._obs

    def reset(self) -> Observations:
        """Start new episodes; the embedded player's memory is cleared."""
        self.player.begin()
        return self._hide(self.venv.reset())

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`; `actions` are those of the remaining agents."""
        own = self.player.act(self.embedded_obs)
        everyone = [*actions[: self.agent_idx], own, *actions[self.agent_idx :]]
        obs, rewards, dones, infos = self.venv.step(everyone)
        self.player.observe_ends(dones)
        for env in np.flatnonzero(dones):
            terminal = infos[env]["terminal_observation"]
            infos[env]["terminal_observation"] = _without(terminal, self.agent_idx)
        return self._hide(obs), np.delete(rewards, self.agent_idx, axis=0), dones, infos

    def _hide(self, obs: Observations) -> Observations:
        self._obs = obs[self.agent_idx]
        return _without(obs, self.agent_idx)

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`; the embedded player's memory and randomness included."""
        return {
            **super().state_dict(),
            "player": self.player.state_dict(),
            "obs": None if self._obs is None else self._obs.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        super().load_state_dict(state)
        self.player.load_state_dict(state["player"])
        self._obs = state["obs"]


def _without(items: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return items[:index] + items[index + 1 :]


def _check_fit(what: str, have: spaces.Space, need: spaces.Space) -> None:
    if not fits(have, need):
        raise ConfigError(
            f"the embedded policy's {what} space is {describe(have)}, the game's {describe(need)}"
        )


class FlattenSingletonVecEnv(VecEnv):
    """A game with one agent left, as a Stable-Baselines3 `VecEnv`.

    Infos keep both agents' entries under their index in the game; `terminal_observation` is the
    learner's own, and `episode` holds the learner's return `r` beside `r0`, `r1` and `l`.

    Args:
        venv: game whose other agents are embedded.
        agent_idx: the learner's index in the game itself.
    """

    def __init__(self, venv: VecMultiEnv, agent_idx: int) -> None:
        if venv.num_agents != 1:
            raise ConfigError(f"one agent must be left to learn, {venv.num_agents} are")
        self.game = venv
        self.agent_idx = agent_idx
        self._actions: np.ndarray | None = None
        self.render_mode = None
        super().__init__(venv.num_envs, venv.observation_spaces[0], venv.action_spaces[0])

    def reset(self) -> np.ndarray:
        """Start new episodes; observations `(num_envs, obs_dim)`."""
        return self.game.reset()[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Take the learner's actions `(num_envs, act_dim)`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step."""
        assert self._actions is not None
        obs, rewards, dones, infos = self.game.step([self._actions])
        for env in np.flatnonzero(dones):
            info = infos[env]
            info["terminal_observation"] = info["terminal_observation"][0]
            info["episode"]["r"] = info["episode"][f"r{self.agent_idx}"]
        return obs[0], rewards[0], dones, infos

    def terms(self) -> dict[str, np.ndarray]:
        """The learner's reward terms in the last step, each `(num_envs,)`."""
        return self.game.terms(self.agent_idx)

    def close(self) -> None:
        """Close the game."""
        self.game.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The same attribute for each chosen environment: the batch has no separate objects."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Not supported: environments of a batch share their attributes."""
        raise NotImplementedError("environments of a batch share their attributes")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Not supported: environments of a batch are not separate objects."""
        raise NotImplementedError(f"{method_name}: environments of a batch are not objects")

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """False for each: the batch reports episodes itself, as SB3's Monitor would."""
        from stable_baselines3.common.monitor import Monitor

        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))


class GameOutcomes:
    """Counts of finished games: wins per agent, ties, and games ended by unstable physics.

    Games that training aids changed (`aside`, `end_when_down`) are counted on their own, as
    `aided`: who won them says nothing about the game as it is.
    """

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self.clear()

    def clear(self) -> None:
        """Start counting anew."""
        self.wins = [0] * self._num_agents
        self.ties = 0
        self.unstable = 0
        self.lengths = 0
        self.aided = 0

    @property
    def games(self) -> int:
        """Games counted since `clear`."""
        return sum(self.wins) + self.ties

    def count(self, info: dict[Any, Any]) -> None:
        """Count one finished game by its info."""
        if info.get("aided"):
            self.aided += 1
            return
        winner = game_outcome(info)
        if winner is None:
            self.ties += 1
        else:
            self.wins[winner] += 1
        self.unstable += info.get("unstable", False)
        self.lengths += info["episode"]["l"]

    def log_values(self) -> dict[str, float]:
        """Counts, proportions, and mean game length in steps, under the names of the logs."""
        values: dict[str, float] = {"game_total": self.games, "game_count_tie": self.ties}
        values["game_unstable"], values["game_aided"] = self.unstable, self.aided
        for agent, wins in enumerate(self.wins):
            values[f"game_count_win{agent}"] = wins
        if self.games:
            values["game_tie"] = self.ties / self.games
            values["game_length"] = self.lengths / self.games
            for agent, wins in enumerate(self.wins):
                values[f"game_win{agent}"] = wins / self.games
        return values

    def to_list(self) -> list[int]:
        """All counts, for `from_list`."""
        return [*self.wins, self.ties, self.unstable, self.lengths, self.aided]

    def from_list(self, counts: list[int]) -> None:
        """Take over what `to_list` returned."""
        *self.wins, self.ties, self.unstable, self.lengths, self.aided = counts


class GameOutcomeMonitor(VecMultiWrapper):
    """Counts every finished game of a batch in `outcomes`."""

    def __init__(self, venv: VecMultiEnv) -> None:
        super().__init__(venv)
        self.outcomes = GameOutcomes(venv.num_agents)

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`."""
        obs, rewards, dones, infos = self.venv.step(actions)
        for env in np.flatnonzero(dones):
            self.outcomes.count(infos[env])
        return obs, rewards, dones, infos

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`."""
        return {**super().state_dict(), "counts": self.outcomes.to_list()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        super().load_state_dict(state)
        self.outcomes.from_list(state["counts"])


def game_outcome(info: dict[Any, Any]) -> int | None:
    """The winner's agent index in a finished game's info; None is a tie."""
    for key, value in info.items():
        if isinstance(key, int) and isinstance(value, dict) and value.get("winner"):
            return key
    return None
