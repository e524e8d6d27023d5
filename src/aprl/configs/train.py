"""Named configs of `aprl.train`; each is a dict of overrides of `TrainConfig`."""

from typing import Any

# Sparse reward only: what the environment pays for winning and losing, +-10 after weighting.
SPARSE_REWARD: dict[str, Any] = {"rew_shape": True, "rew_shape_params": {"anneal_frac": 0.0}}

# Gleave et al. (ICLR 2020), appendix.
PAPER_HYPERPARAMS: dict[str, Any] = {
    "total_timesteps": 20_000_000,
    "batch_size": 16384,
    "learning_rate": 3e-4,
    "rl_args": {"ent_coef": 0.0, "nminibatches": 4, "noptepochs": 4},
}

ANT_GAME = "multicomp/RunToGoalAnts-v1"
ANT_VICTIM = "data/victims/RunToGoalAnts-v1"
ANT_NORMAL_OPPONENT = "data/opponents/RunToGoalAnts-v1"

# Dense reward for somebody who has to learn to move first; used for the shipped ants.
LEARN_TO_RUN: dict[str, Any] = {
    "end_when_down": True,
    "batch_size": 8192,
    "learning_rate": 3e-4,
    # An ant is light and strong: with more noise than this it only tumbles.
    "rl_args": {"nminibatches": 16, "n_epochs": 8, "target_kl": 0.04, "log_std_init": -2.0},
    "rew_shape_params": {
        "weights": {
            "dense": {"reward_forward": 2.0, "reward_ctrl": -0.1, "reward_survive": 0.05},
            "sparse": {"reward_remaining": 0.1},
        }
    },
}

# Fine-tuning on the outcome alone, from a policy that can already move.
FINETUNE_SPARSE: dict[str, Any] = {
    **SPARSE_REWARD,
    "env_name": ANT_GAME,
    "normalize_observations": False,
    "total_timesteps": 1_500_000,
    "batch_size": 16384,
    "learning_rate": 3e-4,
    "rl_args": {"ent_coef": 0.0, "nminibatches": 16, "noptepochs": 8, "target_kl": 0.03},
}

# The victim learns on as it learned to run, now with the adversary in its way.
FINETUNE_DEFENCE: dict[str, Any] = {
    **LEARN_TO_RUN,
    "rl_args": {k: v for k, v in LEARN_TO_RUN["rl_args"].items() if k != "log_std_init"},
    "defence": "single",
    "exp_name": "finetune_defence",
    "env_name": ANT_GAME,
    "load_policy": {"type": "ppo", "path": ANT_VICTIM},
    "normalize_observations": False,
    "adversaries": "data/adversaries",
    "normal_opponent": {"type": "ppo", "path": ANT_NORMAL_OPPONENT},
    "total_timesteps": 1_300_000,
    "eval_episodes": 500,
}

# The published walker, against the adversary that beats it and its published opponent in turn.
FINETUNE_DEFENCE_WALKER: dict[str, Any] = {
    **SPARSE_REWARD,
    "defence": "dual",
    "exp_name": "finetune_defence_walker",
    "env_name": "multicomp/YouShallNotPassHumans-v1",
    "load_policy": {"type": "zoo", "path": "1"},
    "normalize_observations": False,
    "adversaries": "data/adversaries",
    "normal_opponent": {"type": "zoo", "path": "1"},
    "total_timesteps": 3_000_000,
    "batch_size": 16384,
    "learning_rate": 1e-4,
    "eval_episodes": 500,
}

# In Run to Goal nobody wins by standing in the way: the adversary starts from a runner.
TRAIN_ADVERSARY: dict[str, Any] = {
    **FINETUNE_SPARSE,
    "exp_name": "train_adversary",
    "embed_type": "ppo",
    "embed_path": ANT_VICTIM,
    "load_policy": {"type": "ppo", "path": ANT_NORMAL_OPPONENT},
    "eval_episodes": 500,
}

NAMED_CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {**PAPER_HYPERPARAMS, **SPARSE_REWARD, "exp_name": "paper"},
    "no_embed": {"embed_types": [], "embed_paths": []},
    "finetune_nolearn": {"learning_rate": 0.0, "normalize_observations": False},
    "finetune_defence": FINETUNE_DEFENCE,
    "finetune_defense": FINETUNE_DEFENCE,
    "finetune_defence_walker": FINETUNE_DEFENCE_WALKER,
    "train_adversary": TRAIN_ADVERSARY,
    # A victim and a normal opponent at once; dense reward is annealed away over the whole run.
    "self_play": {
        **LEARN_TO_RUN,
        "exp_name": "self_play",
        "env_name": ANT_GAME,
        "self_play": True,
        "rew_shape_params": {**LEARN_TO_RUN["rew_shape_params"], "anneal_frac": 0.75},
        "total_timesteps": 5_000_000,
        "eval_episodes": 500,
    },
    "train_victim": {
        **LEARN_TO_RUN,
        "exp_name": "train_victim",
        "env_name": ANT_GAME,
        "embed_index": 1,
        "embed_type": "zero",
        "embed_path": "none",
        "total_timesteps": 1_300_000,
    },
    # Give it last: a smoke test of whatever was named before it, in about a minute.
    "quick": {
        "total_timesteps": 16_384,
        "batch_size": 2048,
        "num_env": 16,
        "eval_episodes": 32,
        "checkpoint_interval": 8192,
    },
}
