"""The four objectives, by their definitions."""

import numpy as np
import pytest
import torch

from aprl.errors import ConfigError
from aprl.reward_preprocessing.objectives import OBJECTIVES, get_objective
from aprl.reward_preprocessing.transitions import Transitions

from .helpers import trajectory


def test_values_by_definition():
    t = Transitions.from_trajectories([trajectory(3), trajectory(2)])
    x = np.array([1.0, -2.0, 0.5, 4.0, 3.0])
    steps = np.abs([x[1] - x[0], x[2] - x[1], x[4] - x[3]])
    expected = {
        "sparse_l1": np.mean(np.abs(x)),
        "sparse_log": np.mean(np.log(1 + np.abs(x))),
        "smooth_l1": np.mean(steps),
        "smooth_log": np.mean(np.log(1 + steps)),
    }
    assert {n: o.value(x, t) for n, o in OBJECTIVES.items()} == pytest.approx(expected)


def test_shuffled_rows_change_what_is_smooth():
    """D4: neighbours must be neighbours in time, whatever the batches are."""
    t = Transitions.from_trajectories([trajectory(200)])
    x = np.cumsum(np.random.default_rng(0).normal(size=200))
    shuffled = np.random.default_rng(1).permutation(200)
    smooth, sparse = get_objective("smooth_l1"), get_objective("sparse_l1")
    assert sparse.value(x, t) == pytest.approx(sparse.value(x[shuffled], t))
    assert smooth.value(x[shuffled], t) > 3 * smooth.value(x, t)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_arrays_and_tensors_agree(objective):
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(objective.penalty(torch.as_tensor(x)).numpy(), objective.penalty(x))


def test_unknown_objective_names_near_ones():
    with pytest.raises(ConfigError, match="sparse_l1"):
        get_objective("sparse_l2")
