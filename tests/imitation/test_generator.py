import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.vec_env import VecNormalize

from aprl.errors import ConfigError
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.generator import (
    RelabellingReplayBuffer,
    TransitionRecorder,
    find_recorder,
    log_prob_of,
    relabel_replay,
)
from tests.imitation.helpers import ppo, sac


def test_recorded_is_what_was_played():
    venv = TransitionRecorder(GymVecEnv("CartPole-v1", 2, seed=1, horizon=None))
    obs = [venv.reset()]
    dones, infos = [], []
    for _ in range(40):
        new_obs, rewards, done, info = venv.step(np.array([1, 0]))
        assert (rewards == 0).all() and rewards.dtype == np.float32
        obs.append(new_obs)
        dones.append(done)
        infos.append(info)
    assert venv.steps == 80
    ends = int(np.sum(dones))
    lengths = venv.episode_lengths
    assert ends == len(lengths) > 2
    assert lengths == [i["episode"]["l"] for step in infos for i in step if i]
    rows = venv.take()
    assert len(rows) == 80 and venv.steps == 0 and venv.episode_lengths == []
    np.testing.assert_array_equal(rows.obs, np.concatenate(obs[:-1]))
    np.testing.assert_array_equal(rows.actions, [1, 0] * 40)
    np.testing.assert_array_equal(rows.terminated, np.concatenate(dones))
    assert not rows.truncated.any()
    for row in np.flatnonzero(~rows.terminated)[:-2]:
        np.testing.assert_array_equal(rows.next_obs[row], rows.obs[row + 2])
    for row in np.flatnonzero(rows.terminated):
        terminal = infos[row // 2][row % 2]["terminal_observation"]
        np.testing.assert_array_equal(rows.next_obs[row], terminal)


def test_time_limits_are_not_terminations():
    venv = TransitionRecorder(GymVecEnv("CartPole-v1", 1, horizon=3))
    venv.reset()
    for _ in range(6):
        venv.step(np.array([0]))
    rows = venv.take()
    assert not rows.terminated.any()
    assert np.flatnonzero(rows.truncated).tolist() == [2, 5]


def test_log_prob_is_the_policys():
    generator = ppo("Pendulum-v1")
    obs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    actions = np.linspace(-2, 2, 5, dtype=np.float32)[:, None]
    with torch.no_grad():
        mean = generator.policy.get_distribution(torch.from_numpy(obs)).distribution.mean
    expected = torch.distributions.Normal(mean, 1.0).log_prob(torch.from_numpy(actions)).sum(1)
    np.testing.assert_allclose(
        log_prob_of(generator)(obs, actions).detach(), expected, rtol=1e-5, atol=1e-6
    )


def test_log_prob_sees_what_the_policy_sees():
    venv = VecNormalize(TransitionRecorder(GymVecEnv("CartPole-v1", 2)), norm_reward=False)
    generator = PPO("MlpPolicy", venv, n_steps=8, batch_size=8, device="cpu")
    generator.learn(64)
    obs = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    actions = np.array([0, 1, 0, 1, 0])
    with torch.no_grad():
        _, expected, _ = generator.policy.evaluate_actions(
            torch.from_numpy(venv.normalize_obs(obs)).float(), torch.from_numpy(actions)
        )
        np.testing.assert_allclose(log_prob_of(generator)(obs, actions), expected, rtol=1e-6)


def test_log_prob_of_sac_integrates_to_one():
    generator = sac()
    grid = np.linspace(-1, 1, 4001)[1:-1]
    actions = (2 * grid[:, None]).astype(np.float32)  # Pendulum's torque is within 2
    obs = np.repeat(np.array([[0.3, 0.4, 1.0]], np.float32), len(grid), axis=0)
    with torch.no_grad():
        density = log_prob_of(generator)(obs, actions).exp().numpy()
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=0.02)


def test_replayed_rewards_are_the_present_ones():
    generator = sac()
    rate = 1.0

    def learned_reward(rows):
        return (rate * (100 * rows.actions[:, 0] + rows.obs[:, 0])).astype(np.float32)

    relabel_replay(generator, learned_reward)
    generator.learn(60)
    buffer = generator.replay_buffer
    assert isinstance(buffer, RelabellingReplayBuffer) and not buffer.rewards.any()
    for rate in (1.0, -3.0):
        samples = buffer.sample(16)
        expected = rate * (100 * 2 * samples.actions[:, 0] + samples.observations[:, 0])
        torch.testing.assert_close(samples.rewards[:, 0], expected, rtol=1e-4, atol=1e-3)
    with pytest.raises(ConfigError, match="holds rewards already"):
        relabel_replay(generator, learned_reward)


def test_replayed_ends_are_terminations_only():
    generator = DQN(
        "MlpPolicy", TransitionRecorder(GymVecEnv("CartPole-v1", 1)), learning_starts=10**6
    )
    seen = []
    relabel_replay(generator, lambda rows: seen.append(rows) or np.zeros(len(rows), np.float32))
    generator.learn(200)
    buffer = generator.replay_buffer
    buffer.timeouts[:100] = buffer.dones[:100]
    buffer._get_samples(np.arange(200))
    (rows,) = seen
    np.testing.assert_array_equal(rows.terminated[:100], np.zeros(100))
    np.testing.assert_array_equal(rows.terminated[100:], buffer.dones[100:200, 0])
    assert rows.terminated.any() and set(rows.actions) == {0, 1}


def test_generators_that_do_not_fit():
    bare = GymVecEnv("CartPole-v1", 1)
    with pytest.raises(ConfigError, match=r"TransitionRecorder\(venv\), which was not found"):
        find_recorder(PPO("MlpPolicy", bare, device="cpu"))
    inside = TransitionRecorder(VecNormalize(bare))
    with pytest.raises(ConfigError, match="not inside it"):
        find_recorder(PPO("MlpPolicy", inside, device="cpu"))
    pendulum = TransitionRecorder(GymVecEnv("Pendulum-v1", 1))
    with pytest.raises(ConfigError, match="raw observations"):
        find_recorder(SAC("MlpPolicy", VecNormalize(pendulum), device="cpu"))
    recorder = TransitionRecorder(bare)
    assert find_recorder(A2C("MlpPolicy", VecNormalize(recorder), device="cpu")) is recorder
    with pytest.raises(ConfigError, match="DQN has none"):
        log_prob_of(DQN("MlpPolicy", recorder))
    with pytest.raises(ConfigError, match="Recurrent"):
        log_prob_of(RecurrentPPO("MlpLstmPolicy", recorder, device="cpu"))
