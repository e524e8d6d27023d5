"""The recurrent learner: from a saved policy and back, and that memory is learned and used."""

import numpy as np
import pytest
import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

from aprl.errors import ConfigError
from aprl.policies import ActorCriticLstm, LstmPolicy, load_saved, save_policy
from aprl.training.normalize import VecNormalize
from aprl.training.recurrent_ppo import (
    SequencePolicy,
    make_recurrent_ppo,
    recurrent_policy_of,
    recurrent_ppo_arguments,
)
from tests.outputs import assert_same_outputs
from tests.training.test_learner import line_env, rps_env

ARGUMENTS = recurrent_ppo_arguments({"nminibatches": 2, "noptepochs": 2}, batch_size=64, num_env=4)


def start_policy(env):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = ActorCriticLstm(2, 1, layer=6, hidden=5, clip=3.0)
        with torch.no_grad():
            network.obs_mean.normal_()
            network.obs_std.uniform_(0.5, 2)
            network.log_std.fill_(-1.5)
    return LstmPolicy(network, env.observation_space, env.action_space)


def roll(policy, steps=12, seed=0):
    """Means and states over a sequence with an episode's start in the middle."""
    rng = np.random.default_rng(seed)
    state, found = None, []
    for step in range(steps):
        obs = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        starts = np.array([step == 0, step == 5, False, step % 4 == 0])
        found.append(policy.mean(obs, state, starts))
        _, state = policy.predict(obs, state, starts, deterministic=True)
    return np.array(found), state


def test_there_and_back_again():
    env = line_env()
    start = start_policy(env)
    learner = make_recurrent_ppo(env, ARGUMENTS, 3e-4, seed=0, start=start)
    back = recurrent_policy_of(learner, None)
    for a, b in zip(roll(start), roll(back), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, value in start.network.state_dict().items():
        assert torch.equal(value, back.network.state_dict()[name]), name


def test_the_learner_acts_as_the_policy_does():
    """sb3-contrib's own prediction, through its sequences, gives our network's actions."""
    env = line_env()
    start = start_policy(env)
    learner = make_recurrent_ppo(env, ARGUMENTS, 3e-4, seed=0, start=start)
    rng = np.random.default_rng(1)
    ours = theirs = None
    for step in range(10):
        obs = rng.uniform(-1, 1, (4, 2)).astype(np.float32)
        starts = np.array([step == 0, step == 3, step == 7, step % 2 == 0])
        expected, ours = start.predict(obs, ours, starts, deterministic=True)
        actions, theirs = learner.predict(obs, theirs, starts, deterministic=True)
        np.testing.assert_allclose(actions, expected, atol=1e-6)


def test_learning_rate_zero_changes_nothing():
    env = line_env()
    start = start_policy(env)
    learner = make_recurrent_ppo(env, ARGUMENTS, 0.0, seed=0, start=start)
    learner.learn(128)
    back = recurrent_policy_of(learner, None)
    assert_same_outputs(roll(start)[0], roll(back)[0])


@pytest.mark.parametrize("make_env", [line_env, rps_env])
def test_from_scratch_with_running_normalisers(make_env, tmp_path):
    env = VecNormalize(make_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_recurrent_ppo(env, ARGUMENTS, 3e-4, seed=0)
    learner.learn(128)
    policy = recurrent_policy_of(learner, env)
    assert policy.network.layer == policy.network.hidden_size == 128
    if make_env is line_env:
        np.testing.assert_allclose(policy.network.obs_mean, env.obs_rms.mean, rtol=1e-6)
        assert policy.network.clip == env.clip_obs
    else:
        assert (policy.network.obs_mean == 0).all() and policy.network.clip == float("inf")
    env.training = False
    obs = env.venv.observation_space.sample()
    obs = np.stack([obs] * 4)
    expected, _ = learner.predict(
        env.normalize_obs(obs), None, np.ones(4, bool), deterministic=True
    )
    actions, _ = policy.predict(obs, deterministic=True)
    np.testing.assert_allclose(actions, expected, atol=1e-6)
    save_policy(policy, tmp_path / "policy", {})
    again = load_saved(tmp_path / "policy")
    assert_same_outputs(again.predict(obs, deterministic=True)[0], actions)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ConfigError, match="net_arch"):
        recurrent_ppo_arguments({"net_arch": [64]}, 64, 4)
    with pytest.raises(ConfigError, match="noptepoch"):
        recurrent_ppo_arguments({"noptepoch": 4}, 64, 4)


@pytest.mark.parametrize("late", [False, True])
def test_sequences_in_one_call_equal_those_step_by_step(late):
    generator = torch.Generator().manual_seed(0)
    lstm = torch.nn.LSTM(4, 5)
    features = torch.randn(3 * 7, 4, generator=generator)
    states = tuple(torch.randn(1, 3, 5, generator=generator) for _ in range(2))
    starts = torch.zeros(3, 7)
    starts[0, 0] = starts[2, 0] = 1
    starts[1, 3] = float(late)
    ours = SequencePolicy._process_sequence(features, states, starts.flatten(), lstm)
    theirs = RecurrentActorCriticPolicy._process_sequence(features, states, starts.flatten(), lstm)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
