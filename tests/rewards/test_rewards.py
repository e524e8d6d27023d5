"""Reward nets of all kinds, and what wraps them."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError, RewardError
from aprl.reward_preprocessing.transitions import TransitionTable
from aprl.rewards import (
    AffineRewardNet,
    MlpRewardNet,
    MountainCarRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    TabularRewardNet,
)
from aprl.rewards.potentials import LinearPotential, MlpPotential, TabularPotential

STATES, ACTIONS = spaces.Discrete(5), spaces.Discrete(3)
BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)
RNG = np.random.default_rng(0)


def rows(n=30, terminated=None):
    ended = RNG.random(n) < 0.5 if terminated is None else np.full(n, terminated)
    return RNG.integers(5, size=n), RNG.integers(3, size=n), RNG.integers(5, size=n), ended


@pytest.mark.parametrize(
    "inputs", [("state",), ("next_state",), ("state", "next_state"), ("action", "state")]
)
def test_tables_are_looked_up_by_their_inputs(inputs):
    ordered = [name for name in ("state", "action", "next_state") if name in inputs]
    table = RNG.normal(size=[{"action": 3}.get(name, 5) for name in ordered])
    net = TabularRewardNet(STATES, ACTIONS, inputs, table)
    s, a, after, ended = rows()
    columns = {"state": s, "action": a, "next_state": after}
    expected = table[tuple(columns[name] for name in ordered)]
    np.testing.assert_array_equal(net.predict(s, a, after, ended), expected)


def test_impossible_tables():
    with pytest.raises(ConfigError, match="shape"):
        TabularRewardNet(STATES, ACTIONS, ("state",), np.zeros(4))
    with pytest.raises(ConfigError, match="inputs"):
        TabularRewardNet(STATES, ACTIONS, ("stat",))
    with pytest.raises(ConfigError, match="numbered states"):
        TabularRewardNet(BOX, ACTIONS, ("state",))


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_shaping_adds_the_change_of_the_potential(gamma):
    base = TabularRewardNet(STATES, ACTIONS, table=RNG.normal(size=(5, 5)))
    potential = TabularPotential(5)
    potential.set_coefficients(RNG.normal(size=5))
    net = ShapedRewardNet(base, potential, gamma)
    s, a, after, ended = rows()
    phi = potential.coefficients()
    expected = base.predict(s, a, after, ended) + gamma * np.where(ended, 0, phi[after]) - phi[s]
    np.testing.assert_allclose(net.predict(s, a, after, ended), expected, atol=1e-12)
    assert net.unwrapped is base


def test_terminal_states_have_no_potential():
    base = TabularRewardNet(STATES, ACTIONS, table=np.zeros((5, 5)))
    potential = TabularPotential(5)
    potential.set_coefficients(np.array([0, 0, 0, 0, np.nan]))  # not even looked at
    net = ShapedRewardNet(base, potential, 0.9)
    reward = net.predict(np.array([1]), np.array([0]), np.array([4]), np.array([True]))
    assert reward.tolist() == [0]


@pytest.mark.parametrize("gamma", [0, 1.5, -1, "1", None, True])
def test_discounts_out_of_range(gamma):
    base = TabularRewardNet(STATES, ACTIONS)
    with pytest.raises(ConfigError, match="gamma"):
        ShapedRewardNet(base, TabularPotential(5), gamma)


def test_affine_and_ensemble():
    a, b = (TabularRewardNet(STATES, ACTIONS, table=RNG.normal(size=(5, 5))) for _ in range(2))
    r = rows()
    np.testing.assert_allclose(
        AffineRewardNet(a, scale=2, shift=0.5).predict(*r), 2 * (a.predict(*r) - 0.5)
    )
    ensemble = RewardEnsemble([a, b])
    both = np.stack([a.predict(*r), b.predict(*r)])
    np.testing.assert_allclose(ensemble.predict(*r), both.mean(axis=0))
    np.testing.assert_allclose(ensemble.disagreement(*r), both.std(axis=0))
    assert AffineRewardNet(ShapedRewardNet(a, TabularPotential(5), 0.9)).unwrapped is a


def test_impossible_ensembles():
    with pytest.raises(ConfigError, match="at least one"):
        RewardEnsemble([])
    with pytest.raises(ConfigError, match="same environment"):
        RewardEnsemble([TabularRewardNet(STATES, ACTIONS), MlpRewardNet(BOX, ACTIONS)])


def test_networks_see_only_their_inputs():
    net = MlpRewardNet(BOX, ACTIONS, ("state", "action"), (8,), seed=1)
    states = RNG.normal(size=(6, 2)).astype(np.float32)
    actions, ended = np.arange(6) % 3, np.zeros(6, bool)
    first, second = (net.predict(states, actions, states + d, ended) for d in (0, 5))
    np.testing.assert_array_equal(first, second)
    assert (net.predict(states, (actions + 1) % 3, states, ended) != first).all()


def test_inputs_are_standardised_through_all_wrappers():
    states = RNG.normal(loc=7, scale=100, size=(500, 2))
    t = TransitionTable.of(states, np.arange(500) % 3, 2 * states)
    net = MlpRewardNet(BOX, ACTIONS, ("state", "action"))
    shaped = ShapedRewardNet(net, MlpPotential(2), 0.9)
    RewardEnsemble([AffineRewardNet(shaped)]).fit_scale(t)
    np.testing.assert_allclose(net.input_mean[:2], states.mean(axis=0))
    np.testing.assert_allclose(net.input_std[:2], states.std(axis=0))
    np.testing.assert_allclose(shaped.potential.input_std, states.std(axis=0))


def test_networks_take_numbered_states():
    net = MlpRewardNet(STATES, ACTIONS, ("state", "next_state"), (8,))
    assert len(np.unique(net.predict(*rows(200)))) > 10


def test_mountain_car():
    net = MountainCarRewardNet(BOX, ACTIONS)
    states = np.array([[0.49, 0], [0.5, 0], [0.6, 0]], np.float32)
    rewards = net.predict(states, np.zeros(3, int), states, np.zeros(3, bool))
    assert rewards.tolist() == [-1, 0, 0]


def test_large_inputs_are_split_into_batches(monkeypatch):
    from aprl.rewards import base

    net = TabularRewardNet(STATES, ACTIONS, table=RNG.normal(size=(5, 5)))
    r = rows(100)
    whole = net.predict(*r)
    monkeypatch.setattr(base, "BATCH", 7)
    np.testing.assert_array_equal(net.predict(*r), whole)


def test_another_environment_is_named():
    net = TabularRewardNet(STATES, ACTIONS)
    net.require_fit(STATES, ACTIONS, "x.pt")
    with pytest.raises(RewardError, match=r"x\.pt is a reward for another .*5.*6"):
        net.require_fit(spaces.Discrete(6), ACTIONS, "x.pt")
    with pytest.raises(RewardError, match="its actions"):
        net.require_fit(STATES, spaces.Discrete(4), "x.pt")


def test_gradients_reach_base_and_potential():
    net = ShapedRewardNet(MlpRewardNet(BOX, ACTIONS), LinearPotential(2), 0.9)
    states = torch.ones(4, 2, dtype=torch.float64)
    actions, ended = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.bool)
    net(states, actions, 2 * states, ended).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
