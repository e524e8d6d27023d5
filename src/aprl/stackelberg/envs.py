"""The worlds as Gymnasium environments, and the counter of real samples.

Every world of the registry is registered as `aprl/<name>-v0`. Training code is handed a
`CountedEnv` and nothing else of the true world.
"""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from scipy import sparse

from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.worlds import RANDOM_WORLD, WORLDS, make_world

Transition = tuple[int, Any, bool, bool, dict[str, Any]]  # of which Any: the reward, a number


class FiniteMDPEnv(gym.Env[Any, Any]):
    """A finite MDP to act in; observations are state numbers, actions action numbers.

    Args:
        world: true world or model.
        seed: of the transitions drawn, until `reset(seed=...)` gives another.
    """

    def __init__(self, world: FiniteMDP, seed: int | np.random.SeedSequence = 0) -> None:
        self._task = world.task
        self.observation_space = spaces.Discrete(world.task.n_states)
        self.action_space = spaces.Discrete(world.task.n_actions)
        self._world = world
        self._rows: dict[int, tuple[list[int], np.ndarray, list[float]]] = {}
        self.np_random = np.random.default_rng(seed)
        self._state, self._steps = world.task.start, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode in the start state."""
        super().reset(seed=seed)
        self._state, self._steps = self._task.start, 0
        return self._state, {}

    def step(self, action: int) -> Transition:
        """Draw a transition; a final state terminates, the horizon truncates."""
        pair = self._state * self._task.n_actions + int(action)
        if pair not in self._rows:
            self._rows[pair] = self._row(pair)
        successors, cumulative, rewards = self._rows[pair]
        drawn = int(cumulative.searchsorted(self.np_random.random(), side="right"))
        self._state = successors[drawn]
        self._steps += 1
        terminated = bool(self._task.final[self._state])
        truncated = not terminated and self._steps >= self._task.horizon
        return self._state, rewards[drawn], terminated, truncated, {}

    def _row(self, pair: int) -> tuple[list[int], np.ndarray, list[float]]:
        """Successors, their cumulative probabilities without the last, and rewards."""
        row, paid = self._world.transitions[[pair]], self._task.rewards[[pair]]
        if sparse.issparse(row):
            row, paid = row.toarray(), paid.toarray()
        successors = np.flatnonzero(row[0])
        return (
            successors.tolist(),
            np.cumsum(row[0, successors])[:-1],
            paid[0, successors].tolist(),
        )


class BudgetSpent(Exception):
    """The budget of real samples is used up; ends training, and is no error."""


class CountedEnv(gym.Env[Any, Any]):
    """A world to learn in, whose steps are counted; the only access that training code gets.

    The environment behind it is reachable by no attribute (`unwrapped` is this object), and the
    count can only be read. A sample is a call of `step`; resets are free.

    Args:
        env: a finite world.
        task: what the learner may know about it.
        budget: samples after which `step` raises `BudgetSpent`; None: no bound.
    """

    def __init__(self, env: gym.Env[Any, Any], task: Task, budget: int | None = None) -> None:
        self.task = task
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        count = 0

        def step(action: int) -> Transition:
            nonlocal count
            if budget is not None and count >= budget:
                raise BudgetSpent(f"{budget} samples")
            count += 1
            return env.step(action)

        def reset() -> tuple[int, dict[str, Any]]:
            return env.reset()

        self._step, self._reset = step, reset
        self._count: Callable[[], int] = lambda: count

    @property
    def samples(self) -> int:
        """Real samples taken so far."""
        return self._count()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode; no sample. The seed of the world is not the learner's to choose."""
        return self._reset()

    def step(self, action: int) -> Transition:
        """Take one real sample.

        Raises:
            BudgetSpent: there is none left.
        """
        return self._step(action)


def make_env(name: str, world_seed: int = 0, horizon: int | None = None) -> FiniteMDPEnv:
    """A world of the registry to act in; see `aprl.stackelberg.worlds.make_world`."""
    return FiniteMDPEnv(make_world(name, world_seed, horizon))


def register_worlds() -> None:
    """Make `gymnasium.make("aprl/<world>-v0")` work for all worlds; safe to call again."""
    for name in (*WORLDS, RANDOM_WORLD):
        env_id = f"aprl/{name}-v0"
        if env_id not in gym.registry:
            gym.register(env_id, entry_point=f"{__name__}:make_env", kwargs={"name": name})


register_worlds()
