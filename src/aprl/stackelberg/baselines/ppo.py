"""Model-free PPO in the true world, with SB3."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.runner import Report
from aprl.stackelberg.sb3 import (
    ENDLESS,
    AfterUpdate,
    isolated_random_state,
    make_ppo,
    state_modes,
)


@dataclass(frozen=True)
class PPOConfig:
    """Options of model-free PPO."""

    ppo: dict[str, Any] = field(default_factory=dict)  # of SB3's PPO; its defaults for the rest


class ModelFreePPO:
    """PPO on one-hot states."""

    def __init__(self, config: PPOConfig) -> None:
        self.config = config

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; the mode of the policy is reported after each update."""
        with isolated_random_state():
            learner = make_ppo(env, seed, self.config.ppo)
            update = AfterUpdate(lambda: report(state_modes(learner, env.task.n_states)))
            learner.learn(ENDLESS, update)
