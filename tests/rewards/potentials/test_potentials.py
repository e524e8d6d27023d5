"""Potentials of all kinds."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.policies import ActorCriticMlp, MlpPolicy
from aprl.rewards.potentials import (
    POTENTIALS,
    CriticPotential,
    LinearInParameters,
    LinearPotential,
    MlpPotential,
    SinusoidPotential,
    TabularPotential,
)
from tests.outputs import assert_same_outputs

BOX = spaces.Box(-np.inf, np.inf, (3,), np.float32)
STATES = np.random.default_rng(0).normal(loc=2, scale=[1, 5, 0.1], size=(40, 3))


def critic_policy(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ActorCriticMlp(3, 2, discrete=True)
    return MlpPolicy(network, BOX, spaces.Discrete(2))


def each_kind():
    return {
        "tabular": (TabularPotential(5), np.arange(40) % 5),
        "linear": (LinearPotential(3), STATES),
        "mlp": (MlpPotential(BOX, (8, 8)), STATES),
        "critic": (CriticPotential(critic_policy()), STATES.astype(np.float32)),
        "sinusoid": (SinusoidPotential(2.0, np.array([1.0, 2.0, 3.0, 4.0])), STATES),
    }


@pytest.mark.parametrize("kind", POTENTIALS)
def test_a_constant_raises_it_everywhere(kind):
    potential, states = each_kind()[kind]
    potential.fit_scale(states, 7.0)
    before = potential.of(states)
    potential.add_constant(2.5)
    np.testing.assert_allclose(potential.of(states), before + 2.5, atol=1e-12)


@pytest.mark.parametrize("kind", ["tabular", "linear", "mlp", "critic"])
def test_trainable_potentials_start_at_zero(kind):
    potential, states = each_kind()[kind]
    potential.fit_scale(states, 7.0)
    assert not potential.of(states).any()


@pytest.mark.parametrize("kind", ["tabular", "linear", "critic"])
def test_features_times_coefficients_is_the_potential(kind):
    potential, states = each_kind()[kind]
    assert isinstance(potential, LinearInParameters)
    potential.fit_scale(states, 7.0)
    features = potential.features(states)
    coefficients = np.random.default_rng(1).normal(size=features.shape[1])
    potential.set_coefficients(coefficients)
    np.testing.assert_allclose(potential.of(states), features @ coefficients, atol=1e-12)
    np.testing.assert_array_equal(potential.coefficients(), coefficients)


@pytest.mark.parametrize("kind", POTENTIALS)
def test_architecture_and_weights_rebuild_it(kind):
    potential, states = each_kind()[kind]
    potential.fit_scale(states, 7.0)
    with torch.no_grad():
        for parameter in potential.parameters():
            parameter.add_(0.1)
    other = POTENTIALS[kind].from_architecture(potential.architecture())
    other.load_state_dict(potential.state_dict())
    assert_same_outputs(other.of(states), potential.of(states))


def test_slopes_are_per_unit_of_the_state():
    potential = LinearPotential(3)
    potential.fit_scale(STATES, 1.0)
    potential.set_coefficients(np.array([1.0, 2.0, 3.0, 4.0]))
    moved = STATES + np.array([0, 0.5, 0])
    difference = potential.of(moved) - potential.of(STATES)
    np.testing.assert_allclose(difference, 0.5 * potential.slopes[1])
    np.testing.assert_allclose(
        LinearPotential.with_slopes(np.array([1.0, 2, 3])).of(STATES), STATES @ [1, 2, 3]
    )


def test_a_component_that_never_changes_does_no_harm():
    states = STATES.copy()
    states[:, 1] = 4
    potential = LinearPotential(3)
    potential.fit_scale(states, 1.0)
    assert np.isfinite(potential.features(states)).all()


def test_the_critic_itself_is_not_trained():
    policy = critic_policy()
    potential = CriticPotential(policy)
    potential.set_coefficients(np.array([1.0, 0.0]))
    states = STATES.astype(np.float32)
    np.testing.assert_allclose(potential.of(states), policy.value(states), rtol=1e-6)
    trained = [name for name, p in potential.named_parameters() if p.requires_grad]
    assert sorted(trained) == ["bias", "factor"]


def test_numbered_states_enter_a_network_one_hot():
    numbers = spaces.Discrete(5)
    potential, states = MlpPotential(numbers, (8,), start_at_zero=False), np.arange(5)
    values = potential.of(states)
    assert len(np.unique(values)) == 5
    np.testing.assert_array_equal(potential.of(np.eye(5)), values)
    with pytest.raises(ConfigError, match="start_at_zero"):
        MlpPotential(BOX, spectral_norm=True)


def test_the_initial_weights_come_from_the_seed_alone():
    before = torch.get_rng_state()
    a, b, c = (MlpPotential(BOX, seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["mlp.layers.0.weight"], c["mlp.layers.0.weight"])
