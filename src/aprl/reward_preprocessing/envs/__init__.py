"""Environments whose rewards are preprocessed; importing this registers them with Gymnasium."""

from aprl.reward_preprocessing.envs.registry import (
    ENVIRONMENTS,
    canonical_id,
    default_potential,
    tabular_mdp,
    true_reward_net,
)

__all__ = ["ENVIRONMENTS", "canonical_id", "default_potential", "tabular_mdp", "true_reward_net"]
