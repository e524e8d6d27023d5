"""Write the true rewards of the gridworlds and of the mountain car as reward nets.

`python -m aprl.reward_preprocessing.create_models with out_dir=results/ground_truth_models`
"""

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aprl.errors import unknown_name
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import PathLike, require_writable_directory
from aprl.reward_preprocessing.configs import ENV_NAMED, RESULTS_DIR, RUNS_DIR, read_config
from aprl.reward_preprocessing.envs import true_reward_net
from aprl.reward_preprocessing.envs.mazes import REWARDS, SHAPINGS
from aprl.rewards import save_reward_net
from aprl.rewards.store import SUFFIXES

MAZES = ("empty_maze_4", "empty_maze_10", "key_maze_6")


@dataclass
class CreateModelsConfig:
    """Options of `aprl.reward_preprocessing.create_models`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/create_models` in here
    out_dir: str = f"{RESULTS_DIR}/ground_truth_models"
    model_format: str = "pt"  # or "safetensors"
    seed: int = 0  # unused; the rewards are fixed


def true_models() -> dict[str, tuple[str, dict[str, Any]]]:
    """Environment id and options of each true reward, by the name of its file."""
    models: dict[str, tuple[str, dict[str, Any]]] = {
        f"{maze}_{reward}_{shaping}": (
            ENV_NAMED[maze]["name"],
            {"reward": reward, "shaping": shaping},
        )
        for maze in MAZES
        for reward in REWARDS
        for shaping in SHAPINGS
    }
    car = ENV_NAMED["mountain_car"]["name"]
    return models | {f"shaped_mountain_car_{s}": (car, {"shaping": s}) for s in SHAPINGS}


def create_models(out_dir: PathLike, model_format: str = "pt") -> list[Path]:
    """Write all 28 true rewards; all of them, or none.

    Args:
        out_dir: gets `<name>.<model_format>` for each name of `true_models`.
        model_format: "pt" or "safetensors".

    Raises:
        ConfigError: unknown format.
        RunError: the folder is not writable.
    """
    if f".{model_format}" not in SUFFIXES:
        raise unknown_name("model_format", model_format, [suffix[1:] for suffix in SUFFIXES])
    folder = require_writable_directory(out_dir)
    names = []
    with tempfile.TemporaryDirectory(prefix=".models.tmp-", dir=folder) as scratch:
        for name, (env_id, options) in true_models().items():
            net = true_reward_net(env_id, options)
            path = Path(scratch) / f"{name}.{model_format}"
            save_reward_net(net, path, {"env_name": env_id, "env_options": options})
            names.append(path.name)
        for name in names:
            os.replace(Path(scratch) / name, folder / name)
    return [folder / name for name in names]


create_models_experiment = CommandExperiment("create_models", CreateModelsConfig)


@create_models_experiment.main
def _run(_config: dict[str, Any]) -> list[str]:
    """Write the models; `print_config` shows every option."""
    with user_errors():
        config = read_config(CreateModelsConfig, as_plain(_config))
        paths = create_models(config.out_dir, config.model_format)
        output().print(f"{len(paths)} models in {config.out_dir}", soft_wrap=True)
        return [str(path) for path in paths]


def main() -> None:
    """Command line."""
    command_line(create_models_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
