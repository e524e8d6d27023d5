"""Rewards that are tables."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.rewards import TabularRewardNet
from tests.rewards.helpers import ACTIONS, BOX, NUMBERED, numbered_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "inputs", [("state",), ("next_state",), ("state", "next_state"), ("action", "state")]
)
def test_tables_are_looked_up_by_their_inputs(inputs):
    ordered = [name for name in ("state", "action", "next_state") if name in inputs]
    table = RNG.normal(size=[{"action": 3}.get(name, 5) for name in ordered])
    net = TabularRewardNet(NUMBERED, ACTIONS, inputs, table)
    s, a, after, ended = numbered_rows()
    columns = {"state": s, "action": a, "next_state": after}
    expected = table[tuple(columns[name] for name in ordered)]
    np.testing.assert_array_equal(net.predict(s, a, after, ended), expected)
    encoded = net.encode(s, a, after, ended)
    np.testing.assert_array_equal(net(*encoded).detach(), expected)


def test_impossible_tables():
    with pytest.raises(ConfigError, match="shape"):
        TabularRewardNet(NUMBERED, ACTIONS, ("state",), np.zeros(4))
    with pytest.raises(ConfigError, match="inputs"):
        TabularRewardNet(NUMBERED, ACTIONS, ("stat",))
    with pytest.raises(ConfigError, match="numbered states"):
        TabularRewardNet(BOX, ACTIONS, ("state",))
