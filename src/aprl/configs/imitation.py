"""Named configs of `aprl.imitation.train`; each is a dict of overrides of `ImitationConfig`."""

from typing import Any

NAMED_CONFIGS: dict[str, dict[str, Any]] = {
    "gail": {"algorithm": "gail", "exp_name": "gail"},
    "airl": {"algorithm": "airl", "exp_name": "airl"},
    "bc": {"algorithm": "bc", "exp_name": "bc"},
    # Steps enough for GAIL and AIRL to play as the expert does; see experiments/RESULTS.md.
    "cartpole": {
        "env_name": "CartPole-v1",
        "horizon": 500,
        "total_timesteps": 204_800,
        "batch_size": 2048,
        "learning_rate": 1e-3,
        # Without the bonus, AIRL's generator may settle on one action before it can balance.
        "rl_args": {"n_epochs": 10, "nminibatches": 8, "ent_coef": 0.01},
    },
    "swimmer": {
        "env_name": "Swimmer-v5",
        "total_timesteps": 409_600,
        "batch_size": 4096,
        "learning_rate": 6e-4,
        "rl_args": {"n_epochs": 10, "nminibatches": 16},
    },
    # Give it last: a smoke test of whatever was named before it, in seconds.
    "quick": {"total_timesteps": 8192, "bc_epochs": 5, "eval_episodes": 5},
}
