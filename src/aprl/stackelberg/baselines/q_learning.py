"""Q-learning (Watkins, 1989), Dyna-Q and Dyna-Q+ (Sutton, 1990)."""

import math
from dataclasses import dataclass

import numpy as np

from aprl.configs.checks import require_at_least, require_within
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.runner import Report


@dataclass(frozen=True)
class DynaQConfig:
    """Options; without planning steps this is Q-learning.

    Raises:
        ConfigError: a value out of range.
    """

    epsilon: float = 0.1  # probability of a uniformly random action
    alpha: float = 0.1  # learning rate
    gamma: float = 0.95  # discount
    planning_steps: int = 0  # updates from the remembered model after each real sample
    kappa: float = 0.0  # Dyna-Q+: bonus kappa * sqrt(samples since the pair was last tried)
    initial_value: float = 0.0  # of every pair

    def __post_init__(self) -> None:
        require_at_least("planning_steps", self.planning_steps, 0)
        for name in ("epsilon", "alpha", "gamma"):
            require_within(name, getattr(self, name), 0, 1)
        require_within("kappa", self.kappa, 0, math.inf, open_high=True)
        require_within("initial_value", self.initial_value, -1e9, 1e9)


class DynaQ:
    """Tabular Q-learning with updates from a remembered model.

    The model is that of the textbook: the last transition seen of each pair. With `kappa`, pairs
    that were never tried in states that were visited are planned with too, as leading back to
    their own state for no reward (Sutton and Barto, 2018, section 8.3).
    """

    def __init__(self, config: DynaQConfig) -> None:
        self.config = config

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; the greedy policy is reported whenever it changes."""
        config, task = self.config, env.task
        rng = np.random.default_rng(seed)
        q = np.full((task.n_states, task.n_actions), float(config.initial_value))
        q[task.final] = 0.0
        memory = _Memory(task.n_actions, with_untried=config.kappa > 0)
        greedy = q.argmax(axis=1)
        report(greedy)
        while True:
            state, _ = env.reset()
            done = False
            while not done:
                action = self._choose(q[state], rng)
                successor, reward, terminated, truncated, _ = env.step(action)
                self._update(q, state, action, reward, successor, terminated)
                if config.planning_steps:
                    memory.remember(state, action, reward, successor, terminated, env.samples)
                    self._plan(q, memory, env.samples, rng)
                now = q.argmax(axis=1)
                if (now != greedy).any():
                    greedy = now
                    report(greedy)
                state, done = successor, terminated or truncated

    def _choose(self, values: np.ndarray, rng: np.random.Generator) -> int:
        if rng.random() < self.config.epsilon:
            return int(rng.integers(len(values)))
        best = np.flatnonzero(values == values.max())
        return int(best[rng.integers(len(best))])

    def _update(
        self, q: np.ndarray, state: int, action: int, reward: float, successor: int, ends: bool
    ) -> None:
        ahead = 0.0 if ends else self.config.gamma * q[successor].max()
        q[state, action] += self.config.alpha * (reward + ahead - q[state, action])

    def _plan(self, q: np.ndarray, memory: "_Memory", now: int, rng: np.random.Generator) -> None:
        for index in rng.integers(len(memory.pairs), size=self.config.planning_steps).tolist():
            state, action = memory.pairs[index]
            reward, successor, ends, when = memory.outcomes[state, action]
            if self.config.kappa:
                reward += self.config.kappa * np.sqrt(now - when)
            self._update(q, state, action, reward, successor, ends)


class _Memory:
    """Last outcome of each pair: reward, next state, whether it ended, sample number."""

    def __init__(self, n_actions: int, with_untried: bool) -> None:
        self._n_actions, self._with_untried = n_actions, with_untried
        self.pairs: list[tuple[int, int]] = []
        self.outcomes: dict[tuple[int, int], tuple[float, int, bool, int]] = {}

    def remember(
        self, state: int, action: int, reward: float, successor: int, ends: bool, now: int
    ) -> None:
        if self._with_untried and (state, 0) not in self.outcomes:
            for untried in range(self._n_actions):
                self.pairs.append((state, untried))
                self.outcomes[state, untried] = (0.0, state, False, 0)
        if (state, action) not in self.outcomes:
            self.pairs.append((state, action))
        self.outcomes[state, action] = (reward, successor, ends, now)
