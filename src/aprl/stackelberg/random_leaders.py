"""The follower's training ground in MAL: episodes in random models, whose answers it sees."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from aprl.stackelberg.mdp import Task
from aprl.stackelberg.model import random_rows, with_final_states

# Concentrations of the Dirichlet distributions that rows are drawn from, log-uniform: real worlds
# and empirical means are often nearly deterministic, draws of concentration 1 hardly ever.
LEAST_CONCENTRATION, GREATEST_CONCENTRATION = 0.05, 1.0


def context_space(task: Task) -> spaces.Box:
    """Observations of a contextual follower: S * A * S answers, then the state one-hot."""
    size = task.n_pairs * task.n_states + task.n_states
    return spaces.Box(0.0, 1.0, (size,), np.float32)


def context_observations(task: Task, context: np.ndarray) -> np.ndarray:
    """`(S, S * A * S + S)`: what the follower observes in each state, given the answers."""
    answers = np.broadcast_to(context, (task.n_states, context.size))
    return np.hstack([answers, np.eye(task.n_states)]).astype(np.float32)


class RandomLeaders(VecEnv):
    """A batch of episodes, each in a random model of its own, stepped together.

    Args:
        task: rewards, horizon and final states.
        num_envs: episodes at once.
        seed: of models and transitions.
    """

    def __init__(self, task: Task, num_envs: int, seed: np.random.SeedSequence) -> None:
        super().__init__(num_envs, context_space(task), spaces.Discrete(task.n_actions))
        self._task = task
        self._rng = np.random.default_rng(seed)
        self._rows = np.zeros((num_envs, task.n_pairs, task.n_states))
        self._states = np.zeros(num_envs, dtype=np.int64)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._actions = np.zeros(num_envs, dtype=np.int64)

    def reset(self) -> np.ndarray:
        """Draw a model for every episode."""
        self._begin(np.ones(self.num_envs, dtype=bool))
        return self._observe()

    def _begin(self, which: np.ndarray) -> None:
        low, high = math.log(LEAST_CONCENTRATION), math.log(GREATEST_CONCENTRATION)
        for env in np.flatnonzero(which):
            concentration = np.exp(self._rng.uniform(low, high, self._task.n_pairs))
            rows = random_rows(self._task, self._rng, concentration)
            self._rows[env] = with_final_states(self._task, rows)
        self._states[which] = self._task.start
        self._steps[which] = 0

    def _observe(self) -> np.ndarray:
        flat = self._rows.reshape(self.num_envs, -1)
        return np.hstack([flat, np.eye(self._task.n_states)[self._states]]).astype(np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        """See `VecEnv.step_async`."""
        self._actions = np.asarray(actions, dtype=np.int64)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """See `VecEnv.step_wait`; episodes that end begin anew in another model."""
        task = self._task
        pairs = self._states * task.n_actions + self._actions
        cumulative = self._rows[np.arange(self.num_envs), pairs].cumsum(axis=1)
        drawn = self._rng.random((self.num_envs, 1)) * cumulative[:, -1:]
        self._states = (cumulative <= drawn).sum(axis=1)
        self._steps += 1
        rewards = task.rewards[pairs, self._states].astype(np.float32)
        ended = task.final[self._states]
        dones = ended | (self._steps >= task.horizon)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if dones.any():
            last = self._observe()
            for env in np.flatnonzero(dones):
                infos[env]["terminal_observation"] = last[env]
                infos[env]["TimeLimit.truncated"] = not ended[env]
            self._begin(dones)
        return self._observe(), rewards, dones, infos

    def close(self) -> None:
        """Nothing is held open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """See `VecEnv.get_attr`."""
        return [getattr(self, attr_name, None)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not supported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("episodes of a batch share their attributes")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Not supported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("episodes of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No wrappers."""
        return [False] * len(list(self._get_indices(indices)))
