"""How good an imitator is: its returns beside the expert's and a random policy's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from stable_baselines3.common.vec_env import VecEnv

from aprl.imitation.rollouts import collect_trajectories
from aprl.imitation.trajectories import Trajectory
from aprl.policies.base import Policy
from aprl.policies.simple import RandomPolicy
from aprl.stats import MeanEstimate


@dataclass(frozen=True)
class Comparison:
    """Mean returns per episode.

    Attributes:
        learned: of the imitator.
        expert: of the demonstrations; its mean is NaN if their rewards were not observed.
        random: of uniformly random actions.
    """

    learned: MeanEstimate
    expert: MeanEstimate
    random: MeanEstimate

    @property
    def normalised(self) -> float:
        """The imitator's return where random is 0 and the expert 1."""
        return (self.learned.mean - self.random.mean) / (self.expert.mean - self.random.mean)

    def to_dict(self) -> dict[str, Any]:
        """As JSON types; numbers that are not finite become None."""
        result: dict[str, Any] = {"normalised": _finite(self.normalised)}
        for name in ("learned", "expert", "random"):
            estimate: MeanEstimate = getattr(self, name)
            result[name] = {
                "mean": _finite(estimate.mean),
                "interval": [_finite(bound) for bound in estimate.interval],
                "episodes": estimate.count,
            }
        return result

    def table(self, title: str) -> Table:
        """Returns with 95 % intervals and numbers of episodes."""
        table = Table(title=title)
        for column in ("policy", "mean return [95 %] (episodes)"):
            table.add_column(column)
        for name in ("learned", "expert", "random"):
            table.add_row(name, str(getattr(self, name)))
        table.add_row("learned, random 0 and expert 1", f"{self.normalised:.3f}")
        return table


def compare_returns(
    venv: VecEnv,
    policy: Policy,
    demonstrations: Sequence[Trajectory],
    episodes: int,
    seed: np.random.SeedSequence,
) -> Comparison:
    """Play the imitator and a random policy, and take the expert's returns as they were recorded.

    Args:
        venv: not the one that was trained on; it is reset.
        policy: the imitator; it samples its actions.
        demonstrations: the expert's episodes.
        episodes: per policy.
        seed: of both policies' actions.
    """
    own_seed, random_seed = seed.spawn(2)
    policy.seed(own_seed)
    baseline = RandomPolicy(policy.observation_space, policy.action_space, random_seed)
    returns = [
        [t.total_reward for t in collect_trajectories(venv, player, episodes)]
        for player in (policy, baseline)
    ]
    observed = [t.total_reward for t in demonstrations if t.rewards is not None]
    return Comparison(
        MeanEstimate.of(returns[0]), MeanEstimate.of(observed), MeanEstimate.of(returns[1])
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
