"""Crowded line: point masses on a line that share food; a small continuous zero-sum game."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.base import Observations, Step, VecMultiEnv
from aprl.envs.episodes import EpisodeTracker, require_positive, saved_array, terminal_infos
from aprl.errors import AprlError, ConfigError

TIME_STEP = 0.1  # seconds of game time per step
REWARD_QUANTUM = 2.0**-40  # rewards are multiples of it, so that their sums carry no rounding


class CrowdedLine(VecMultiEnv):
    """`A` agents on the line [-1, 1], and as many foods, evenly spaced from -1 to 1.

    An agent sees its own position and velocity and chooses an acceleration in [-1, 1]. In a step
    the position moves by velocity x 0.1, then the velocity changes by the action, then both are
    clipped to [-1, 1]. Each food is worth 1, shared among the agents in proportion to
    exp(-distance^2), distances taken from the positions before clipping. The reward of an agent is
    the sum of its shares minus 1. Rewards sum to zero over the agents *exactly*: they are rounded
    to multiples of 2^-40 and the last agent receives the rest.

    Episodes start with positions and velocities uniform in [-1, 1], end by the time limit, and are
    won by the agent with the greatest return. Environment `i` draws from a random stream of its
    own, `SeedSequence(seed).spawn(num_envs)[i]`: what it does depends on the seed, on `i` and on
    its actions, not on how many environments there are.
    """

    def __init__(
        self,
        num_envs: int,
        seed: int | np.random.SeedSequence = 0,
        num_agents: int = 3,
        max_episode_steps: int = 200,
    ) -> None:
        """Set up `num_envs` games; call `reset` before `step`.

        Args:
            num_envs: games played at once.
            seed: root of the random streams, not negative.
            num_agents: players per game, at least 2.
            max_episode_steps: length of every episode, in steps.

        Raises:
            ConfigError: fewer than 2 agents, a negative seed, or another number below 1.
        """
        require_positive(
            num_envs=num_envs, num_agents=num_agents, max_episode_steps=max_episode_steps
        )
        if num_agents < 2:
            raise ConfigError(f"num_agents must be at least 2, not {num_agents}: food is shared")
        if not isinstance(seed, np.random.SeedSequence):
            if seed < 0:
                raise ConfigError(f"seed must not be negative, is {seed}")
            seed = np.random.SeedSequence(seed)
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        agents = range(num_agents)
        self.observation_spaces = tuple(spaces.Box(-1.0, 1.0, (2,), np.float32) for _ in agents)
        self.action_spaces = tuple(spaces.Box(-1.0, 1.0, (1,), np.float32) for _ in agents)
        self.foods = np.linspace(-1.0, 1.0, num_agents)
        self._rngs = [np.random.default_rng(stream) for stream in seed.spawn(num_envs)]
        self._tracker = EpisodeTracker(num_agents, num_envs)
        self._started = False
        # Position and velocity on the last axis.
        self._state = np.zeros((num_agents, num_envs, 2), dtype=np.float64)
        self._last_rewards = np.zeros((num_agents, num_envs), dtype=np.float64)

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`; observations are `(N, 2)` float32: position, velocity."""
        self._started = True
        self._tracker.restart()
        self._last_rewards[:] = 0.0
        self._draw_starts(np.ones(self.num_envs, dtype=bool))
        return self._observe()

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """Move every agent of every game.

        Args:
            actions: per agent `(N, 1)` accelerations; clipped to [-1, 1].

        Returns:
            Observations `(N, 2)` float32 per agent, rewards `(A, N)`, dones `(N,)`, infos.

        Raises:
            ConfigError: actions of another shape, or not a number.
            AprlError: `reset` was never called.
        """
        if not self._started:
            raise AprlError("step before the first reset; call reset() once after construction")
        accelerations = self._checked(actions)
        position, velocity = self._state[..., 0], self._state[..., 1]
        moved = position + TIME_STEP * velocity
        self._last_rewards = shared_food_rewards(moved, self.foods)
        self._state = np.clip(np.stack([moved, velocity + accelerations], axis=-1), -1.0, 1.0)
        self._tracker.add(self._last_rewards)
        done = self._tracker.lengths >= self.max_episode_steps
        observations = self._observe()
        winners = self._tracker.winners()
        infos = terminal_infos(
            done=done,
            truncated=done,
            observations=observations,
            terms=[self.terms(agent) for agent in range(self.num_agents)],
            winners=winners,
            episodes=self._tracker.finish(done),
        )
        if done.any():
            self._draw_starts(done)
            observations = self._observe()
        return observations, self._last_rewards.copy(), done, infos

    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """Reward terms of the last step: `reward_move` is 0, `reward_remaining` all of it, `(N,)`.

        Raises:
            ConfigError: no such agent.
        """
        if agent_idx not in range(self.num_agents):
            raise ConfigError(f"agent_idx must be in 0..{self.num_agents - 1}, not {agent_idx!r}")
        return {
            "reward_move": np.zeros(self.num_envs),
            "reward_remaining": self._last_rewards[agent_idx].copy(),
        }

    def state_dict(self) -> dict[str, Any]:
        """Positions and velocities, last rewards, episodes in progress, and the random streams."""
        return {
            "started": self._started,
            "state": self._state.copy(),
            "last_rewards": self._last_rewards.copy(),
            "episodes": self._tracker.state_dict(),
            "rngs": [rng.bit_generator.state for rng in self._rngs],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ConfigError: saved for another number of agents or environments.
        """
        saved = saved_array(state, "state", self._state.shape, np.float64)
        rewards = saved_array(state, "last_rewards", self._last_rewards.shape, np.float64)
        self._tracker.load_state_dict(state["episodes"])
        self._state, self._last_rewards = saved, rewards
        for rng, stream in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = stream
        self._started = bool(state["started"])

    def get_simulator_state(self, env_ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """Games in progress as rows `(k, 3 A + 1)`, for branching; see `BranchableGame`."""
        ids = np.asarray(env_ids)
        motion = self._state[:, ids].transpose(1, 0, 2).reshape(len(ids), -1)
        lengths = self._tracker.lengths[ids, None]
        return np.concatenate([motion, self._tracker.returns[:, ids].T, lengths], axis=1)

    def set_simulator_state(self, env_ids: Sequence[int] | np.ndarray, rows: np.ndarray) -> None:
        """Put back rows of `get_simulator_state`, into the same or other environments."""
        ids, agents = np.asarray(env_ids), self.num_agents
        motion, returns, lengths = np.split(rows, [2 * agents, 3 * agents], axis=1)
        self._state[:, ids] = motion.reshape(len(ids), agents, 2).transpose(1, 0, 2)
        self._tracker.returns[:, ids] = returns.T
        self._tracker.lengths[ids] = lengths[:, 0]

    def _draw_starts(self, mask: np.ndarray) -> None:
        """Draw new starts where `mask` is True; the loop is over the episodes that begin."""
        for env in np.flatnonzero(mask):
            self._state[:, env] = self._rngs[env].uniform(-1.0, 1.0, (self.num_agents, 2))

    def _observe(self) -> Observations:
        return tuple(self._state.astype(np.float32))

    def _checked(self, actions: Sequence[np.ndarray]) -> np.ndarray:
        """Actions of all agents, clipped to the box, as a new `(A, N)` float64 array."""
        if len(actions) != self.num_agents:
            raise ConfigError(f"need the actions of {self.num_agents} agents, not {len(actions)}")
        accelerations = np.empty((self.num_agents, self.num_envs), dtype=np.float64)
        for agent, chosen in enumerate(actions):
            chosen = np.asarray(chosen)
            if chosen.shape != (self.num_envs, 1):
                raise ConfigError(
                    f"actions of agent {agent} must have shape ({self.num_envs}, 1), not "
                    f"{chosen.shape}"
                )
            accelerations[agent] = chosen[:, 0]
        bad = np.argwhere(np.isnan(accelerations))
        if bad.size:
            agent, env = bad[0]
            raise ConfigError(f"action of agent {agent} in environment {env} is not a number (NaN)")
        return np.clip(accelerations, -1.0, 1.0)


def shared_food_rewards(positions: np.ndarray, foods: np.ndarray) -> np.ndarray:
    """Each agent's share of the foods, minus 1.

    Args:
        positions: `(A, N)` positions of the agents.
        foods: `(A,)` positions of the foods, as many as agents.

    Returns:
        `(A, N)` rewards, multiples of 2^-40, whose sum over the agents is exactly 0.
    """
    weights = np.exp(-((positions[..., None] - foods) ** 2))
    shares = weights / weights.sum(axis=0)
    rewards = np.rint((shares.sum(axis=-1) - 1.0) / REWARD_QUANTUM) * REWARD_QUANTUM
    rewards[-1] = -rewards[:-1].sum(axis=0)
    return rewards


GAMES: dict[str, Callable[..., CrowdedLine]] = {"aprl/CrowdedLine-v0": CrowdedLine}
