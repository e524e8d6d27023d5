"""Rewards made of other rewards."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.reward_preprocessing.transitions import TransitionTable
from aprl.rewards import (
    AffineRewardNet,
    MlpRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    RewardInputs,
    RewardNet,
    ShapedRewardNet,
    TabularRewardNet,
)
from aprl.rewards.potentials import LinearPotential, MlpPotential, TabularPotential
from tests.outputs import assert_same_outputs
from tests.rewards.helpers import (
    ACTIONS,
    BOX,
    CHOICE,
    NUMBERED,
    batch,
    numbered_rows,
    running_net,
    running_shaped_net,
)

PLANE = spaces.Box(-np.inf, np.inf, (2,), np.float32)
RNG = np.random.default_rng(0)


class Count(RewardNet):
    """Pays the number of the action, counted from 0."""

    def forward(self, state, action, next_state, terminated):
        return (action - 1).float()

    def architecture(self):
        return {}

    @classmethod
    def from_architecture(cls, architecture, observation_space, action_space):
        return cls(observation_space, action_space)


def test_shaping_by_hand():
    shaped = running_shaped_net(0.5, Count(BOX, CHOICE))
    obs, actions, next_obs, _ = batch()
    with torch.no_grad():
        now, later = (shaped.potential(torch.from_numpy(x)).numpy() for x in (obs, next_obs))
    went_on = shaped.predict(obs, actions, next_obs, np.zeros(5))
    ended = shaped.predict(obs, actions, next_obs, np.ones(5))
    np.testing.assert_allclose(went_on, actions - 1 + 0.5 * later - now, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ended, actions - 1 - now, rtol=1e-5, atol=1e-6)
    half = shaped.predict(obs, actions, next_obs, np.full(5, 0.5))
    np.testing.assert_allclose(half, (went_on + ended) / 2, rtol=1e-5, atol=1e-6)
    for numbers, rewards in ((np.zeros(5), went_on), (np.ones(5), ended)):
        flags = numbers.astype(bool)
        assert_same_outputs(shaped.predict(obs, actions, next_obs, flags), rewards)


def test_shaping_telescopes_over_an_episode_that_terminates():
    gamma = 0.9
    shaped = running_shaped_net(gamma)
    path = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    actions = np.array([1, 2, 3, 4, 1, 2])
    terminated = np.array([0, 0, 0, 0, 0, 1])
    extra = shaped.predict(path[:-1], actions, path[1:], terminated) - shaped.base.predict(
        path[:-1], actions, path[1:], terminated
    )
    with torch.no_grad():
        potential = float(shaped.potential(torch.from_numpy(path[:1])))
    assert (gamma ** np.arange(6) * extra).sum() == pytest.approx(-potential, abs=1e-5)


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_shaping_adds_the_change_of_the_potential(gamma):
    base = TabularRewardNet(NUMBERED, ACTIONS, table=RNG.normal(size=(5, 5)))
    potential = TabularPotential(5)
    potential.set_coefficients(RNG.normal(size=5))
    net = ShapedRewardNet(base, potential, gamma)
    s, a, after, ended = numbered_rows()
    phi = potential.coefficients()
    expected = base.predict(s, a, after, ended) + gamma * np.where(ended, 0, phi[after]) - phi[s]
    np.testing.assert_allclose(net.predict(s, a, after, ended), expected, atol=1e-12)
    np.testing.assert_allclose(net(*net.encode(s, a, after, ended)).detach(), expected, atol=1e-12)
    assert net.unwrapped is base


def test_terminal_states_have_no_potential():
    base = TabularRewardNet(NUMBERED, ACTIONS, table=np.zeros((5, 5)))
    potential = TabularPotential(5)
    potential.set_coefficients(np.array([0, 0, 0, 0, np.nan]))  # not even looked at
    net = ShapedRewardNet(base, potential, 0.9)
    reward = net.predict(np.array([1]), np.array([0]), np.array([4]), np.array([True]))
    assert reward.tolist() == [0]


@pytest.mark.parametrize("gamma", [0, 1.5, -1, "1", None, True])
def test_discounts_out_of_range(gamma):
    base = TabularRewardNet(NUMBERED, ACTIONS)
    with pytest.raises(ConfigError, match=r"gamma must be in \(0, 1\]"):
        ShapedRewardNet(base, TabularPotential(5), gamma)


def test_affine():
    a = TabularRewardNet(NUMBERED, ACTIONS, table=RNG.normal(size=(5, 5)))
    r = numbered_rows()
    np.testing.assert_allclose(
        AffineRewardNet(a, scale=2, shift=0.5).predict(*r), 2 * (a.predict(*r) - 0.5)
    )
    assert AffineRewardNet(ShapedRewardNet(a, TabularPotential(5), 0.9)).unwrapped is a


def test_ensemble_is_mean_and_spread():
    members = [running_net() for _ in range(3)]
    each = np.stack([m.predict(*batch()) for m in members])
    mean = RewardEnsemble(members).predict(*batch())
    careful = RewardEnsemble(members, std_weight=-2.0).predict(*batch())
    np.testing.assert_allclose(mean, each.mean(axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        careful, each.mean(axis=0) - 2 * each.std(axis=0, ddof=1), rtol=1e-4, atol=1e-6
    )


def test_ensemble_of_tables_and_its_disagreement():
    a, b = (TabularRewardNet(NUMBERED, ACTIONS, table=RNG.normal(size=(5, 5))) for _ in range(2))
    r = numbered_rows()
    ensemble = RewardEnsemble([a, b])
    both = np.stack([a.predict(*r), b.predict(*r)])
    np.testing.assert_allclose(ensemble.predict(*r), both.mean(axis=0))
    np.testing.assert_allclose(ensemble.disagreement(*r), both.std(axis=0))


def test_impossible_ensembles():
    with pytest.raises(ConfigError, match="at least one"):
        RewardEnsemble([])
    with pytest.raises(ConfigError, match="at least 2 members"):
        RewardEnsemble([running_net()], std_weight=-1.0)
    with pytest.raises(ConfigError, match="same environment"):
        RewardEnsemble([TabularRewardNet(NUMBERED, ACTIONS), MlpRewardNet(BOX, ACTIONS)])
    with pytest.raises(ConfigError, match="same environment"):
        RewardEnsemble([running_net(), running_net(BOX, BOX)])


def test_running_statistics_reach_every_part():
    members = [running_net(), running_shaped_net()]
    net = NormalizedRewardNet(RewardEnsemble(members))
    net.update_statistics(*net.encode(*batch(200)))
    counts = [value.item() for name, value in net.state_dict().items() if name.endswith("count")]
    assert counts == [200] * 4
    rewards = net.predict(*batch(200))
    assert abs(rewards.mean()) < 1e-4 and abs(rewards.std() - 1) < 1e-3


def test_inputs_are_standardised_through_all_wrappers():
    states = RNG.normal(loc=7, scale=100, size=(500, 2))
    t = TransitionTable.of(states, np.arange(500) % 3, 2 * states)
    net = MlpRewardNet(PLANE, ACTIONS, ("state", "action"))
    shaped = ShapedRewardNet(net, MlpPotential(PLANE), 0.9)
    columns = RewardInputs.raw(t.states, t.actions, t.next_states, t.terminated)
    RewardEnsemble([AffineRewardNet(shaped)]).update_statistics(*columns)
    np.testing.assert_allclose(net.mlp.norm.mean[:2], states.mean(axis=0))
    np.testing.assert_allclose(net.mlp.norm.std[:2], states.std(axis=0))
    np.testing.assert_allclose(shaped.potential.mlp.norm.std, states.std(axis=0))


def test_gradients_reach_base_and_potential():
    net = ShapedRewardNet(MlpRewardNet(PLANE, ACTIONS), LinearPotential(2), 0.9)
    states = torch.ones(4, 2, dtype=torch.float64)
    actions, ended = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.bool)
    net(states, actions, 2 * states, ended).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_gradients_reach_encoded_inputs():
    net = running_shaped_net()
    inputs = RewardInputs(*(c.requires_grad_() for c in net.encode(*batch())))
    gradients = torch.autograd.grad(net(*inputs).sum(), inputs)
    assert all((gradient != 0).any() for gradient in gradients)
