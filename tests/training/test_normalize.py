"""The lean normaliser against SB3's own, on one stream."""

import numpy as np
import pytest
from stable_baselines3.common import vec_env

from aprl.envs import make_vec
from aprl.policies import ZeroPolicy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.normalize import VecNormalize
from tests.training.fakes import CountingPolicy, ScriptedGame

SCALE, OFFSET = np.array([3.0, 0.02]), np.array([-5.0, 1.0])


class NoisyGame(ScriptedGame):
    """Random observations of two scales, now and then far out; random rewards."""

    def __init__(self, lengths=(2, 3, 7, 100)):
        super().__init__(lengths)
        self.rng = np.random.default_rng(0)

    def _observations(self):
        draws = self.rng.standard_normal((2, self.num_envs, 2))
        draws[self.rng.random(draws.shape) < 0.02] *= 40  # beyond the clip
        return tuple((OFFSET + SCALE * draws).astype(np.float32))

    def step(self, actions):
        obs, _, dones, infos = super().step(actions)
        rewards = self.rng.normal(0.5, 2.0, (2, self.num_envs))
        rewards[:, 0] += 30 * (self.rng.random() < 0.03)
        return obs, rewards, dones, infos

    def state_dict(self):
        return {"rng": self.rng.bit_generator.state, **super().state_dict()}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.rng.bit_generator.state = state["rng"]


def noisy_env():
    return FlattenSingletonVecEnv(CurryVecEnv(NoisyGame(), CountingPolicy(), 1), 0)


def step(venv):
    return venv.step(np.zeros((4, 2), np.float32))


def assert_steps_equal(ours, theirs):
    """Observations, rewards, dones and last observations; ours in float32."""
    obs, rewards, dones, infos = ours
    assert obs.dtype == rewards.dtype == np.float32
    np.testing.assert_allclose(obs, theirs[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(rewards, theirs[1], rtol=1e-6)
    np.testing.assert_array_equal(dones, theirs[2])
    for env in np.flatnonzero(dones):
        ends = [info[env]["terminal_observation"] for info in (infos, theirs[3])]
        assert ends[0].dtype == np.float32 and ends[0].shape == (2,)
        np.testing.assert_allclose(*ends, rtol=1e-4, atol=1e-4)


def assert_moments_equal(ours, theirs):
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.var, theirs.var, rtol=1e-5)
    assert ours.count == theirs.count


@pytest.mark.parametrize(
    ("norm_obs", "norm_reward", "gamma"),
    [(True, True, 0.9), (True, False, 0.99), (False, True, 0.5), (False, False, 0.9)],
)
def test_same_statistics_and_outputs_as_sb3s_normaliser(norm_obs, norm_reward, gamma):
    ours = VecNormalize(noisy_env(), norm_obs, norm_reward, gamma)
    theirs = vec_env.VecNormalize(
        noisy_env(), norm_obs=norm_obs, norm_reward=norm_reward, gamma=gamma
    )
    np.testing.assert_allclose(ours.reset(), theirs.reset(), rtol=1e-4, atol=1e-4)
    clipped = 0
    for i in range(120):
        if i == 60:
            np.testing.assert_allclose(ours.reset(), theirs.reset(), rtol=1e-4, atol=1e-4)
        mine, expected = step(ours), step(theirs)
        assert_steps_equal(mine, expected)
        np.testing.assert_array_equal(ours.get_original_obs(), theirs.get_original_obs())
        np.testing.assert_array_equal(ours.get_original_reward(), theirs.get_original_reward())
        clipped += (np.abs(mine[0]) == 10).sum()
    assert (clipped > 0) == norm_obs
    assert_moments_equal(ours.ret_rms, theirs.ret_rms)
    np.testing.assert_allclose(ours.returns, theirs.returns)
    if norm_obs:
        assert_moments_equal(ours.obs_rms, theirs.obs_rms)
        deviation = np.sqrt(theirs.obs_rms.var + theirs.epsilon)
        np.testing.assert_allclose(ours.observation_std(), deviation, rtol=1e-5)


def test_what_comes_out_is_standardised():
    venv = VecNormalize(noisy_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    venv.reset()
    obs = np.concatenate([step(venv)[0] for _ in range(400)])[800:]
    np.testing.assert_allclose(obs.mean(axis=0), 0, atol=0.15)
    np.testing.assert_allclose(obs.std(axis=0), 1, atol=0.3)


def test_statistics_stay_when_not_training():
    venv = VecNormalize(noisy_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    venv.reset()
    for _ in range(5):
        step(venv)
    venv.training = False
    before = venv.state_dict()
    venv.reset()
    raw_reward_std = np.sqrt(before["reward"]["var"] + venv.epsilon)
    for _ in range(3):
        obs, rewards, _, _ = step(venv)
        np.testing.assert_array_equal(obs, venv.normalize_obs(venv.get_original_obs()))
        np.testing.assert_allclose(
            rewards, np.clip(venv.get_original_reward() / raw_reward_std, -10, 10), rtol=1e-6
        )
    np.testing.assert_equal(venv.state_dict()["obs"], before["obs"])
    np.testing.assert_equal(venv.state_dict()["reward"], before["reward"])


def test_normalising_does_not_touch_the_observations_given():
    venv = VecNormalize(noisy_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    venv.reset()
    raw = np.full((3, 2), 7, np.float32)
    single = venv.normalize_obs(raw[0])
    np.testing.assert_array_equal(venv.normalize_obs(raw), [single] * 3)
    np.testing.assert_array_equal(raw, np.full((3, 2), 7))
    assert single.max() == 10  # 300 standard deviations above the second mean, clipped


def test_discrete_observations_are_left_alone():
    game = make_vec("aprl/RockPaperScissors-v0", 3, max_episode_steps=2)
    space = game.observation_spaces[0]
    flat = FlattenSingletonVecEnv(CurryVecEnv(game, ZeroPolicy(space, space), 0), 1)
    venv = VecNormalize(flat, norm_obs=True, norm_reward=True, gamma=0.9)
    assert not venv.norm_obs and venv.observation_space == space
    obs = venv.reset()
    assert obs.dtype == np.int64
    for _ in range(2):
        obs, rewards, _, infos = venv.step(np.array([0, 1, 2]))
        assert obs.dtype == np.int64
        np.testing.assert_array_equal(obs, [0, 0, 0])
    assert [info["terminal_observation"] for info in infos] == [0, 0, 0]
    raw = np.array([0, 1, -1])  # against rock
    scale = np.sqrt(venv.ret_rms.var + venv.epsilon)
    np.testing.assert_allclose(rewards, raw / scale, rtol=1e-6)
    assert "obs" not in venv.state_dict()
    venv.load_state_dict(venv.state_dict())


@pytest.mark.parametrize("norm_obs", [True, False])
def test_state_continues_exactly(norm_obs):
    venv = VecNormalize(noisy_env(), norm_obs, norm_reward=True, gamma=0.9)
    venv.reset()
    for _ in range(7):
        step(venv)
    saved, game = venv.state_dict(), venv.venv.game.state_dict()
    assert saved["returns"].any()
    expected = [step(venv) for _ in range(8)]
    for _ in range(2):  # the state that was loaded is not used up by going on
        again = VecNormalize(noisy_env(), norm_obs, norm_reward=True, gamma=0.9)
        again.reset()
        again.venv.game.load_state_dict(game)
        again.load_state_dict(saved)
        for theirs in expected:
            ours = step(again)
            for a, b in zip(ours[:3], theirs[:3], strict=True):
                np.testing.assert_array_equal(a, b)
    np.testing.assert_equal(again.state_dict(), venv.state_dict())


def test_loaded_returns_are_the_normalisers_own():
    venv = VecNormalize(noisy_env(), norm_obs=True, norm_reward=True, gamma=0.9)
    venv.reset()
    step(venv)
    saved = venv.state_dict()
    before = saved["returns"].copy()
    venv.load_state_dict(saved)
    venv.training = False  # then returns are only ever cleared, in place
    for _ in range(3):
        step(venv)
    np.testing.assert_array_equal(saved["returns"], before)


def test_a_component_that_never_changes_is_finite():
    flat = FlattenSingletonVecEnv(CurryVecEnv(ScriptedGame([9] * 3), CountingPolicy(), 1), 0)
    venv = VecNormalize(flat, norm_obs=True, norm_reward=True, gamma=0.9)
    venv.obs_rms.mean[:], venv.obs_rms.var[:], venv.obs_rms.count = 2.0, 0.0, 10
    np.testing.assert_allclose(venv.observation_std(), 1e-4)  # root of epsilon
    raw = np.array([[2, 2.0005]], np.float32)
    np.testing.assert_allclose(venv.normalize_obs(raw), [[0, 5]], rtol=1e-2)
