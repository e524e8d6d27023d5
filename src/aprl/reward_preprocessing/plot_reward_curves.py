"""Draw rewards along rollouts: `python -m aprl.reward_preprocessing.plot_reward_curves with ...`.

`plot_reward_curves` is the function behind the command; it knows nothing of Sacred.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.reward_preprocessing.configs import (
    ENV_PART,
    OBJECTIVE_SETS,
    RESULTS_DIR,
    RUNS_DIR,
    check_objectives,
    read_config,
)
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.figures import (
    caption,
    figure_without_suffix,
    save_figure,
    write_page,
)
from aprl.reward_preprocessing.model_files import (
    certificate_rows,
    load_models,
    row_title,
    sorted_paths,
)
from aprl.reward_preprocessing.reward_curves import (
    curve_row,
    draw_reward_curves,
    episode_starts,
)
from aprl.reward_preprocessing.rollouts import RolloutSource, collect_mixture
from aprl.reward_preprocessing.transitions import Transitions

# What the rows of the paper's figure are called.
_CURVE_TITLES = {"dense": "Value shaped"}


@dataclass
class PlotRewardCurvesConfig:
    """Options of `aprl.reward_preprocessing.plot_reward_curves`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/plot_reward_curves` in here
    env: EnvConfig = field(default_factory=EnvConfig)
    rollout_cfg: Any = None  # one source of rollouts; None: random actions
    rollout_steps: int = 1000  # length of the curves
    base_path: str = RESULTS_DIR  # folder that model_base_paths are relative to
    model_base_paths: list[str] = field(default_factory=list)  # save_path of each preprocessing
    objectives: list[str] = field(default_factory=lambda: ["unmodified", "sparse_l1", "smooth_log"])
    save_path: str = f"{RESULTS_DIR}/reward_curves"  # gets .pdf, .png, .svg and .html
    font_size: float = 5.5  # points
    seed: int = 0  # of the rollout

    def check(self) -> RolloutSource:
        """Refuse what cannot work; return the source of the rollout.

        Raises:
            ConfigError: a wrong value.
        """
        self.env.check()
        check_objectives(self.objectives, known_too=("unmodified",))
        require_at_least("rollout_steps", self.rollout_steps, 2)
        require_at_least("seed", self.seed, 0)
        if not self.font_size > 0:
            raise ConfigError(f"font_size must be positive, got {self.font_size}")
        return RolloutSource.parse((1.0,) if self.rollout_cfg is None else self.rollout_cfg)


def plot_reward_curves(config: PlotRewardCurvesConfig) -> list[Path]:
    """Draw every model in every version along the same rollout.

    Args:
        config: see `PlotRewardCurvesConfig`.

    Returns:
        The PDF, PNG, SVG and HTML files.

    Raises:
        AprlError: bad input, before anything is written.
    """
    source = config.check()
    paths = sorted_paths(config.model_base_paths)
    nets = load_models(config.base_path, paths, config.objectives)
    env = config.env.make()
    for path, versions in zip(paths, nets, strict=True):
        for net in versions.values():
            net.require_fit(env.observation_space, env.action_space, path)
    env.close()
    seed = np.random.SeedSequence(config.seed)
    trajectories = collect_mixture([source], config.env.make, config.rollout_steps, seed)
    transitions = Transitions.from_trajectories(trajectories)
    starts = episode_starts(transitions)
    rows = [
        curve_row(_title(path), versions, transitions)
        for path, versions in zip(paths, nets, strict=True)
    ]
    prefix = figure_without_suffix(config.save_path)
    files = save_figure(draw_reward_curves(rows, starts, config.font_size), prefix)
    table = certificate_rows(config.base_path, paths, config.objectives)
    page = write_page(
        f"{prefix}.html",
        f"Rewards along {config.env.env_id}",
        [(caption([row.title for row in rows], config.objectives), files[-1])],
        table,
    )
    return [*files, page]


def _title(path: str) -> str:
    title = row_title(path)
    return _CURVE_TITLES.get(title.lower(), title)


plot_reward_curves_experiment = CommandExperiment(
    "plot_reward_curves",
    PlotRewardCurvesConfig,
    OBJECTIVE_SETS,
    parts={"env": ENV_PART},
)


@plot_reward_curves_experiment.main
def _run(_config: dict[str, Any]) -> list[str]:
    """Draw as configured; `print_config` shows every option."""
    with user_errors():
        files = plot_reward_curves(read_config(PlotRewardCurvesConfig, as_plain(_config)))
        for path in files:
            output().print(f"figure: {path}", soft_wrap=True)
        return [str(path) for path in files]


def main() -> None:
    """Command line."""
    command_line(plot_reward_curves_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
