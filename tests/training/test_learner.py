"""From a saved policy to a learner and back, and what a lean rollout stores."""

import numpy as np
import pytest
import torch
from stable_baselines3.common import vec_env
from stable_baselines3.common.callbacks import BaseCallback

from aprl.envs import make_vec
from aprl.policies import ActorCriticMlp, MlpPolicy, ZeroPolicy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.normalize import VecNormalize

ARGUMENTS = ppo_arguments({"nminibatches": 1}, batch_size=32, num_env=4)


def line_env(limit=5):
    """A continuous game with one learner: crowded line with two agents, the other one idle."""
    game = make_vec("aprl/CrowdedLine-v0", 4, num_agents=2, max_episode_steps=limit)
    idle = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    return FlattenSingletonVecEnv(CurryVecEnv(game, idle, 1), 0)


def rps_env():
    game = make_vec("aprl/RockPaperScissors-v0", 4)
    idle = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    return FlattenSingletonVecEnv(CurryVecEnv(game, idle, 1), 0)


@pytest.mark.parametrize("make_env", [line_env, rps_env])
def test_loaded_policy_survives_becoming_a_learner(make_env):
    env = make_env()
    discrete = make_env is rps_env
    network = ActorCriticMlp(
        3 if discrete else 2,
        3 if discrete else 1,
        policy_layers=[8],
        value_layers=[4, 4],
        discrete=discrete,
        clip=0.7,
    )
    network.obs_mean.fill_(0.1)
    network.obs_std.fill_(0.5)
    start = MlpPolicy(network, env.observation_space, env.action_space)
    learner = make_ppo(env, ARGUMENTS, 0.0, seed=0, start=start)
    back = policy_of(learner, None)
    obs = np.stack([env.observation_space.sample() for _ in range(50)])
    np.testing.assert_array_equal(back.mean(obs), start.mean(obs))
    np.testing.assert_array_equal(back.value(obs), start.value(obs))
    assert back.architecture() == start.architecture()
    # SB3's own view of the learner agrees as well.
    own, _ = learner.predict(obs, deterministic=True)
    expected, _ = start.predict(obs, deterministic=True)
    np.testing.assert_allclose(own, expected, atol=1e-6)


def test_running_normaliser_goes_into_the_saved_policy():
    env = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_ppo(env, ARGUMENTS, 3e-4, seed=0)
    learner.learn(64)
    raw = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    policy = policy_of(learner, env)
    with torch.no_grad():
        value, mean = learner._values_and_mean(torch.from_numpy(env.normalize_obs(raw)))
    np.testing.assert_allclose(policy.mean(raw), mean.numpy(), atol=1e-5)
    scale = np.sqrt(env.ret_rms.var + env.epsilon)
    np.testing.assert_allclose(policy.value(raw), value.numpy() * scale, rtol=1e-4, atol=1e-5)


def test_same_statistics_and_outputs_as_sb3s_normaliser():
    ours = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    theirs = vec_env.VecNormalize(line_env(), gamma=0.9)
    np.testing.assert_allclose(ours.reset(), theirs.reset(), atol=1e-5)
    rng = np.random.default_rng(0)
    for _ in range(12):
        actions = rng.uniform(-1, 1, (4, 1)).astype(np.float32)
        mine, expected = ours.step(actions), theirs.step(actions)
        for a, b in zip(mine[:3], expected[:3], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        for a, b in zip(mine[3], expected[3], strict=True):
            if a:
                np.testing.assert_allclose(
                    a["terminal_observation"], b["terminal_observation"], atol=1e-4
                )
    np.testing.assert_allclose(ours.obs_rms.var, theirs.obs_rms.var, rtol=1e-5)
    again = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    again.load_state_dict(ours.state_dict())
    probe = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
    np.testing.assert_array_equal(again.normalize_obs(probe), ours.normalize_obs(probe))


class Recorder(BaseCallback):
    """Keeps raw rewards and infos of each step; may stop the rollout."""

    def __init__(self, stop_after=None):
        super().__init__()
        self.rewards, self.infos, self.threads, self.stop_after = [], [], [], stop_after

    def _on_step(self):
        self.rewards.append(self.locals["rewards"].copy())
        self.infos.append(self.locals["infos"])
        self.threads.append(torch.get_num_threads())
        return self.stop_after is None or len(self.rewards) < self.stop_after


def test_lean_rollout_stores_what_sb3_would():
    learner = make_ppo(line_env(limit=5), ARGUMENTS, 0.0, seed=0)
    recorder = Recorder()
    before = torch.get_num_threads()
    learner.learn(32, callback=recorder)
    assert torch.get_num_threads() == before and set(recorder.threads) == {1}
    buffer = learner.rollout_buffer  # flattened by the update: (environment, step)
    obs = torch.from_numpy(buffer.observations)
    with torch.no_grad():
        values, log_prob, _ = learner.policy.evaluate_actions(obs, torch.from_numpy(buffer.actions))
    np.testing.assert_allclose(buffer.values.ravel(), values.numpy().ravel(), atol=1e-5)
    np.testing.assert_allclose(buffer.log_probs.ravel(), log_prob.numpy(), atol=1e-5)


def test_truncated_episodes_are_bootstrapped_from_their_last_observation():
    learner = make_ppo(line_env(limit=5), ARGUMENTS, 0.0, seed=0)
    recorder = Recorder()
    learner.learn(32, callback=recorder)
    rewards = learner.rollout_buffer.rewards
    for step, (raw, infos) in enumerate(zip(recorder.rewards, recorder.infos, strict=True)):
        for env, info in enumerate(infos):
            expected = raw[env]
            if info:
                last = torch.from_numpy(info["terminal_observation"][None])
                with torch.no_grad():
                    expected = expected + learner.gamma * learner.policy.predict_values(last).item()
            assert rewards[step, env] == pytest.approx(expected, abs=1e-5)
    assert any(info for infos in recorder.infos for info in infos)


def test_a_callback_stops_the_rollout():
    learner = make_ppo(line_env(), ARGUMENTS, 0.0, seed=0)
    learner.learn(320, callback=Recorder(stop_after=3))
    assert learner.num_timesteps == 3 * 4
