"""Iterated two-player matrix games: small, exact, without randomness; good for tests and demos."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.base import Observations, Step, VecMultiEnv
from aprl.envs.episodes import EpisodeTracker, require_positive, saved_array, terminal_infos
from aprl.errors import ConfigError

MATCHING_PENNIES = np.array([[1.0, -1.0], [-1.0, 1.0]])
ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


class MatrixGame(VecMultiEnv):
    """One matrix game played over and over until the time limit.

    Both agents choose one of `n` actions at once. Each then observes the *other* agent's action (0
    at the start of an episode) and is paid `payoff[agent, a0, a1]`. Every episode ends by the time
    limit; its winner is the agent with the greater return.
    """

    def __init__(
        self,
        payoff: np.ndarray,
        num_envs: int,
        seed: int = 0,
        max_episode_steps: int = 200,
    ) -> None:
        """Set up `num_envs` games, all at the start of an episode.

        Args:
            payoff: `(2, n, n)`, reward of each agent by action of agent 0, then of agent 1.
            num_envs: games played at once.
            seed: accepted because every game takes one; nothing here is random.
            max_episode_steps: length of every episode, in steps.

        Raises:
            ConfigError: a payoff of another shape or not finite, or a number below 1.
        """
        require_positive(num_envs=num_envs, max_episode_steps=max_episode_steps)
        payoff = np.array(payoff, dtype=np.float64)
        n = payoff.shape[-1] if payoff.ndim else 0
        if n < 1 or payoff.shape != (2, n, n):
            raise ConfigError(f"payoff must have shape (2, n, n), not {payoff.shape}")
        if not np.isfinite(payoff).all():
            raise ConfigError(f"payoff must be finite, not {payoff.tolist()}")
        self.payoff = payoff
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.observation_spaces = (spaces.Discrete(n), spaces.Discrete(n))
        self.action_spaces = (spaces.Discrete(n), spaces.Discrete(n))
        self._tracker = EpisodeTracker(2, num_envs)
        self._last_actions = np.zeros((2, num_envs), dtype=np.int64)
        self._last_rewards = np.zeros((2, num_envs), dtype=np.float64)

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`; observations are `(N,)` int64 zeros."""
        self._tracker.restart()
        self._last_actions[:] = 0
        self._last_rewards[:] = 0.0
        return self._observe()

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """Play one round in every game.

        Args:
            actions: per agent `(N,)` integers in `[0, n)`.

        Returns:
            Observations `(N,)` int64 per agent, rewards `(2, N)`, dones `(N,)`, infos.

        Raises:
            ConfigError: an action of another shape or type, or out of range.
        """
        self._last_actions = self._checked(actions)
        self._last_rewards = self.payoff[:, self._last_actions[0], self._last_actions[1]]
        self._tracker.add(self._last_rewards)
        done = self._tracker.lengths >= self.max_episode_steps
        winners = self._tracker.winners()
        infos = terminal_infos(
            done=done,
            truncated=done,
            observations=self._observe(),
            terms=[self.terms(0), self.terms(1)],
            winners=winners,
            episodes=self._tracker.finish(done),
        )
        self._last_actions[:, done] = 0
        return self._observe(), self._last_rewards.copy(), done, infos

    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """Reward terms of the last step: `reward_move` is 0, `reward_remaining` the payoff, `(N,)`.

        Raises:
            ConfigError: no such agent.
        """
        if agent_idx not in (0, 1):
            raise ConfigError(f"agent_idx must be 0 or 1, not {agent_idx!r}")
        return {
            "reward_move": np.zeros(self.num_envs),
            "reward_remaining": self._last_rewards[agent_idx].copy(),
        }

    def state_dict(self) -> dict[str, Any]:
        """Last actions and rewards, and the episodes in progress."""
        return {
            "last_actions": self._last_actions.copy(),
            "last_rewards": self._last_rewards.copy(),
            "episodes": self._tracker.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ConfigError: saved for another number of environments.
        """
        shape = self._last_actions.shape
        actions = saved_array(state, "last_actions", shape, np.int64)
        rewards = saved_array(state, "last_rewards", shape, np.float64)
        self._tracker.load_state_dict(state["episodes"])
        self._last_actions, self._last_rewards = actions, rewards

    def _observe(self) -> Observations:
        return self._last_actions[1].copy(), self._last_actions[0].copy()

    def _checked(self, actions: Sequence[np.ndarray]) -> np.ndarray:
        """Actions of both agents as a new `(2, N)` int64 array."""
        if len(actions) != 2:
            raise ConfigError(f"a matrix game takes the actions of 2 agents, not of {len(actions)}")
        n = self.payoff.shape[-1]
        checked = np.empty_like(self._last_actions)
        for agent, chosen in enumerate(actions):
            chosen = np.asarray(chosen)
            if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
                raise ConfigError(
                    f"actions of agent {agent} must be integers of shape ({self.num_envs},), not "
                    f"{chosen.dtype} of shape {chosen.shape}"
                )
            outside = np.flatnonzero((chosen < 0) | (chosen >= n))
            if outside.size:
                env = outside[0]
                raise ConfigError(
                    f"action {chosen[env]} of agent {agent} in environment {env} is not one of "
                    f"0..{n - 1}"
                )
            checked[agent] = chosen
        return checked


def matching_pennies(num_envs: int, seed: int = 0, max_episode_steps: int = 200) -> MatrixGame:
    """Iterated matching pennies (heads, tails): agent 0 gains 1 on a match and loses 1 otherwise.

    Zero-sum; arguments and errors as of `MatrixGame`.
    """
    payoff = np.stack([MATCHING_PENNIES, -MATCHING_PENNIES])
    return MatrixGame(payoff, num_envs, seed, max_episode_steps)


def rock_paper_scissors(num_envs: int, seed: int = 0, max_episode_steps: int = 200) -> MatrixGame:
    """Iterated rock (0), paper (1), scissors (2): 1 for a win, -1 for a loss, 0 for a draw.

    Zero-sum; arguments and errors as of `MatrixGame`.
    """
    payoff = np.stack([ROCK_PAPER_SCISSORS, -ROCK_PAPER_SCISSORS])
    return MatrixGame(payoff, num_envs, seed, max_episode_steps)


GAMES: dict[str, Callable[..., MatrixGame]] = {
    "aprl/IteratedMatchingPennies-v0": matching_pennies,
    "aprl/RockPaperScissors-v0": rock_paper_scissors,
}
