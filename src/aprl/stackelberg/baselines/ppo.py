"""Model-free PPO in the true world, with SB3."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.mal_tabular import Report
from aprl.stackelberg.sb3 import (
    ENDLESS,
    AfterUpdate,
    isolated_random_state,
    make_ppo,
    state_modes,
)


class ModelFreePPO:
    """PPO on one-hot states.

    Args:
        arguments: of SB3's PPO; those that are left out are SB3's defaults.
    """

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        self.arguments = dict(arguments or {})

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; the mode of the policy is reported after each update."""
        with isolated_random_state():
            learner = make_ppo(env, seed, self.arguments)
            update = AfterUpdate(lambda: report(state_modes(learner, env.task.n_states)))
            learner.learn(ENDLESS, update)
