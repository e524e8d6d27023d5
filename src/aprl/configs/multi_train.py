"""Named configs of `aprl.multi.train`: every named grid, its modifiers, and a smoke test."""

from typing import Any

from aprl.multi.grids import GRID_ALIASES, GRIDS

NAMED_CONFIGS: dict[str, dict[str, Any]] = {
    **{name: {"grid": name} for name in GRIDS},
    **{alias: {"grid": name} for alias, name in GRID_ALIASES.items()},
    "defense_single": {"defense_single": True},
    "defense_dual": {"defense_dual": True},
    "defense_only_mlp": {"defense_only_mlp": True},
    "adv_from_scratch": {"adv_from_scratch": True},
    "adv_finetune": {"adv_finetune": True},
    "asha": {"scheduler": "asha"},
    "optuna": {"search_alg": "optuna"},
    "debug_config": {
        "exp_name": "debug",
        "axes": {"seed": [0, 1]},
        "train": {
            "env_name": "aprl/RockPaperScissors-v0",
            "embed_type": "constant",
            "embed_path": "0",
            "total_timesteps": 16_384,
            "batch_size": 1024,
        },
    },
}
