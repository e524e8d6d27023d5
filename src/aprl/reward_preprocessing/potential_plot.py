"""Drawing a potential over a square grid of cells, or over two state components."""

from pathlib import Path

import gymnasium
import matplotlib
import numpy as np
from gymnasium import spaces
from matplotlib.figure import Figure

from aprl.reward_preprocessing.envs.registry import maze_of
from aprl.reward_preprocessing.figures import COLOUR_MAP
from aprl.rewards.potentials import Potential

_RESOLUTION = 100  # points per axis of a plane


def potential_grids(
    potential: Potential, env: gymnasium.Env
) -> tuple[list[np.ndarray], tuple[float, float, float, float]] | None:
    """Values to draw.

    Args:
        potential: of the environment's states.
        env: the environment.

    Returns:
        Arrays indexed [x, y], two for a maze with a key (without it, with it), and the extent
        (left, right, bottom, top); None where states are neither cells nor points of a plane.
    """
    maze = maze_of(env)
    if maze is not None:
        values = potential.of(np.arange(maze.num_states))
        values[~maze.reachable] = np.nan
        edge = maze.size - 0.5
        return list(values.reshape(-1, maze.size, maze.size)), (-0.5, edge, -0.5, edge)
    space = env.observation_space
    if not isinstance(space, spaces.Box) or space.shape != (2,):
        return None
    if not np.isfinite([space.low, space.high]).all():
        return None
    axes = [np.linspace(space.low[i], space.high[i], _RESOLUTION) for i in range(2)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = potential.of(points).reshape(_RESOLUTION, _RESOLUTION)
    return [grid], (axes[0][0], axes[0][-1], axes[1][0], axes[1][-1])


def draw_potential(potential: Potential, env: gymnasium.Env) -> Figure | None:
    """A figure of the potential; None where it cannot be drawn."""
    drawable = potential_grids(potential, env)
    if drawable is None:
        return None
    grids, extent = drawable
    figure = Figure(figsize=(3.2 * len(grids), 2.8), layout="constrained")
    low, high = (float(f([f(g[np.isfinite(g)]) for g in grids])) for f in (np.min, np.max))
    for index, grid in enumerate(grids):
        axes = figure.add_subplot(1, len(grids), index + 1)
        image = axes.imshow(
            grid.T,
            origin="lower",
            extent=extent,
            aspect="auto",
            cmap=matplotlib.colormaps[COLOUR_MAP],
            vmin=low,
            vmax=high,
        )
        axes.set_xlabel("x" if maze_of(env) else "state component 0")
        axes.set_ylabel("y" if maze_of(env) else "state component 1")
        if len(grids) > 1:
            axes.set_title(("without key", "with key")[index])
    figure.colorbar(image, ax=figure.axes, label="potential")
    return figure


def save_potential_plot(potential: Potential, env: gymnasium.Env, path: Path) -> Path | None:
    """Draw and write a potential as PDF; None where it cannot be drawn."""
    figure = draw_potential(potential, env)
    if figure is None:
        return None
    figure.savefig(path, format="pdf", metadata={"CreationDate": None})
    return path
