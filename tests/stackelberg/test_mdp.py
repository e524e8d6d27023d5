"""Worlds: what is refused, and what is computed from the tables."""

import numpy as np
import pytest
from scipy import sparse

from aprl.stackelberg.mdp import FiniteMDP, Task, WorldError, dense_world
from tests.stackelberg.helpers import corridor


def test_rows_that_do_not_sum_to_one_are_named():
    transitions = [[[0.5, 0.5], [0.5, 0.4]], [[1, 0], [1, 0]]]
    with pytest.raises(WorldError, match=r"state 0, action 1 sum to 0\.9, not 1"):
        dense_world("w", transitions, np.zeros((2, 2, 2)), start=0, horizon=3)


def test_negative_probability_is_refused():
    transitions = [[[1.5, -0.5]], [[1, 0]]]
    with pytest.raises(WorldError, match="at least 0"):
        dense_world("w", transitions, np.zeros((2, 1, 2)), start=0, horizon=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 2.5}, "horizon"),
        ({"start": 2}, r"start must be a state in \[0, 2\), got 2"),
        ({"start": 1, "final": (1,)}, "start state 1 is final"),
        ({"rewards": np.full((2, 1, 2), np.nan)}, "finite"),
        ({"rewards": np.zeros((2, 2, 2))}, "shape"),
        ({"transitions": np.zeros((2, 3))}, "shape"),
    ],
)
def test_numbers_that_cannot_work(change, message):
    values = {
        "transitions": [[[1, 0]], [[0, 1]]],
        "rewards": np.zeros((2, 1, 2)),
        "start": 0,
        "horizon": 3,
        **change,
    }
    with pytest.raises(WorldError, match=message):
        dense_world("w", **values)


def test_dense_and_sparse_do_not_mix():
    task = corridor().task
    with pytest.raises(WorldError, match="both be dense"):
        FiniteMDP(task, sparse.csr_array(corridor().transitions))


def test_expected_rewards_of_final_states_are_zero():
    rewards = np.ones((2, 1, 2))
    world = dense_world("w", [[[0, 1]], [[0, 1]]], rewards, start=0, horizon=3, final=(1,))
    assert world.expected_rewards.tolist() == [1.0, 0.0]


def test_sparse_world_has_the_same_rewards_and_rows():
    world = corridor()
    task = Task(3, 2, sparse.csr_array(world.task.rewards), 0, 4, world.task.final)
    twin = FiniteMDP(task, sparse.csr_array(world.transitions))
    assert (twin.expected_rewards == world.expected_rewards).all()
    assert (twin.row(0, 1) == world.row(0, 1)).all()
    assert twin.task.reward_bounds == world.task.reward_bounds == (0.0, 1.0)


def test_reward_bounds_include_the_zero_after_the_end():
    world = dense_world("w", [[[1.0]]], [[[-2.0]]], start=0, horizon=2)
    assert world.task.reward_bounds == (-2.0, 0.0)
