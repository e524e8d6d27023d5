"""Reward curves: what the lines show."""

import numpy as np
import pytest

from aprl.reward_preprocessing.envs.mountain_car import mountain_car_reward_net
from aprl.reward_preprocessing.reward_curves import curve_row, draw_reward_curves, episode_starts
from aprl.reward_preprocessing.transitions import Transitions

from .helpers import trajectory


@pytest.fixture
def transitions():
    rng = np.random.default_rng(0)
    return Transitions.from_trajectories([trajectory(n, 2, rng) for n in (200, 200, 100)])


def test_curves_are_rewards_in_time_minus_the_first(transitions):
    net = mountain_car_reward_net("dense")
    row = curve_row("Dense", {"unmodified": net}, transitions)
    rewards = net.rewards(transitions)
    np.testing.assert_allclose(row.curves["unmodified"], rewards - rewards[0])
    assert episode_starts(transitions).tolist() == [200, 400]


def test_figure(transitions):
    nets = {"unmodified": mountain_car_reward_net("dense"), "sparse_l1": mountain_car_reward_net()}
    rows = [curve_row(title, nets, transitions) for title in ("Unshaped", "Value shaped")]
    figure = draw_reward_curves(rows, episode_starts(transitions))
    axes = figure.axes
    assert len(axes) == 4
    assert [a.get_title() for a in axes[:2]] == ["Unmodified", "Sparse (L1)"]
    assert axes[2].get_ylabel().startswith("Value shaped")
    for a, row in zip(axes[::2], rows, strict=True):
        (line,) = a.lines
        assert line.get_ydata()[0] == 0 and len(line.get_ydata()) == 500
        np.testing.assert_array_equal(line.get_ydata(), row.curves["unmodified"])
        assert a.get_xlim() == (0, 500)
        (separators,) = a.collections
        assert [s[0][0] for s in separators.get_segments()] == [200, 400]
    assert len({a.get_ylim() for a in axes}) == 1
