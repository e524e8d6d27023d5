"""Draw gridworld rewards: `python -m aprl.reward_preprocessing.plot_heatmaps with env.... ...`.

`plot_heatmaps` is the function behind the command; it knows nothing of Sacred.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from aprl.reward_preprocessing.envs.registry import maze_of
from aprl.reward_preprocessing.figures import (
    caption,
    figure_without_suffix,
    save_figure,
    write_page,
)
from aprl.reward_preprocessing.heatmaps import draw_heatmaps, heatmap_rows
from aprl.reward_preprocessing.model_files import (
    certificate_rows,
    load_models,
    row_title,
    sorted_paths,
)


@dataclass
class PlotHeatmapsConfig:
    """Options of `aprl.reward_preprocessing.plot_heatmaps`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/plot_heatmaps` in here
    env: EnvConfig = field(default_factory=EnvConfig)
    base_path: str = RESULTS_DIR  # folder that model_base_paths are relative to
    model_base_paths: list[str] = field(default_factory=list)  # save_path of each preprocessing
    objectives: list[str] = field(default_factory=lambda: ["unmodified", "sparse_l1", "smooth_log"])
    save_path: str = f"{RESULTS_DIR}/heatmaps"  # gets .pdf, .png, .svg and .html
    font_size: float = 6  # points
    vmin: float = -1.2  # reward at the dark end of the colours
    vmax: float = 1.2  # reward at the bright end
    from_dest: bool = False  # show rewards where actions lead instead of where they are taken
    seed: int = 0  # unused; nothing is random

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: a wrong value.
        """
        self.env.check()
        check_objectives(self.objectives, known_too=("unmodified",))
        if not self.vmin < self.vmax:
            raise ConfigError(f"vmin must be below vmax, got {self.vmin} and {self.vmax}")
        if not self.font_size > 0:
            raise ConfigError(f"font_size must be positive, got {self.font_size}")


def plot_heatmaps(config: PlotHeatmapsConfig) -> list[Path]:
    """Draw every model in every version: models are rows, versions columns.

    Args:
        config: see `PlotHeatmapsConfig`.

    Returns:
        The PDF, PNG, SVG and HTML files.

    Raises:
        AprlError: bad input, before anything is written.
    """
    config.check()
    env = config.env.make()
    maze = maze_of(env)
    if maze is None:
        raise ConfigError(
            f"heat-maps show gridworlds, not {config.env.env_id}; see plot_reward_curves"
        )
    if maze.key and len(config.model_base_paths) > 1:
        raise ConfigError(
            f"heat-maps of a maze with a key show one model, got {len(config.model_base_paths)}; "
            "its rows are without and with the key"
        )
    paths = sorted_paths(config.model_base_paths)
    nets = load_models(config.base_path, paths, config.objectives)
    for path, versions in zip(paths, nets, strict=True):
        for net in versions.values():
            net.require_fit(env.observation_space, env.action_space, path)
    titles = [row_title(path) for path in paths]
    rows = heatmap_rows(titles, nets, maze, config.from_dest)
    figure = draw_heatmaps(rows, config.font_size, (config.vmin, config.vmax))
    prefix = figure_without_suffix(config.save_path)
    files = save_figure(figure, prefix)
    table = certificate_rows(config.base_path, paths, config.objectives)
    page = write_page(
        f"{prefix}.html",
        f"Rewards of {config.env.env_id}",
        [(caption([row.title for row in rows], config.objectives), files[-1])],
        table,
    )
    return [*files, page]


plot_heatmaps_experiment = CommandExperiment(
    "plot_heatmaps",
    PlotHeatmapsConfig,
    OBJECTIVE_SETS,
    parts={"env": ENV_PART},
)


@plot_heatmaps_experiment.main
def _run(_config: dict[str, Any]) -> list[str]:
    """Draw as configured; `print_config` shows every option."""
    with user_errors():
        files = plot_heatmaps(read_config(PlotHeatmapsConfig, as_plain(_config)))
        for path in files:
            output().print(f"figure: {path}", soft_wrap=True)
        return [str(path) for path in files]


def main() -> None:
    """Command line."""
    command_line(plot_heatmaps_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
