"""Learned rewards: networks of state, action and next state, and their files."""

from aprl.rewards.encoding import RewardInputs
from aprl.rewards.nets import (
    BasicRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    RewardNet,
    ShapedRewardNet,
)
from aprl.rewards.running_norm import RunningNorm
from aprl.rewards.store import load_reward, save_reward

__all__ = [
    "BasicRewardNet",
    "NormalizedRewardNet",
    "RewardEnsemble",
    "RewardInputs",
    "RewardNet",
    "RunningNorm",
    "ShapedRewardNet",
    "load_reward",
    "save_reward",
]
