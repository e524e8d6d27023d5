"""Model-free PPO in the true world, with SB3."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO

from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.mal_tabular import Report
from aprl.stackelberg.sb3 import AfterUpdate, isolated_random_state, make_ppo

ENDLESS = 2**31 - 1  # steps; the budget ends the run


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
            states = torch.arange(env.task.n_states)
            learner.learn(ENDLESS, AfterUpdate(lambda: report(modes(learner, states))))


def modes(learner: PPO, observations: torch.Tensor) -> np.ndarray:
    """Most likely action for each of a batch of observations."""
    with torch.no_grad():
        distribution = learner.policy.get_distribution(observations)
        return distribution.mode().numpy().astype(np.int64)
