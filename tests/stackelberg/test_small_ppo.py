"""Rollouts in NumPy are those of SB3's policy, and the batch of environments is SB3's."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from aprl.errors import RunError
from aprl.stackelberg.envs import FiniteMDPEnv
from aprl.stackelberg.sb3 import isolated_random_state
from aprl.stackelberg.small_ppo import NumpyActorCritic, SerialVecEnv, SmallPPO
from aprl.stackelberg.worlds import make_world


class Drift(gym.Env):
    """A point that is moved by 2 actions out of [-1, 1]; cut off after three steps."""

    observation_space = spaces.Box(-9.0, 9.0, (3,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.ones(3, dtype=np.float32), {}

    def step(self, action):
        assert np.abs(action).max() <= 1
        self.steps += 1
        return np.full(3, self.steps, np.float32), float(action[0]), False, self.steps == 3, {}


def learner(env, **arguments):
    venv = SerialVecEnv([lambda: env])
    values = {"n_steps": 12, "batch_size": 12, "seed": 3, "policy_kwargs": {}, **arguments}
    with isolated_random_state():
        return SmallPPO(venv, **values)


def chain_env():
    return FiniteMDPEnv(make_world("riverswim6"))


@pytest.mark.parametrize("env", [Drift(), chain_env()], ids=["Gaussian", "discrete"])
@pytest.mark.parametrize("kwargs", [{}, {"activation_fn": torch.nn.ReLU, "net_arch": [8]}])
def test_values_and_probabilities_are_those_of_the_policy(env, kwargs):
    ppo = learner(env, policy_kwargs=kwargs)
    network = NumpyActorCritic(ppo.policy)
    rng = np.random.default_rng(0)
    if isinstance(env.observation_space, spaces.Discrete):
        observations = rng.integers(6, size=50)
    else:
        observations = rng.normal(size=(50, 3)).astype(np.float32)
    actions, values, log_probs = network.act(observations, rng)
    with torch.no_grad():
        expected, expected_log_probs, _ = ppo.policy.evaluate_actions(
            torch.as_tensor(observations), torch.as_tensor(actions)
        )
    assert values == pytest.approx(expected.numpy().ravel(), abs=1e-5)
    assert network.values(observations) == pytest.approx(values)
    assert log_probs == pytest.approx(expected_log_probs.numpy(), abs=1e-4)


def test_actions_are_drawn_as_the_policy_says():
    ppo = learner(chain_env())
    with torch.no_grad():
        ppo.policy.action_net.bias[:] = torch.tensor([0.0, 1.5])
    network = NumpyActorCritic(ppo.policy)
    actions, _, _ = network.act(np.full(20_000, 2), np.random.default_rng(0))
    with torch.no_grad():
        wanted = ppo.policy.get_distribution(torch.tensor([2])).distribution.probs[0, 1].item()
    assert actions.mean() == pytest.approx(wanted, abs=0.015)

    gaussian = learner(Drift())
    with torch.no_grad():
        gaussian.policy.log_std[:] = torch.tensor([0.5, -1.0])
    network = NumpyActorCritic(gaussian.policy)
    actions, _, _ = network.act(np.ones((20_000, 3), np.float32), np.random.default_rng(0))
    assert actions.std(axis=0) == pytest.approx(np.exp([0.5, -1.0]), rel=0.03)


def test_rollout_pays_for_what_a_time_limit_cut_off():
    ppo = learner(Drift(), gamma=0.9, gae_lambda=1.0)
    with isolated_random_state():
        ppo.learn(12)
    buffer = ppo.rollout_buffer
    assert buffer.full and ppo.num_timesteps == 12
    assert buffer.episode_starts.ravel().tolist() == [1, 0, 0] * 4
    assert (buffer.observations.reshape(4, 3, 3)[:, :, 0] == [1, 1, 2]).all()

    moves = buffer.actions.reshape(12, 2)[:, 0].clip(-1, 1)
    paid = buffer.rewards.ravel() - moves
    assert np.abs(paid[[0, 1, 3, 4]]).max() < 1e-6  # nothing beside the reward before the limit
    assert np.ptp(paid[2::3]) < 1e-6 and abs(paid[2]) > 1e-6  # gamma V(3, 3, 3), each time


def test_learning_follows_the_seed_and_improves():
    class Bandit(Drift):
        observation_space = spaces.Discrete(2)
        action_space = spaces.Discrete(3)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 1, float(action == 2), True, False, {}

    def trained(seed):
        ppo = learner(Bandit(), seed=seed, n_steps=64, batch_size=64, learning_rate=3e-3)
        with isolated_random_state():
            ppo.learn(2048)
        network = NumpyActorCritic(ppo.policy)
        action, _, log_prob = network.act(np.zeros(1, int), np.random.default_rng(0))
        return action.item(), network.values(np.arange(2)).tolist(), log_prob.item()

    one, same, other = trained(1), trained(1), trained(2)
    assert one == same and one != other
    assert one[0] == 2 and np.exp(one[2]) > 0.9


def test_divergence_is_an_error_of_one_line():
    ppo = learner(Drift(), learning_rate=1e30, n_epochs=5)
    with isolated_random_state(), pytest.raises(RunError, match="PPO diverged after 12 steps"):
        ppo.learn(48)


def test_policies_with_other_parts_use_sb3s_rollout():
    ppo = learner(chain_env(), policy_kwargs={"activation_fn": torch.nn.ELU})
    assert not NumpyActorCritic.can_copy(ppo.policy)
    with isolated_random_state():
        ppo.learn(24)
    assert ppo.num_timesteps == 24


@pytest.mark.parametrize("name", ["simple_mdp_2", "riverswim6", "trap"])
def test_batch_of_environments_is_that_of_sb3(name):
    def batch(kind):
        return kind([partial(FiniteMDPEnv, make_world(name), seed) for seed in (5, 6)])

    mine, theirs = batch(SerialVecEnv), batch(DummyVecEnv)
    assert (mine.reset() == theirs.reset()).all()
    rng = np.random.default_rng(0)
    for _ in range(120):
        actions = rng.integers(2, size=2)
        one, other = mine.step(actions), theirs.step(actions)
        assert all((a == b).all() for a, b in zip(one[:3], other[:3], strict=True))
        for done, info, reference in zip(one[2], one[3], other[3], strict=True):
            assert not done or info == reference
