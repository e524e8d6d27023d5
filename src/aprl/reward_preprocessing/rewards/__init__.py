"""Reward nets, and their files."""

from aprl.reward_preprocessing.rewards.base import RewardNet, RewardWrapper
from aprl.reward_preprocessing.rewards.mlp import MlpRewardNet
from aprl.reward_preprocessing.rewards.mountain_car import MountainCarRewardNet
from aprl.reward_preprocessing.rewards.store import load_reward_net, save_reward_net
from aprl.reward_preprocessing.rewards.tabular import TabularRewardNet
from aprl.reward_preprocessing.rewards.wrappers import (
    AffineRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    require_gamma,
)

__all__ = [
    "AffineRewardNet",
    "MlpRewardNet",
    "MountainCarRewardNet",
    "RewardEnsemble",
    "RewardNet",
    "RewardWrapper",
    "ShapedRewardNet",
    "TabularRewardNet",
    "load_reward_net",
    "require_gamma",
    "save_reward_net",
]
