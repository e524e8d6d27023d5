"""The learning algorithms that `rl_algo` names: how each is made, and what plays afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from aprl.policies.network import MlpPolicy, NetworkPolicy
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.squashed import SquashedPolicy
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.recurrent_ppo import (
    make_recurrent_ppo,
    recurrent_policy_of,
    recurrent_ppo_arguments,
)
from aprl.training.sac import make_sac, sac_arguments, sac_policy_of


@dataclass(frozen=True)
class Algorithm:
    """What a training run needs to know of an algorithm.

    Attributes:
        name: in configs.
        arguments: from `rl_args`, `batch_size` and `num_env` to constructor arguments; checks them.
        make: from environment, arguments, learning rate, seed and start policy to a learner.
        policy_of: from learner and normaliser to the policy that plays.
        policy_class: of the policies that it makes and can go on from.
        replays: learns from a replay buffer, so that its state is large.
        discrete: can learn to choose among discrete actions.
    """

    name: str
    arguments: Callable[[dict[str, Any], int, int], dict[str, Any]]
    make: Callable[..., BaseAlgorithm]
    policy_of: Callable[..., NetworkPolicy]
    policy_class: type[NetworkPolicy]
    replays: bool = False
    discrete: bool = True


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("ppo", ppo_arguments, make_ppo, policy_of, MlpPolicy),
        Algorithm(
            "recurrent_ppo",
            recurrent_ppo_arguments,
            make_recurrent_ppo,
            recurrent_policy_of,
            LstmPolicy,
        ),
        Algorithm(
            "sac",
            sac_arguments,
            make_sac,
            sac_policy_of,
            SquashedPolicy,
            replays=True,
            discrete=False,
        ),
    )
}
ALGORITHM_ALIASES = {"ppo2": "ppo"}  # names of the TensorFlow era
