"""Sample-efficient MAL: the leader is the mean of all samples, the follower best-responds to it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aprl.configs.checks import require_at_least, require_within
from aprl.errors import ConfigError, unknown_name
from aprl.stackelberg.envs import BudgetSpent, CountedEnv
from aprl.stackelberg.exploration import (
    CountBonus,
    FixedRows,
    OptimisticRows,
    PosteriorSampling,
    RedrawnRows,
    UnseenRule,
    ValueBonus,
)
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.model import TransitionCounts, random_model
from aprl.stackelberg.oracle import ExactOracle, Oracle
from aprl.stackelberg.planning import backward_induction
from aprl.stackelberg.runner import Report
from aprl.stackelberg.stopping import StoppingRule

UNSEEN_RULES: dict[str, Callable[[], UnseenRule]] = {
    "fixed": FixedRows,
    "redraw": RedrawnRows,
    "optimistic": OptimisticRows,
    "bonus": CountBonus,
    "value_bonus": ValueBonus,
    "posterior": PosteriorSampling,
}


@dataclass(frozen=True)
class TabularMalConfig:
    """Options of tabular MAL.

    Raises:
        ConfigError: a value out of range, or an unknown rule (near matches listed).
    """

    unseen: str = "value_bonus"  # handling of pairs without samples, one of UNSEEN_RULES
    initial_models: int = 0  # K: random models whose best responses are rolled out first
    noise: float = 0.0  # probability that an episode is played by a fresh random policy
    targeted: float = 0.0  # probability that an episode heads for the least visited pairs
    batch: int = 1  # episodes per iteration
    replan_within: bool = True  # a new iteration too whenever a pair's visits have doubled
    stop: StoppingRule | None = None  # None: sample until the budget is spent

    def __post_init__(self) -> None:
        if self.unseen not in UNSEEN_RULES:
            raise unknown_name("handling of unseen pairs", str(self.unseen), UNSEEN_RULES)
        require_at_least("initial_models", self.initial_models, 0)
        require_at_least("batch", self.batch, 1)
        for name in ("noise", "targeted"):
            require_within(name, getattr(self, name), 0, 1)
        if self.noise + self.targeted > 1:
            raise ConfigError(
                f"noise and targeted must add up to at most 1, got {self.noise + self.targeted}"
            )


@dataclass(frozen=True, eq=False)
class TabularMalResult:
    """What the leader and the follower ended with.

    Attributes:
        model: the leader's.
        policy: the follower's best response to it.
        counts: all samples.
        stopped: whether the stopping rule ended the run.
    """

    model: FiniteMDP
    policy: np.ndarray
    counts: TransitionCounts
    stopped: bool


class TabularMal:
    """Leader and follower, ready to learn.

    Args:
        config: options.
        make_oracle: a learned follower for a task; None: the planner.

    Raises:
        ConfigError: the exploration plans with bonuses, which a learned follower cannot.
    """

    def __init__(
        self, config: TabularMalConfig, make_oracle: Callable[[Task], Oracle] | None = None
    ) -> None:
        self.config, self._make_oracle = config, make_oracle or ExactOracle
        if make_oracle is not None and UNSEEN_RULES[config.unseen]().needs_planner:
            fitting = [name for name, rule in UNSEEN_RULES.items() if not rule().needs_planner]
            raise ConfigError(
                f"unseen={config.unseen} plans with bonuses, which a learned follower cannot be "
                f"told of; use one of {', '.join(fitting)}, or the exact oracle"
            )

    def learn(
        self, env: CountedEnv, seed: np.random.SeedSequence, report: Report
    ) -> TabularMalResult:
        """Sample until the stopping rule is content, or the budget is spent.

        Args:
            env: the true world.
            seed: of everything that is drawn here.
            report: told the deployed policy whenever it was computed anew.
        """
        oracle = self._make_oracle(env.task)
        run = _Run(self.config, oracle, env, np.random.default_rng(seed), report)
        try:
            while not run.finished:
                run.iteration()
        except BudgetSpent:
            run.respond()
        return TabularMalResult(run.model, run.response, run.counts, run.finished)


class _Run:
    def __init__(
        self,
        config: TabularMalConfig,
        oracle: Oracle,
        env: CountedEnv,
        rng: np.random.Generator,
        report: Report,
    ) -> None:
        self.config, self.oracle, self.env, self.rng = config, oracle, env, rng
        self.report = report
        self.counts = TransitionCounts(env.task)
        self.rule = UNSEEN_RULES[config.unseen]()
        self.episodes = 0
        self.finished = False
        self._previous: FiniteMDP | None = None
        self._passes = 0
        self._way: np.ndarray | None = None  # to what the stopping rule misses
        self.respond()

    def respond(self) -> None:
        """The leader commits to its model, the follower responds."""
        self.model = self.rule.leader_model(self.counts, self.rng)
        self.response = self.oracle.best_response(self.model)
        self.report(self.response.copy())

    def iteration(self) -> None:
        """Roll out a batch of episodes, respond anew, and see whether it is enough."""
        for _ in range(self.config.batch):
            self._episode()
        self.respond()
        if self.config.stop is not None:
            self._check_stop(self.config.stop)

    def _check_stop(self, stop: StoppingRule) -> None:
        calm = stop.at_rest(self._previous, self.model, self.counts)
        self._way = stop.way_to_unexplored(self.model, self.counts) if calm else None
        self._passes = self._passes + 1 if calm and self._way is None else 0
        self._previous = self.model
        self.finished = self._passes >= stop.patience

    def _episode(self) -> None:
        policy, adapts = self._policy()
        state, _ = self.env.reset()
        step, done = 0, False
        while not done:
            actions = policy[step] if policy.ndim == 2 else policy
            action = int(actions[state])
            pair = state * self.env.task.n_actions + action
            state, _, terminated, truncated, _ = self.env.step(action)
            self.counts.add(pair, state)
            step, done = step + 1, terminated or truncated
            visits = int(self.counts.visits[pair])
            doubled = visits & (visits - 1) == 0
            if self.config.replan_within and doubled and not done:
                self.respond()
                if adapts:
                    policy = self._exploring_policy()
        self.episodes += 1

    def _policy(self) -> tuple[np.ndarray, bool]:
        """Who plays the next episode, and whether it is planned anew as samples come in."""
        task = self.env.task
        if self.episodes < self.config.initial_models:
            return self.oracle.best_response(random_model(task, self.rng)), False
        if self._way is not None:
            return self._way, False
        chance = self.rng.random() if self.config.noise + self.config.targeted > 0 else 1.0
        if chance < self.config.noise:
            return self.rng.integers(task.n_actions, size=(task.horizon, task.n_states)), False
        if chance < self.config.noise + self.config.targeted:
            return targeted_policy(self.counts, self.model), False
        return self._exploring_policy(), True

    def _exploring_policy(self) -> np.ndarray:
        return self.rule.exploring_policy(
            self.counts, self.model, self.response, self.oracle, self.rng
        )


def targeted_policy(counts: TransitionCounts, model: FiniteMDP) -> np.ndarray:
    """`(H, S)`: the plan that expects to visit what was visited least, as far as it can be reached.

    Each visit is paid 1 / sqrt(visits), unseen pairs 2, whatever the task's rewards are.
    """
    novelty = np.where(counts.unseen, 2.0, 1.0 / np.sqrt(np.maximum(counts.visits, 1)))
    novelty[model.task.final_pairs] = 0.0
    return backward_induction(model.transitions, novelty, model.task.horizon).actions
