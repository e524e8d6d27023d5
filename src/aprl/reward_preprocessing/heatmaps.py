"""Drawing the reward of a gridworld: each cell shows what each of its five actions pays."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from aprl.reward_preprocessing.envs.mazes import ACTIONS, Maze
from aprl.reward_preprocessing.figures import COLOUR_MAP
from aprl.reward_preprocessing.objectives import OBJECTIVES
from aprl.rewards import RewardNet

COLOUR_RANGE = (-1.2, 1.2)  # of reward, the same in every panel
_NOT_CENTRED = ("sparse_l1", "sparse_log")  # there, zero itself is what counts
_EDGE = "0.15"
_CIRCLE_RADIUS = 0.17  # of the cell's side
# Corners of each action's triangle, beside the cell's centre: the side that the action leads to.
_CORNERS = {
    "left": ((-0.5, -0.5), (-0.5, 0.5)),
    "up": ((-0.5, 0.5), (0.5, 0.5)),
    "right": ((0.5, 0.5), (0.5, -0.5)),
    "down": ((0.5, -0.5), (-0.5, -0.5)),
}
_OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up", "stay": "stay"}


def column_title(objective: str) -> str:
    """How a column is called in figures."""
    return "Unmodified" if objective == "unmodified" else OBJECTIVES[objective].label


def action_rewards(net: RewardNet, maze: Maze) -> np.ndarray:
    """Rewards `(cells or twice as many, 5)` by state and action; NaN for walking into a wall."""
    table = maze.mdp().table
    rewards = np.full((maze.num_states, len(ACTIONS)), np.nan)
    rewards[table.states, table.actions] = net.rewards(table)
    staying = maze.next_states == np.arange(maze.num_states)[:, None]
    staying[:, ACTIONS.index("stay")] = False
    rewards[staying] = np.nan
    return rewards


def by_destination(rewards: np.ndarray, maze: Maze) -> np.ndarray:
    """Rearrange rewards by where actions lead: each cell's triangle shows arriving from that side.

    Args:
        rewards: `(states, 5)` as from `action_rewards`.
        maze: where they are from.
    """
    arriving = np.full_like(rewards, np.nan)
    for action, name in enumerate(ACTIONS):
        states = np.flatnonzero(np.isfinite(rewards[:, action]))
        side = ACTIONS.index(_OPPOSITE[name])
        arriving[maze.next_states[states, action], side] = rewards[states, action]
    return arriving


def centred(rewards: np.ndarray, objective: str) -> np.ndarray:
    """Subtract the mean over the valid entries, except after a sparse objective."""
    return rewards if objective in _NOT_CENTRED else rewards - np.nanmean(rewards)


def draw_cells(axes: Axes, rewards: np.ndarray, norm: Normalize) -> PatchCollection:
    """Draw a square of cells.

    Args:
        axes: to draw into; its axis x is the cells' first.
        rewards: `(n, n, 5)` indexed [x, y, action]; NaN draws nothing.
        norm: from reward to colour.

    Returns:
        The patches, coloured by `norm`.
    """
    size = len(rewards)
    patches: list[Polygon | Circle] = []
    values = []
    for x, y, action in zip(*np.nonzero(np.isfinite(rewards)), strict=True):
        name = ACTIONS[action]
        if name == "stay":
            patches.append(Circle((x, y), _CIRCLE_RADIUS))
        else:
            corners = [(x, y), *((x + dx, y + dy) for dx, dy in _CORNERS[name])]
            patches.append(Polygon(corners, closed=True))
        values.append(rewards[x, y, action])
    # Circles lie on top of the triangles.
    order = np.argsort([isinstance(patch, Circle) for patch in patches], kind="stable")
    colours = matplotlib.colormaps[COLOUR_MAP](norm(np.array(values)))
    collection = PatchCollection(
        [patches[i] for i in order], facecolor=colours[order], edgecolor=_EDGE, linewidth=0.25
    )
    axes.add_collection(collection)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(-0.5, size - 0.5), aspect="equal", xticks=[], yticks=[])
    return collection


@dataclass(frozen=True)
class HeatmapRow:
    """One row of a figure.

    Attributes:
        title: on its left.
        panels: rewards `(n, n, 5)` by objective.
    """

    title: str
    panels: dict[str, np.ndarray]


def heatmap_rows(
    titles: Sequence[str],
    nets: Sequence[dict[str, RewardNet]],
    maze: Maze,
    from_destination: bool = False,
) -> list[HeatmapRow]:
    """Rewards of several models, centred; of a maze with a key, a row without it and one with it.

    Args:
        titles: of the models.
        nets: one dict by objective per model.
        maze: whose rewards they are.
        from_destination: show rewards where actions lead instead of where they are taken.
    """
    rows = []
    for title, by_objective in zip(titles, nets, strict=True):
        layers: dict[str, np.ndarray] = {}
        for objective, net in by_objective.items():
            rewards = centred(action_rewards(net, maze), objective)
            if from_destination:
                rewards = by_destination(rewards, maze)
            layers[objective] = rewards.reshape(-1, maze.size, maze.size, len(ACTIONS))
        names = ("without key", "with key") if maze.key else (title,)
        for index, name in enumerate(names):
            rows.append(HeatmapRow(name, {o: layer[index] for o, layer in layers.items()}))
    return rows


def draw_heatmaps(
    rows: Sequence[HeatmapRow],
    font_size: float = 6,
    colour_range: tuple[float, float] = COLOUR_RANGE,
    width: float = 5.5,
) -> Figure:
    """A figure of panels: a row per model, a column per objective, a colour bar per row.

    Args:
        rows: at least one, all with the same objectives.
        font_size: in points.
        colour_range: rewards at the ends of the colours; beyond them the colour stays.
        width: of the figure, in inches.
    """
    objectives = list(rows[0].panels)
    norm = Normalize(*colour_range, clip=True)
    side = (width - 0.9) / len(objectives)
    with matplotlib.rc_context({"font.size": font_size}):
        figure = Figure(figsize=(width, side * len(rows) + 0.35), layout="compressed")
        grid = figure.subplots(len(rows), len(objectives), squeeze=False)
        for row, axes_row in zip(rows, grid, strict=True):
            for objective, axes in zip(objectives, axes_row, strict=True):
                draw_cells(axes, row.panels[objective], norm)
                if axes is grid[0, objectives.index(objective)]:
                    axes.set_title(column_title(objective), fontsize=font_size + 1)
            axes_row[0].set_ylabel(row.title, fontsize=font_size + 1)
            mappable = ScalarMappable(norm, matplotlib.colormaps[COLOUR_MAP])
            figure.colorbar(mappable, ax=list(axes_row), shrink=0.9, label="reward")
    return figure
