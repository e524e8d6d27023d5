"""The loop that learns a reward and a policy in turns (Christiano et al., NeurIPS 2017)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError
from aprl.reward_preprocessing.preferences import (
    Comparisons,
    fit_reward,
    oracle_preferences,
    sample_fragments,
    true_returns,
)
from aprl.reward_preprocessing.rl import Learner
from aprl.reward_preprocessing.rollouts import EpsilonPolicy, MakeEnv, play_episodes
from aprl.reward_preprocessing.trajectories import Trajectory
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import RewardInputs, RewardNet
from aprl.rewards.potentials import Potential


@dataclass(frozen=True)
class DrlhpOptions:
    """How to learn; attributes as in `aprl.reward_preprocessing.train_drlhp`.

    Raises:
        ConfigError: a value out of range.
    """

    fragment_length: int
    total_comparisons: int
    comparisons_per_iteration: int
    random_frac: float
    transition_oversampling: float
    temperature: float
    gamma: float
    reward_epochs: int
    reward_batch_size: int
    reward_lr: float
    total_timesteps: int

    def __post_init__(self) -> None:
        for name in (
            "fragment_length",
            "total_comparisons",
            "comparisons_per_iteration",
            "reward_epochs",
            "reward_batch_size",
            "total_timesteps",
        ):
            require_at_least(name, getattr(self, name), 1)
        if not 0 <= self.random_frac <= 1:
            raise ConfigError(f"random_frac must be in [0, 1], got {self.random_frac}")
        if not 1 <= self.transition_oversampling < math.inf:
            raise ConfigError(
                f"transition_oversampling must be at least 1, got {self.transition_oversampling}"
            )
        if not self.temperature >= 0:
            raise ConfigError(f"temperature must be at least 0, got {self.temperature}")
        if not 0 < self.reward_lr < math.inf:
            raise ConfigError(f"reward_lr must be positive, got {self.reward_lr}")


@dataclass(frozen=True)
class IterationReport:
    """What an iteration came to.

    Attributes:
        iteration: from 0.
        comparisons: made so far.
        loss: of the reward, mean cross-entropy in nats.
        accuracy: share of the comparisons that the reward orders like the oracle.
        mean_return: undiscounted true return of the episodes that were compared.
        steps: of the policy so far.
    """

    iteration: int
    comparisons: int
    loss: float
    accuracy: float
    mean_return: float
    steps: int

    def to_json(self) -> dict[str, Any]:
        """As JSON types; what is not a number is None."""
        values = asdict(self)
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}


def learn_from_preferences(
    net: RewardNet,
    learner: Learner,
    make_env: MakeEnv,
    options: DrlhpOptions,
    seed: np.random.SeedSequence,
    potential: Potential | None = None,
    on_iteration: Callable[[IterationReport], None] | None = None,
) -> list[IterationReport]:
    """Play, compare fragments, fit the reward, train the policy; and again.

    Args:
        net: the reward; trained in place.
        learner: trains on `net`.
        make_env: builds an environment whose rewards the oracle knows.
        options: see `DrlhpOptions`.
        seed: of everything that is random but the learner.
        potential: the oracle judges returns as if shaped by it; None judges them as they are.
        on_iteration: told each report.

    Raises:
        TrajectoryError: fragments longer than any episode.
    """
    count = math.ceil(options.total_comparisons / options.comparisons_per_iteration)
    comparisons: Comparisons | None = None
    reports = []
    for iteration, child in enumerate(seed.spawn(count)):
        play_seed, compare_seed, fit_seed = child.spawn(3)
        asked = 0 if comparisons is None else len(comparisons)
        wanted = min(options.comparisons_per_iteration, options.total_comparisons - asked)
        steps = math.ceil(2 * wanted * options.fragment_length * options.transition_oversampling)
        trajectories = _play(learner, make_env, options.random_frac, steps, play_seed)
        if iteration == 0:
            t = Transitions.from_trajectories(trajectories)
            columns = RewardInputs.raw(t.states, t.actions, t.next_states, t.terminated)
            net.update_statistics(*columns)
        compared = compare(trajectories, wanted, options, compare_seed, potential)
        comparisons = compared if comparisons is None else comparisons.extended(compared)
        fit = fit_reward(
            net,
            comparisons,
            gamma=options.gamma,
            epochs=options.reward_epochs,
            batch_size=options.reward_batch_size,
            lr=options.reward_lr,
            seed=fit_seed,
        )
        _train_policy(learner, net, trajectories, options.total_timesteps, iteration, count)
        reports.append(
            IterationReport(
                iteration,
                len(comparisons),
                fit.loss,
                fit.accuracy,
                float(np.mean([t.rewards.sum() for t in trajectories])),
                learner.ppo.num_timesteps,
            )
        )
        if on_iteration is not None:
            on_iteration(reports[-1])
    return reports


def _play(
    learner: Learner,
    make_env: MakeEnv,
    random_frac: float,
    steps: int,
    seed: np.random.SeedSequence,
) -> list[Trajectory]:
    coin_seed, *env_seeds = seed.spawn(5)
    envs = [make_env() for _ in env_seeds]
    act = EpsilonPolicy(learner.policy(), envs[0].action_space, random_frac, coin_seed)
    trajectories = play_episodes(envs, act, steps, env_seeds)
    for env in envs:
        env.close()
    return trajectories


def compare(
    trajectories: Sequence[Trajectory],
    count: int,
    options: DrlhpOptions,
    seed: np.random.SeedSequence,
    potential: Potential | None = None,
) -> Comparisons:
    """Draw pairs of fragments and let the oracle compare them."""
    fragment_rng, oracle_rng = (np.random.default_rng(s) for s in seed.spawn(2))
    first, second = (
        sample_fragments(trajectories, options.fragment_length, count, fragment_rng)
        for _ in range(2)
    )
    returns = [true_returns(fragments, options.gamma, potential) for fragments in (first, second)]
    preference = oracle_preferences(returns[0], returns[1], options.temperature, oracle_rng)
    return Comparisons(first, second, preference)


def _train_policy(
    learner: Learner,
    net: RewardNet,
    trajectories: Sequence[Trajectory],
    total_steps: int,
    iteration: int,
    iterations: int,
) -> None:
    """Train the policy up to its share of all steps, on the reward as it is now, standardised."""
    rewards = net.rewards(Transitions.from_trajectories(trajectories))
    assert learner.reward_env is not None
    learner.reward_env.mean = float(rewards.mean())
    learner.reward_env.std = float(rewards.std()) or 1.0
    due = total_steps * (iteration + 1) // iterations - learner.ppo.num_timesteps
    if due > 0:
        learner.ppo.learn(due, reset_num_timesteps=iteration == 0)
