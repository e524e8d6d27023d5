"""LSTM policies: the cell written out, state per environment, files."""

import numpy as np
import pytest
import torch

from aprl.errors import PolicyError
from aprl.policies import ActorCriticLstm, LstmPolicy, Policy, load_saved, save_policy
from tests.outputs import assert_same_outputs

from .helpers import ACT_DIM, OBS_DIM, action_box, observation_box, observations

LAYER, HIDDEN = 5, 3


def lstm_policy(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = ActorCriticLstm(OBS_DIM, ACT_DIM, layer=LAYER, hidden=HIDDEN, clip=2.0)
        with torch.no_grad():
            network.obs_mean.normal_()
            network.obs_std.uniform_(0.5, 2.0)
            network.value_mean.fill_(10.0)
            network.value_std.fill_(3.0)
            network.log_std.uniform_(-2.0, -1.0)
    return LstmPolicy(network, observation_box(), action_box(), seed)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(policy, tower, obs, cell, output):
    """One step of one tower in NumPy: new cell state, new output, head."""
    p = {k: v.double().numpy() for k, v in policy.network.state_dict().items()}
    z = np.clip((obs - p["obs_mean"]) / p["obs_std"], -2, 2)
    x = np.maximum(z @ p[f"{tower}.dense.weight"].T + p[f"{tower}.dense.bias"], 0)
    gates = x @ p[f"{tower}.cell.weight_ih"].T + p[f"{tower}.cell.bias_ih"]
    gates = gates + output @ p[f"{tower}.cell.weight_hh"].T + p[f"{tower}.cell.bias_hh"]
    i, f, g, o = np.split(gates, 4, axis=1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    output = sigmoid(o) * np.tanh(cell)
    return cell, output, output @ p[f"{tower}.head.weight"].T + p[f"{tower}.head.bias"]


def test_outputs_equal_the_formula_written_out():
    policy = lstm_policy()
    state, zeros = None, np.zeros((4, HIDDEN))
    memory = {"value_tower": (zeros, zeros), "policy_tower": (zeros, zeros)}
    for t in range(3):
        obs = observations(4, seed=t)
        mean, value = policy.mean(obs, state), policy.value(obs, state)
        _, state = policy.predict(obs, state)
        heads = {}
        for tower, (cell, output) in memory.items():
            *new, heads[tower] = reference_step(policy, tower, obs, cell, output)
            memory[tower] = new
        np.testing.assert_allclose(mean, heads["policy_tower"], atol=1e-6)
        np.testing.assert_allclose(value, 3 * heads["value_tower"][:, 0] + 10, atol=1e-5)
        rows = [*memory["value_tower"], *memory["policy_tower"]]
        np.testing.assert_allclose(state, np.stack(rows, axis=1), atol=1e-6)


def test_an_episodes_start_forgets_that_row_only():
    policy = lstm_policy()
    state = np.random.default_rng(0).standard_normal((3, 4, HIDDEN), dtype=np.float32)
    kept = state.copy()
    obs = observations(3)
    starts = np.array([False, True, False])
    _, mixed = policy.predict(obs, state, starts)
    np.testing.assert_array_equal(state, kept)  # the caller's array is untouched
    np.testing.assert_allclose(mixed[[0, 2]], policy.predict(obs, state)[1][[0, 2]], atol=1e-6)
    np.testing.assert_allclose(mixed[1], policy.predict(obs)[1][1], atol=1e-6)
    assert not np.allclose(mixed[1], policy.predict(obs, state)[1][1], atol=1e-3)


def test_rows_do_not_mix_and_nan_ends_with_its_episode():
    policy = lstm_policy()
    obs = observations(3)
    obs[1] = np.nan
    _, state = policy.predict(obs)
    assert np.isnan(state[1]).all() and np.isfinite(state[[0, 2]]).all()
    action, state = policy.predict(observations(3), state, np.array([False, True, False]))
    assert np.isfinite(state).all() and np.isfinite(action).all()


def test_deterministic_action_is_the_clipped_mean():
    policy = lstm_policy()
    obs = observations(50)
    action, _ = policy.predict(obs, deterministic=True)
    assert_same_outputs(action, np.clip(policy.mean(obs), -np.float32(0.4), 0.4))


def test_hidden_activations_are_the_outputs_of_the_cells():
    policy = lstm_policy()
    obs = observations(4)
    _, state = policy.predict(obs)
    hidden = policy.hidden(obs)
    np.testing.assert_array_equal(hidden["ff_value"], state[:, 1])
    np.testing.assert_array_equal(hidden["ff_policy"], state[:, 3])


def test_wrong_state_is_named():
    with pytest.raises(PolicyError, match=r"state of shape \(2, 4, 3\), got \(2, 4, 8\)"):
        lstm_policy().predict(observations(2), np.zeros((2, 4, 8), np.float32))


def test_a_saved_policy_plays_bit_for_bit_alike(tmp_path):
    policy = lstm_policy()
    save_policy(policy, tmp_path / "p", {})
    loaded = load_saved(tmp_path / "p")
    assert isinstance(loaded, LstmPolicy) and isinstance(loaded, Policy)
    state = loaded_state = None
    for t in range(3):
        obs = observations(4, seed=t)
        action, state = policy.predict(obs, state)
        loaded_action, loaded_state = loaded.predict(obs, loaded_state)
        assert_same_outputs(action, loaded_action)
        assert_same_outputs(state, loaded_state)


@pytest.mark.parametrize("change", [{"layer": 0}, {"hidden": "many"}, {"observation_clip": "no"}])
def test_absurd_architectures_are_refused(change):
    architecture = lstm_policy().architecture() | change
    with pytest.raises(PolicyError, match="architecture not usable"):
        LstmPolicy.from_architecture(architecture, observation_box(), action_box())
