"""What all reward nets have in common."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import RewardError
from aprl.rewards import KINDS, NormalizedRewardNet, TabularRewardNet, base
from tests.outputs import assert_same_outputs
from tests.rewards.helpers import ACTIONS, NUMBERED, batch, numbered_rows, running_shaped_net

RNG = np.random.default_rng(0)


def test_every_kind_is_known():
    simple, wrappers = ("mlp", "tabular", "mountain_car", "imitation"), ("shaped", "affine")
    assert {*simple, *wrappers, "normalized", "ensemble"} <= set(KINDS)  # tests may add their own


def test_large_inputs_are_split_into_batches(monkeypatch):
    net = TabularRewardNet(NUMBERED, ACTIONS, table=RNG.normal(size=(5, 5)))
    r = numbered_rows(100)
    whole = net.predict(*r)
    monkeypatch.setattr(base, "BATCH", 7)
    assert_same_outputs(net.predict(*r), whole)


def test_another_environment_is_named():
    net = TabularRewardNet(NUMBERED, ACTIONS)
    net.require_fit(NUMBERED, ACTIONS, "x.pt")
    with pytest.raises(RewardError, match=r"x\.pt is a reward for another .*5.*6"):
        net.require_fit(spaces.Discrete(6), ACTIONS, "x.pt")
    with pytest.raises(RewardError, match="its actions"):
        net.require_fit(NUMBERED, spaces.Discrete(4), "x.pt")


def test_prediction_keeps_no_gradient_and_changes_nothing():
    net = NormalizedRewardNet(running_shaped_net())
    before = {k: v.clone() for k, v in net.state_dict().items()}
    first, second = net.predict(*batch()), net.predict(*batch())
    assert_same_outputs(first, second)
    assert first.dtype == np.float32
    assert all((before[k] == v).all() for k, v in net.state_dict().items())
