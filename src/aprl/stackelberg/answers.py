"""Two ways to let PPO handle a contextual follower's answers in the true world.

`AnswerSearch` treats the answers themselves as the parameters of the policy. `SampledAnswers` fills
them in from the samples seen so far, and lets PPO learn a policy that reads them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from aprl.configs.checks import require_within
from aprl.errors import ConfigError
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.mal import LOGIT_BOUND, softmax
from aprl.stackelberg.mdp import Task
from aprl.stackelberg.model import TransitionCounts, random_rows, uniform_rows
from aprl.stackelberg.oracle import ExactOracle, Oracle
from aprl.stackelberg.random_leaders import context_observations, context_space
from aprl.stackelberg.runner import Report
from aprl.stackelberg.sb3 import ENDLESS, AfterUpdate, isolated_random_state, make_ppo, modes

UNSEEN_ANSWERS = ("uniform", "redraw")


@dataclass(frozen=True)
class AnswerSearchConfig:
    """Options of the search for answers.

    Raises:
        ConfigError: a value out of range.
    """

    noise: float = 0.0  # probability that an episode is played by a fresh random policy
    # of SB3's PPO, one step of which is a whole episode
    ppo: dict[str, Any] = field(
        default_factory=lambda: {"n_steps": 8, "batch_size": 8, "learning_rate": 3e-3}
    )

    def __post_init__(self) -> None:
        require_within("noise", self.noise, 0, 1)


class AnswerVectorEnv(gym.Env[Any, Any]):
    """Exposes a follower's answer vector as the action: one step is an episode of the true world.

    The action is S * A * S logits, the reward the return of the follower that responds to them.

    Args:
        env: the true world.
        oracle: responds to the answers.
        noise: probability that an episode is played by a fresh random policy.
        seed: of the random policies.
    """

    def __init__(
        self, env: CountedEnv, oracle: Oracle, noise: float, seed: np.random.SeedSequence
    ) -> None:
        task = env.task
        self._env, self._oracle, self._noise = env, oracle, noise
        self._rng = np.random.default_rng(seed)
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        size = task.n_pairs * task.n_states
        self.action_space = spaces.Box(-LOGIT_BOUND, LOGIT_BOUND, (size,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """There is nothing to observe."""
        return np.ones(1, dtype=np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an episode with the response to these answers.

        Raises:
            BudgetSpent: no real samples are left.
        """
        task = self._env.task
        if self._noise and self._rng.random() < self._noise:
            policy = self._rng.integers(task.n_actions, size=(task.horizon, task.n_states))
        else:
            policy = self._oracle.respond(answers_from_logits(task, action))
        state, _ = self._env.reset()
        total, step, done = 0.0, 0, False
        while not done:
            actions = policy[step] if policy.ndim == 2 else policy
            state, reward, terminated, truncated, _ = self._env.step(int(actions[state]))
            total, step, done = total + reward, step + 1, terminated or truncated
        return np.ones(1, dtype=np.float32), total, True, False, {}


def answers_from_logits(task: Task, logits: np.ndarray) -> np.ndarray:
    """A context, S * A * S probabilities, from as many logits."""
    return softmax(np.reshape(logits, (task.n_pairs, task.n_states))).ravel()


class AnswerSearch:
    """Optimises the answer vector with PPO on real returns: the first approach.

    Args:
        config: options.
        make_oracle: the follower for a task; None: the planner.
    """

    def __init__(
        self, config: AnswerSearchConfig, make_oracle: Callable[[Task], Oracle] | None = None
    ) -> None:
        self.config, self._make_oracle = config, make_oracle or ExactOracle

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; the response to the mean answers is reported after each update."""
        oracle = self._make_oracle(env.task)
        learner_seed, env_seed = seed.spawn(2)
        with isolated_random_state():
            inner = AnswerVectorEnv(env, oracle, self.config.noise, env_seed)
            learner = make_ppo(inner, learner_seed, self.config.ppo)

            def report_response() -> None:
                logits = modes(learner, np.ones((1, 1), dtype=np.float32))
                report(oracle.respond(answers_from_logits(env.task, logits)))

            learner.learn(ENDLESS, AfterUpdate(report_response))


@dataclass(frozen=True)
class SampledAnswersConfig:
    """Options of PPO that reads the empirical mean.

    Raises:
        ConfigError: a value out of range.
    """

    unseen: str = "redraw"  # answers for pairs without samples: uniform, or drawn every episode
    noise: float = 0.0  # probability that an action is replaced by a random one
    # of SB3's PPO
    ppo: dict[str, Any] = field(
        default_factory=lambda: {"n_steps": 64, "n_epochs": 4, "learning_rate": 3e-3}
    )

    def __post_init__(self) -> None:
        if self.unseen not in UNSEEN_ANSWERS:
            raise ConfigError(f"unseen must be one of {UNSEEN_ANSWERS}, got {self.unseen!r}")
        require_within("noise", self.noise, 0, 1)


class SampledAnswersEnv(gym.Env[Any, Any]):
    """The true world, observed beside the answers that the samples so far give.

    Answers stay the same within an episode.

    Args:
        env: the true world.
        config: options.
        seed: of the answers that are drawn, and of random actions.
    """

    def __init__(
        self, env: CountedEnv, config: SampledAnswersConfig, seed: np.random.SeedSequence
    ) -> None:
        self._env, self._config = env, config
        self._rng = np.random.default_rng(seed)
        self.counts = TransitionCounts(env.task)
        self.observation_space = context_space(env.task)
        self.action_space = spaces.Discrete(env.task.n_actions)
        self._observations = self.observe_all()
        self._state = env.task.start

    def observe_all(self) -> np.ndarray:
        """`(S, S * A * S + S)`: what would be observed in each state with the present samples."""
        task = self._env.task
        draws = self._config.unseen == "redraw"
        rows = random_rows(task, self._rng) if draws else uniform_rows(task)
        model = self.counts.mean_model(rows)
        return context_observations(task, model.transitions.ravel())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Compute the answers anew and begin an episode."""
        self._observations = self.observe_all()
        self._state, _ = self._env.reset()
        return self._observations[self._state], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one real sample, and count it.

        Raises:
            BudgetSpent: none is left.
        """
        task = self._env.task
        if self._config.noise and self._rng.random() < self._config.noise:
            action = int(self._rng.integers(task.n_actions))
        pair = self._state * task.n_actions + int(action)
        self._state, reward, terminated, truncated, _ = self._env.step(int(action))
        self.counts.add(pair, self._state)
        return self._observations[self._state], float(reward), terminated, truncated, {}


class SampledAnswers:
    """PPO in the true world on states and answers built from samples: the second approach."""

    def __init__(self, config: SampledAnswersConfig) -> None:
        self.config = config

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; modes under the present answers are reported after each update."""
        learner_seed, env_seed = seed.spawn(2)
        with isolated_random_state():
            inner = SampledAnswersEnv(env, self.config, env_seed)
            learner = make_ppo(inner, learner_seed, self.config.ppo)
            update = AfterUpdate(
                lambda: report(modes(learner, inner.observe_all()).astype(np.int64))
            )
            learner.learn(ENDLESS, update)
