"""Losses of predictions, sampled and exact."""

import numpy as np
import pytest

from aprl.stackelberg.losses import Prediction, expected_kl, expected_l2, kl_loss, l2_loss
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.model import with_final_states
from aprl.stackelberg.worlds import make_world


def test_l2_by_hand():
    predictions = [
        Prediction(0, np.array([1.0, 0.0, 0.0]), 0),
        Prediction(1, np.array([0.5, 0.5, 0.0]), 2),
    ]
    assert l2_loss(predictions) == pytest.approx((0 + 1.5) / 2)


def test_kl_by_hand():
    half = np.array([0.5, 0.5, 0.0])
    predictions = [Prediction(0, half, 0), Prediction(0, half, 1), Prediction(3, half, 0)]
    assert kl_loss(predictions) == pytest.approx(np.log(2) / 3)
    assert kl_loss(predictions[:2]) == 0
    assert kl_loss([Prediction(0, half, 2)]) > 20  # impossible, but bounded


@pytest.mark.parametrize(
    ("actions", "loss"),
    [((1, 0, 0), 0.210), ((0, 0, 0), 0.210), ((0, 1, 0), 0.558), ((1, 1, 0), 0.020)],
)
def test_published_l2_of_a_truthful_model(actions, loss):
    world = make_world("simple_mdp_2")
    assert expected_l2(world, world, np.array(actions)) == pytest.approx(loss, abs=0.01)


def test_expected_kl_only_sees_what_is_visited():
    world = make_world("simple_mdp_2")
    uniform = FiniteMDP(world.task, with_final_states(world.task, np.full((6, 3), 1 / 3)))
    policy = np.array([1, 0, 0])
    assert expected_kl(world, world, policy) == 0
    row = world.row(1, 0)
    divergence = sum(p * np.log(3 * p) for p in row if p > 0)
    assert expected_kl(world, uniform, policy) == pytest.approx(divergence)
    rows = world.transitions.copy()
    rows[1] = [0, 0, 1]  # a lie about a pair that is never played
    assert expected_kl(world, FiniteMDP(world.task, rows), policy) == 0
    assert expected_kl(world, FiniteMDP(world.task, rows), np.array([1, 1, 0])) == np.inf
