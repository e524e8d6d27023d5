"""Drawing the reward along trajectories, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from aprl.reward_preprocessing.heatmaps import column_title
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import RewardNet

_LINE = "#0072B2"  # Okabe and Ito's blue


@dataclass(frozen=True)
class CurveRow:
    """One row of a figure.

    Attributes:
        title: on its left.
        curves: `(steps,)` rewards by objective.
    """

    title: str
    curves: dict[str, np.ndarray]


def curve_row(title: str, nets: dict[str, RewardNet], transitions: Transitions) -> CurveRow:
    """Rewards along transitions in the order of time, each curve minus its first value.

    Args:
        title: of the row.
        nets: by objective.
        transitions: rows in the order of time.
    """
    curves = {name: net.rewards(transitions) for name, net in nets.items()}
    return CurveRow(title, {name: curve - curve[0] for name, curve in curves.items()})


def episode_starts(transitions: Transitions) -> np.ndarray:
    """Steps at which a new episode begins, the first one left out."""
    return np.flatnonzero(np.diff(transitions.trajectory)) + 1


def draw_reward_curves(
    rows: Sequence[CurveRow], starts: np.ndarray, font_size: float = 5.5, width: float = 5.5
) -> Figure:
    """A figure of panels: a row per model, a column per objective, axes shared.

    Args:
        rows: at least one, all with the same objectives.
        starts: steps at which episodes begin, drawn as vertical lines.
        font_size: in points.
        width: of the figure, in inches.
    """
    objectives = list(rows[0].curves)
    steps = len(rows[0].curves[objectives[0]])
    with matplotlib.rc_context({"font.size": font_size}):
        figure = Figure(figsize=(width, 1.1 * len(rows) + 0.5), layout="constrained")
        grid = figure.subplots(len(rows), len(objectives), squeeze=False, sharex=True, sharey=True)
        for row, axes_row in zip(rows, grid, strict=True):
            for objective, axes in zip(objectives, axes_row, strict=True):
                axes.vlines(
                    starts, 0, 1, transform=axes.get_xaxis_transform(), color="0.8", linewidth=0.5
                )
                axes.plot(row.curves[objective], color=_LINE, linewidth=0.6)
                axes.set_xlim(0, steps)
                axes.spines[["top", "right"]].set_visible(False)
            axes_row[0].set_ylabel(f"{row.title}\nreward")
        for objective, top, bottom in zip(objectives, grid[0], grid[-1], strict=True):
            top.set_title(column_title(objective), fontsize=font_size + 1)
            bottom.set_xlabel("step")
    return figure
