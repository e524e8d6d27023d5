"""Heat-maps: what is drawn where, in which colour."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from aprl.reward_preprocessing.envs.mazes import ACTIONS, Maze
from aprl.reward_preprocessing.heatmaps import (
    action_rewards,
    by_destination,
    centred,
    draw_cells,
    draw_heatmaps,
    heatmap_rows,
)

CMAP, NORM = matplotlib.colormaps["viridis"], Normalize(-1.2, 1.2, clip=True)


def grid(maze):
    return action_rewards(maze.reward_net(), maze).reshape(-1, maze.size, maze.size, 5)


def test_rewards_by_action_leave_walls_out():
    maze = Maze(10, False, "path", "random")
    rewards = action_rewards(maze.reward_net(), maze)
    assert np.isnan(rewards).sum() == 40 and np.isfinite(rewards[:, 0]).all()
    state, right = 37, ACTIONS.index("right")
    expected = maze.rewards(np.array(state), np.array(state + 10))
    assert rewards[state, right] == pytest.approx(expected)
    key = Maze(6, True)
    assert np.isnan(action_rewards(key.reward_net(), key)[7]).all()


def test_patches_and_their_colours():
    maze = Maze(10, False, "goal", "random")
    rewards = grid(maze)[0]
    axes = Figure().add_subplot()
    patches = draw_cells(axes, rewards, NORM)
    shapes = [path.vertices for path in patches.get_paths()]
    triangles = [shape for shape in shapes if len(shape) == 4]
    assert len(shapes) == 460 and len(triangles) == 360
    colours = patches.get_facecolors()
    assert len(colours) == 460
    moves = {"left": (-1, 0), "up": (0, 1), "right": (1, 0), "down": (0, -1)}
    for shape, colour in zip(shapes[:360], colours[:360], strict=True):
        cell = shape[0].round().astype(int)  # a triangle begins at the cell's centre
        side = (2 * (shape[1:3].mean(axis=0) - cell)).round().astype(int)
        (name,) = (n for n, move in moves.items() if (side == move).all())
        value = rewards[cell[0], cell[1], ACTIONS.index(name)]
        np.testing.assert_allclose(colour, CMAP(NORM(value)))
    for shape, colour in zip(shapes[360:], colours[360:], strict=True):
        cell = ((shape.min(axis=0) + shape.max(axis=0)) / 2).round().astype(int)
        np.testing.assert_allclose(colour, CMAP(NORM(rewards[cell[0], cell[1], 0])))


def test_values_beyond_the_range_take_the_colours_at_its_ends():
    rewards = np.full((3, 3, 5), np.nan)
    rewards[0, 0, 0], rewards[1, 1, 0], rewards[2, 2, 0] = -50, 0, 50
    colours = draw_cells(Figure().add_subplot(), rewards, NORM).get_facecolors()
    np.testing.assert_allclose(colours, [CMAP(0.0), CMAP(0.5), CMAP(1.0)])


def test_centring():
    rewards = np.array([1.0, 2.0, np.nan, 6.0])
    for objective in ("unmodified", "smooth_l1", "smooth_log"):
        assert np.nanmean(centred(rewards, objective)) == pytest.approx(0)
    for objective in ("sparse_l1", "sparse_log"):
        assert centred(rewards, objective) is rewards


def test_rewards_where_actions_lead():
    maze = Maze(4, False, "goal", "random")
    here = action_rewards(maze.reward_net(), maze)
    there = by_destination(here, maze)
    # Going right from cell (1, 1) arrives in (2, 1) from its left.
    assert there[4 * 2 + 1, ACTIONS.index("left")] == here[4 * 1 + 1, ACTIONS.index("right")]
    assert there[5, 0] == here[5, 0]
    assert np.isfinite(there).sum() == np.isfinite(here).sum()


def test_rows_and_columns():
    mazes = [Maze(4, False, "goal", shaping) for shaping in ("unshaped", "random")]
    nets = [{"unmodified": m.reward_net(), "sparse_l1": m.reward_net()} for m in mazes]
    rows = heatmap_rows(["Unshaped", "Random"], nets, mazes[0])
    assert [row.title for row in rows] == ["Unshaped", "Random"]
    expected = grid(mazes[1])[0]
    np.testing.assert_array_equal(rows[1].panels["sparse_l1"], expected)
    np.testing.assert_allclose(rows[1].panels["unmodified"], expected - np.nanmean(expected))
    figure = draw_heatmaps(rows)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["Unmodified", "Sparse (L1)"]
    assert [a.get_ylabel() for a in figure.axes if a.get_ylabel() not in ("", "reward")] == [
        "Unshaped",
        "Random",
    ]
    assert sum(a.get_ylabel() == "reward" for a in figure.axes) == 2  # a colour bar per row
    assert figure.get_size_inches()[0] == 5.5


def test_a_key_gives_two_rows():
    maze = Maze(6, True, "goal")
    rows = heatmap_rows(["x"], [{"sparse_l1": maze.reward_net()}], maze)
    assert [row.title for row in rows] == ["without key", "with key"]
    without, with_key = (row.panels["sparse_l1"] for row in rows)
    assert np.nansum(without) == 0 and np.nansum(with_key) == 5
    assert np.isnan(without[1, 1]).all() and np.isfinite(with_key[1, 1]).all()
