import json

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import PolicyError
from aprl.policies import ActorCriticMlp, MlpPolicy, Policy
from tests.outputs import assert_same_outputs

from .helpers import action_box, mlp_policy, observation_box, observations, reference_mlp


def test_outputs_equal_the_formula_written_out():
    policy, obs = mlp_policy(), 3 * observations(50)
    mean, value, (policy_units, value_units) = reference_mlp(policy, obs)
    np.testing.assert_allclose(policy.mean(obs), mean, atol=1e-5)
    np.testing.assert_allclose(policy.value(obs), value, atol=1e-5)
    hidden = policy.hidden(obs)
    assert hidden["ff_policy"].shape == (50, 5 + 4)
    assert hidden["ff_value"].shape == (50, 7)
    np.testing.assert_allclose(hidden["ff_policy"], policy_units, atol=1e-5)
    np.testing.assert_allclose(hidden["ff_value"], value_units, atol=1e-5)


def test_the_reference_needs_its_clip():
    """Guards the test above: its observations do reach the bound of the normaliser."""
    policy, obs = mlp_policy(clip=100.0), 3 * observations(50)
    clipped = reference_mlp(mlp_policy(clip=2.0), obs)[0]
    assert np.abs(policy.mean(obs) - clipped).max() > 1e-2


def test_forward_gives_both_heads():
    policy, obs = mlp_policy(), observations(4)
    with torch.no_grad():
        head, value = policy.network(torch.from_numpy(obs))
    assert_same_outputs(head.numpy(), policy.mean(obs))
    assert_same_outputs(value.numpy(), policy.value(obs))


def test_gradients_flow_through_both_heads_without_changing_the_input():
    network, obs = mlp_policy().network, torch.from_numpy(observations(4))
    before = obs.clone()
    head, value = network(obs)
    (head.square().sum() + value.sum()).backward()
    assert torch.equal(obs, before)
    for name, parameter in network.named_parameters():
        if name != "log_std":
            assert parameter.grad.abs().sum() > 0, name


def test_linear_policy_has_no_hidden_units():
    policy = mlp_policy(policy_layers=[])
    assert policy.hidden(observations(4))["ff_policy"].shape == (4, 0)
    assert policy.mean(observations(4)).shape == (4, 3)


def test_samples_are_gaussian_around_the_mean():
    policy = mlp_policy(action_space=action_box(bound=100.0))
    obs = np.repeat(observations(1), 20_000, axis=0)
    actions, state = policy.predict(obs)
    assert state is None
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions.mean(axis=0), policy.mean(obs)[0], atol=0.01)
    std = policy.network.log_std.exp().detach().numpy()
    np.testing.assert_allclose(actions.std(axis=0), std, rtol=0.03)


def test_deterministic_action_is_the_mean_and_draws_nothing():
    policy = mlp_policy(action_space=action_box(bound=100.0))
    before = policy.state_dict()
    actions, _ = policy.predict(observations(4), deterministic=True)
    assert_same_outputs(actions, policy.mean(observations(4)))
    assert policy.state_dict() == before


def test_actions_are_clipped_to_the_box():
    low, high = np.float32([-0.1, -0.2, -0.3]), np.float32([0.1, 0.05, 0.3])
    policy = mlp_policy(action_space=spaces.Box(low, high))
    with torch.no_grad():
        policy.network.log_std.fill_(1.0)
    actions, _ = policy.predict(observations(200))
    np.testing.assert_array_equal(actions.min(axis=0), low)
    np.testing.assert_array_equal(actions.max(axis=0), high)
    assert policy.action_space.contains(actions[0])


def test_same_seed_same_actions_whatever_torch_does():
    a, b, c = mlp_policy(seed=5), mlp_policy(seed=5), mlp_policy(seed=6)
    obs = observations(8)
    first = a.predict(obs)[0]
    torch.rand(3)
    assert_same_outputs(first, b.predict(obs)[0])
    assert (first != c.predict(obs)[0]).any()
    assert (first != a.predict(obs)[0]).any()


def test_random_state_survives_json():
    policy = mlp_policy()
    policy.predict(observations(3))
    state = json.loads(json.dumps(policy.state_dict()))
    expected = policy.predict(observations(3))[0]
    other = mlp_policy(seed=99)
    other.load_state_dict(state)
    assert_same_outputs(other.predict(observations(3))[0], expected)


def test_nan_rows_leave_the_others_alone():
    policy, obs = mlp_policy(), observations(6)
    clean = policy.predict(obs, deterministic=True)[0]
    obs[2] = np.nan
    dirty = policy.predict(obs, deterministic=True)[0]
    assert np.isnan(dirty[2]).all()
    others = np.arange(6) != 2
    assert_same_outputs(dirty[others], clean[others])


@pytest.mark.filterwarnings("error")
def test_observations_may_be_read_only_or_float64():
    policy, obs = mlp_policy(), observations(4)
    expected = policy.mean(obs)
    obs.flags.writeable = False
    assert_same_outputs(policy.mean(obs), expected)
    assert_same_outputs(policy.mean(obs.astype(np.float64)), expected)


@pytest.mark.parametrize("shape", [(4, 5), (4, 7), (6,), (1, 4, 6)])
def test_wrong_width_is_named(shape):
    with pytest.raises(PolicyError, match=r"shape \(n, 6\)") as error:
        mlp_policy().predict(np.zeros(shape, np.float32))
    assert str(shape) in str(error.value)


def discrete_policy(start=0, n=3, **kwargs):
    return mlp_policy(spaces.Discrete(4, start=start), spaces.Discrete(n, start=start), **kwargs)


def test_discrete_observations_enter_one_hot():
    policy = discrete_policy()
    obs = np.array([3, 0, 1, 3])
    logits, value, _ = reference_mlp(policy, np.eye(4, dtype=np.float32)[obs])
    np.testing.assert_allclose(policy.mean(obs), logits, atol=1e-6)
    np.testing.assert_allclose(policy.value(obs), value, atol=1e-5)
    assert np.abs(logits[0] - logits[1]).max() > 1e-2


def test_discrete_actions_follow_the_softmax():
    policy, n = discrete_policy(), 30_000
    obs = np.full(n, 2)
    logits = policy.mean(obs)[0].astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum()
    actions, _ = policy.predict(obs)
    assert actions.dtype == np.int64
    frequency = np.bincount(actions, minlength=3) / n
    np.testing.assert_allclose(frequency, expected, atol=0.01)
    assert np.ptp(expected) > 0.05  # a uniform sampler would not pass
    mode, _ = policy.predict(obs, deterministic=True)
    assert (mode == logits.argmax()).all()


def test_discrete_spaces_may_start_elsewhere():
    plain, shifted = discrete_policy(), discrete_policy(start=10)
    obs = np.array([0, 1, 2, 3])
    a, b = plain.predict(obs)[0], shifted.predict(obs + 10)[0]
    np.testing.assert_array_equal(a + 10, b)
    assert shifted.network.log_std is None


@pytest.mark.parametrize("bad", [[4], [-1], [0.5], [[1]]])
def test_observation_outside_a_discrete_space_is_refused(bad):
    with pytest.raises(PolicyError, match=r"Discrete\(4\)"):
        discrete_policy().predict(np.array(bad))


def test_network_and_spaces_must_agree():
    network = ActorCriticMlp(6, 3)
    with pytest.raises(PolicyError, match="6 observations does not fit"):
        MlpPolicy(network, observation_box(7), action_box())
    with pytest.raises(PolicyError, match="3 actions does not fit"):
        MlpPolicy(network, observation_box(), action_box(4))
    with pytest.raises(PolicyError, match="Gaussian policy head does not fit"):
        MlpPolicy(network, observation_box(), spaces.Discrete(3))
    with pytest.raises(PolicyError, match="one-dimensional"):
        MlpPolicy(network, spaces.Box(0.0, 1.0, (2, 3)), action_box())


@pytest.mark.parametrize("sizes", [{"policy_layers": [0]}, {"value_layers": ["a"]}, {"clip": 0.0}])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r"layer sizes|clip"):
        ActorCriticMlp(6, 3, **sizes)


def test_mlp_policy_fulfils_the_protocol():
    policy = mlp_policy()
    assert isinstance(policy, Policy)
    assert policy.initial_state(3) is None
