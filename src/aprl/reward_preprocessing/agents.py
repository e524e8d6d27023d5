"""Policies that act in rollouts: directories of this library, or Stable-Baselines3's files."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO
from torch import nn

from aprl.errors import PolicyError, first_line
from aprl.files import PathLike
from aprl.policies.loader import resolve_policy_directory
from aprl.policies.network import MlpPolicy
from aprl.policies.spaces import describe, fits
from aprl.policies.store import load_saved
from aprl.training.learner import policy_of


def load_agent(
    path: PathLike,
    observation_space: spaces.Space,
    action_space: spaces.Space | None = None,
    seed: int | np.random.SeedSequence = 0,
) -> MlpPolicy:
    """Load a policy for one environment.

    Args:
        path: a policy directory, a run directory with `final_model/`, or an SB3 PPO `.zip`, which
            can run code when it is loaded: a warning says so.
        observation_space: of the environment.
        action_space: of the environment; None does not check it.
        seed: of the policy's random generator.

    Raises:
        PolicyError: missing, unreadable, or for an environment of another size.
    """
    path = Path(path)
    if path.suffix == ".zip":
        policy = _load_zip(path)
        policy.seed(seed)
    else:
        directory = resolve_policy_directory("ppo", str(path), "", 0)
        assert directory is not None
        loaded = load_saved(directory, seed)
        if not isinstance(loaded, MlpPolicy):
            raise PolicyError(f"{path} is a {loaded.network_name} policy; only MLPs are supported")
        policy = loaded
    for what, ours, theirs in (
        ("observations", policy.observation_space, observation_space),
        ("actions", policy.action_space, action_space),
    ):
        if theirs is not None and not fits(ours, theirs):
            raise PolicyError(
                f"{path} is of another environment: its {what} are {describe(ours)}, "
                f"expected {describe(theirs)}"
            )
    return policy


def _load_zip(path: Path) -> MlpPolicy:
    if not path.is_file():
        raise PolicyError(f"policy {path} does not exist")
    warnings.warn(
        f"{path} is a Stable-Baselines3 file, which can run code when it is loaded; "
        "load only files that you trust",
        UserWarning,
        stacklevel=3,
    )
    try:
        learner: Any = PPO.load(path, device="cpu")
    except Exception as error:  # a damaged or foreign zip fails in many ways
        reason = first_line(error)
        raise PolicyError(f"{path} is not a readable SB3 PPO file: {reason}") from None
    activation = learner.policy_kwargs.get("activation_fn", nn.Tanh)
    if activation is not nn.Tanh:
        raise PolicyError(f"{path} has {activation.__name__} units; only Tanh is supported")
    try:
        return policy_of(learner, None)
    except (AttributeError, AssertionError, TypeError, ValueError) as error:
        raise PolicyError(f"{path} is not a PPO MLP policy: {error}") from None
