"""From nothing to the paper's gridworld figures: `python -m aprl.reward_preprocessing.tour`.

Disguises two simple rewards by potential shaping in three ways, preprocesses all versions,
certifies that they ask for the same, and draws them: rows that looked different become alike.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from aprl.configs.checks import require_at_least
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.reward_preprocessing.configs import RESULTS_DIR, RUNS_DIR, read_config
from aprl.reward_preprocessing.create_models import create_models
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mazes import REWARDS, SHAPINGS
from aprl.reward_preprocessing.figures import write_page
from aprl.reward_preprocessing.model_files import certificate_rows
from aprl.reward_preprocessing.plot_heatmaps import PlotHeatmapsConfig, plot_heatmaps
from aprl.reward_preprocessing.preprocess import PreprocessConfig, preprocess_model

OBJECTIVES = ("sparse_l1", "smooth_log")


@dataclass
class TourConfig:
    """Options of `aprl.reward_preprocessing.tour`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/tour` in here
    out_dir: str = f"{RESULTS_DIR}/tour"  # gets models, certificates, figures and a page
    progress: bool = True  # show progress on the terminal
    seed: int = 0


def tour(config: TourConfig, console: Console | None = None) -> Path:
    """Make models, preprocess and draw them.

    Args:
        config: see `TourConfig`.
        console: told what happens; None says nothing.

    Returns:
        The page with the figures.

    Raises:
        AprlError: a folder that is not writable, or a certificate that fails.
    """
    require_at_least("seed", config.seed, 0)
    started = time.monotonic()
    console = console or Console(quiet=True)
    out = Path(config.out_dir)
    models = create_models(out / "models")
    console.print(f"{len(models)} true rewards of gridworlds and mountain car: {out / 'models'}")
    env = EnvConfig(name="aprl/EmptyMaze10-v0")
    names = {reward: [f"empty_maze_10_{reward}_{s}" for s in SHAPINGS] for reward in REWARDS}
    for reward, versions in names.items():
        for name in versions:
            files = preprocess_model(
                PreprocessConfig(
                    env=env,
                    model_path=str(out / "models" / f"{name}.pt"),
                    save_path=str(out / "preprocessed" / name),
                    objectives=list(OBJECTIVES),
                    epochs=1000,
                    progress=config.progress,
                    seed=config.seed,
                )
            )
            changes = ", ".join(
                f"{o} {c.objective_before:.4f} -> {c.objective_after:.4f}"
                for o, c in files.certificates.items()
            )
            console.print(f"{name}: {changes}; certified equivalent")
        plot_heatmaps(
            PlotHeatmapsConfig(
                env=env,
                base_path=str(out / "preprocessed"),
                model_base_paths=versions,
                save_path=str(out / f"gridworlds_{reward}"),
            )
        )
        console.print(f"figure: {out / f'gridworlds_{reward}'}.pdf (.png, .svg, .html)")
    page = _write_page(out, names)
    console.print(f"page: {page} ({time.monotonic() - started:.0f} s)", soft_wrap=True)
    return page


def _write_page(out: Path, names: dict[str, list[str]]) -> Path:
    figures = []
    for reward in names:
        caption = (
            f"The {reward} reward of a 10 x 10 gridworld: as it is and shaped in three ways "
            "(rows), before and after preprocessing (columns). Triangles are moves, circles rest."
        )
        figures.append((caption, out / f"gridworlds_{reward}.svg"))
    every = [name for paths in names.values() for name in paths]
    table = certificate_rows(str(out / "preprocessed"), every, OBJECTIVES)
    return write_page(out / "index.html", "Reward preprocessing: a tour", figures, table)


tour_experiment = CommandExperiment("tour", TourConfig)


@tour_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Take the tour; `print_config` shows every option."""
    with user_errors():
        return str(tour(read_config(TourConfig, as_plain(_config)), output()))


def main() -> None:
    """Command line."""
    command_line(tour_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
