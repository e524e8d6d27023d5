"""Transitions and the pairs of them that smooth objectives compare."""

import numpy as np
import pytest

from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.transitions import Transitions, TransitionTable

from .helpers import trajectory


def pairs_by_definition(table):
    s, after = table.states, table.next_states
    rows = range(len(table))
    return {(i, j) for i in rows for j in rows if s[i] == after[j] or s[i] == s[j]}


@pytest.mark.parametrize(("size", "key"), [(4, False), (5, True)])
def test_pairs_of_a_table_are_those_that_share_a_state(size, key):
    table = Maze(size, key).mdp().table
    expected = pairs_by_definition(table)
    values = np.random.default_rng(0).normal(size=len(table))
    mean = np.mean([abs(values[i] - values[j]) for i, j in expected])
    pairs = table.pairs()
    assert pairs.weight @ np.abs(values[pairs.first] - values[pairs.second]) == pytest.approx(mean)
    assert (pairs.first < pairs.second).all()


def test_number_of_pairs_of_the_ten_by_ten_maze():
    table = Maze(10).mdp().table
    pairs = table.pairs()
    smallest_share = pairs.weight.min()
    assert round(1 / smallest_share) == 4300  # ordered pairs, those of a row with itself included
    assert pairs.weight.sum() == pytest.approx((4300 - 500) / 4300)


def test_pairs_of_samples_are_neighbours_in_time():
    rng = np.random.default_rng(0)
    t = Transitions.from_trajectories(
        [trajectory(3, 2, rng), trajectory(1, 2, rng), trajectory(2, 2, rng)]
    )
    pairs = t.pairs()
    assert pairs.first.tolist() == [0, 1, 4] and pairs.second.tolist() == [1, 2, 5]
    assert pairs.weight.tolist() == [1 / 3] * 3


def test_columns_of_trajectories():
    first, second = trajectory(3, 2, terminated=True), trajectory(2, 2)
    t = Transitions.from_trajectories([first, second])
    np.testing.assert_array_equal(t.states[:3], first.states[:-1])
    np.testing.assert_array_equal(t.next_states[3:], second.states[1:])
    assert t.terminated.tolist() == [False, False, True, False, False]
    assert t.trajectory.tolist() == [0, 0, 0, 1, 1]


def test_nothing_to_work_on_is_an_error():
    with pytest.raises(TrajectoryError, match="no trajectories"):
        Transitions.from_trajectories([])
    with pytest.raises(TrajectoryError, match="no transitions"):
        TransitionTable.of(np.zeros(0, int), np.zeros(0, int), np.zeros(0, int))
    with pytest.raises(TrajectoryError, match="differ in length"):
        TransitionTable.of(np.zeros(2, int), np.zeros(2, int), np.zeros(1, int))
    with pytest.raises(TrajectoryError, match="at least two steps"):
        Transitions.from_trajectories([trajectory(1)]).pairs()
    with pytest.raises(TrajectoryError, match="several shapes"):
        Transitions.from_trajectories([trajectory(2, 2), trajectory(2, 3)])
