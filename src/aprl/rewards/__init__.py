"""Rewards as networks of state, action, next state and termination, and their files."""

from aprl.rewards.base import KINDS, RewardNet, RewardWrapper
from aprl.rewards.encoding import RewardInputs, as_tensor
from aprl.rewards.foreign import ImitationRewardNet
from aprl.rewards.mlp import MlpRewardNet
from aprl.rewards.mountain_car import MountainCarRewardNet
from aprl.rewards.perceptron import PerceptronOptions
from aprl.rewards.scaling import RunningNorm
from aprl.rewards.store import load_reward_net, save_reward_net
from aprl.rewards.tabular import TabularRewardNet
from aprl.rewards.wrappers import (
    AffineRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    require_gamma,
)

__all__ = [
    "KINDS",
    "AffineRewardNet",
    "ImitationRewardNet",
    "MlpRewardNet",
    "MountainCarRewardNet",
    "NormalizedRewardNet",
    "PerceptronOptions",
    "RewardEnsemble",
    "RewardInputs",
    "RewardNet",
    "RewardWrapper",
    "RunningNorm",
    "ShapedRewardNet",
    "TabularRewardNet",
    "as_tensor",
    "load_reward_net",
    "require_gamma",
    "save_reward_net",
]
