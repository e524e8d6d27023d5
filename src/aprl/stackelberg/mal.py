"""MAL as published: the model leads, is asked first, and learns with PPO what to answer."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from aprl.configs.checks import require_at_least, require_within
from aprl.errors import unknown_name
from aprl.stackelberg.envs import BudgetSpent, CountedEnv
from aprl.stackelberg.game import context_of, model_from_context, model_queries
from aprl.stackelberg.losses import LOSSES, Prediction
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.oracle import ExactOracle, Oracle
from aprl.stackelberg.runner import Report
from aprl.stackelberg.sb3 import AfterUpdate, isolated_random_state, make_ppo, modes

LOGIT_BOUND = 10.0  # SB3 wants bounded actions; beyond this a softmax is saturated
JUDGED = ("fresh", "committed")


@dataclass(frozen=True)
class MalConfig:
    """Options of MAL, MAL + reward and MAL + noise.

    Raises:
        ConfigError: a value out of range.
    """

    reward_weight: float = 0.0  # w: the leader gets w * reward per step - (1 - w) * mean loss
    noise: float = 0.0  # probability that an episode is played by a fresh random policy
    loss: str = "l2"  # of predictions, one of LOSSES
    # Predictions that are judged: those given anew at each real step, as published, or the answers
    # to which the follower responded, as the guarantee of Gerstgrasser and Parkes wants.
    judged: str = "fresh"
    leader_steps: int = 250_000  # of PPO, query steps included
    ppo: dict[str, Any] = field(default_factory=lambda: {"gamma": 1.0})  # of SB3's PPO

    def __post_init__(self) -> None:
        for name in ("reward_weight", "noise"):
            require_within(name, getattr(self, name), 0, 1)
        if self.loss not in LOSSES:
            raise unknown_name("loss", str(self.loss), LOSSES)
        if self.judged not in JUDGED:
            raise unknown_name("judged predictions", str(self.judged), JUDGED)
        require_at_least("leader_steps", self.leader_steps, 1)


class ModelLeaderEnv(gym.Env[Any, Any]):
    """What the leader of MAL learns in: S * A query steps, then the follower plays for real.

    Observations are the pair in question, state and action one-hot; actions are logits of the next
    state.
    Query steps pay nothing; real ones pay as `MalConfig.reward_weight` says, the loss at the end of
    the episode, as a mean per step, so that short episodes are not favoured. The horizon terminates
    the episode: it is part of the game, and undiscounted values beyond it would have no bound.

    Args:
        env: the true world; query steps take no sample of it.
        oracle: responds to the answers.
        config: options.
        seed: of the random policies.
    """

    def __init__(
        self, env: CountedEnv, oracle: Oracle, config: MalConfig, seed: np.random.SeedSequence
    ) -> None:
        task = env.task
        self._env, self._oracle, self._config = env, oracle, config
        self._rng = np.random.default_rng(seed)
        self._queries = model_queries(task)
        self._pairs = pair_observations(task)
        self.observation_space = spaces.Box(0.0, 1.0, self._pairs[0].shape, np.float32)
        self.action_space = spaces.Box(-LOGIT_BOUND, LOGIT_BOUND, (task.n_states,), np.float32)
        self._answers: list[np.ndarray] = []
        self._predictions: list[Prediction] = []
        self._policy: np.ndarray | None = None
        self._state = task.start

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin with the first query."""
        self._answers, self._predictions, self._policy = [], [], None
        return self._pairs[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take the answer to a query, or a prediction beside which a real sample is drawn.

        Raises:
            BudgetSpent: no real samples are left.
        """
        distribution = softmax(action)
        if self._policy is not None:
            return self._real_step(distribution)
        self._answers.append(distribution)
        if len(self._answers) < len(self._queries):
            return self._pairs[len(self._answers)], 0.0, False, False, {}
        self._policy = self._follower()
        self._state, _ = self._env.reset()
        return self._observe(), 0.0, False, False, {}

    def _follower(self) -> np.ndarray:
        task = self._env.task
        if self._config.noise and self._rng.random() < self._config.noise:
            return self._rng.integers(task.n_actions, size=(task.horizon, task.n_states))
        return self._oracle.respond(context_of(self._answers))

    def _next_action(self) -> int:
        assert self._policy is not None
        step = min(len(self._predictions), self._env.task.horizon - 1)
        actions = self._policy[step] if self._policy.ndim == 2 else self._policy
        return int(actions[self._state])

    def _observe(self) -> np.ndarray:
        return self._pairs[self._state * self._env.task.n_actions + self._next_action()]

    def _real_step(
        self, distribution: np.ndarray
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = self._next_action()
        pair = self._state * self._env.task.n_actions + action
        if self._config.judged == "committed":
            distribution = self._answers[pair]
        self._state, reward, terminated, truncated, _ = self._env.step(action)
        self._predictions.append(Prediction(pair, distribution, self._state))
        weight = self._config.reward_weight
        paid = weight * float(reward)
        if terminated or truncated:
            paid -= (1 - weight) * LOSSES[self._config.loss](self._predictions)
        return self._observe(), paid, terminated or truncated, False, {}


def pair_observations(task: Task) -> np.ndarray:
    """`(S * A, S + A)` float32: every pair, in the queries' order, state and action one-hot."""
    states, actions = np.array(model_queries(task)).T
    one_hot = [np.eye(task.n_states)[states], np.eye(task.n_actions)[actions]]
    return np.hstack(one_hot).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Distributions from logits along the last axis, in double precision."""
    weights = np.exp(np.asarray(logits, dtype=np.float64) - np.max(logits, axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class MalResult:
    """What MAL ended with.

    Attributes:
        model: the leader's answers without its noise.
        policy: the follower's response to it.
        real_samples: taken.
    """

    model: FiniteMDP
    policy: np.ndarray
    real_samples: int


class Mal:
    """MAL, ready to learn.

    Args:
        config: options.
        make_oracle: the follower for a task; None: the planner.
    """

    def __init__(
        self, config: MalConfig, make_oracle: Callable[[Task], Oracle] | None = None
    ) -> None:
        self.config, self._make_oracle = config, make_oracle or ExactOracle

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> MalResult:
        """See `Method.learn`; the response to the leader's mean answers is reported."""
        task, config = env.task, self.config
        oracle = self._make_oracle(task)
        learner_seed, env_seed = seed.spawn(2)
        pairs = pair_observations(task)

        def committed() -> FiniteMDP:
            return model_from_context(task, softmax(modes(learner, pairs)).ravel())

        with isolated_random_state():
            leader_env = ModelLeaderEnv(env, oracle, config, env_seed)
            learner = make_ppo(leader_env, learner_seed, config.ppo)
            update = AfterUpdate(lambda: report(oracle.best_response(committed())))
            with contextlib.suppress(BudgetSpent):
                learner.learn(config.leader_steps, update)
            model = committed()
        return MalResult(model, oracle.best_response(model), env.samples)
