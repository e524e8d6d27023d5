"""Gymnasium's MuJoCo environments as games of one player."""

import gymnasium
import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.envs.single_agent import SINGLE_AGENT_IDS
from aprl.errors import AprlError, ConfigError


def actions(venv, rng):
    space = venv.action_spaces[0]
    return [rng.uniform(space.low, space.high, (venv.num_envs, *space.shape)).astype(np.float32)]


def test_steps_are_those_of_the_environment():
    venv = make_vec("Hopper-v5", 3, seed=1)
    seed = int(np.random.SeedSequence(1).spawn(3)[2].generate_state(1)[0])
    alone = gymnasium.make("Hopper-v5")
    rng = np.random.default_rng(0)
    [obs] = venv.reset()
    expected, _ = alone.reset(seed=seed)
    np.testing.assert_allclose(obs[2], expected, rtol=1e-6)
    ended = 0
    for _ in range(200):
        chosen = actions(venv, rng)
        [obs], rewards, dones, infos = venv.step(chosen)
        expected, reward, terminated, truncated, _ = alone.step(chosen[0][2])
        assert rewards[0, 2] == reward and dones[2] == (terminated or truncated)
        np.testing.assert_array_equal(venv.terms(0)["reward_env"], rewards[0])
        if dones[2]:
            ended += 1
            last = infos[2]["terminal_observation"][0]
            np.testing.assert_allclose(last, expected, rtol=1e-6)
            assert infos[2]["TimeLimit.truncated"] is False
            expected, _ = alone.reset()
        np.testing.assert_allclose(obs[2], expected, rtol=1e-6)
    assert ended > 2


@pytest.mark.parametrize("env_id", SINGLE_AGENT_IDS)
def test_a_restored_game_goes_on_exactly(env_id):
    venv, other = make_vec(env_id, 2, seed=3), make_vec(env_id, 2, seed=9)
    rng = np.random.default_rng(0)
    venv.reset()
    for _ in range(30):
        venv.step(actions(venv, rng))
    other.load_state_dict(venv.state_dict())
    for _ in range(120):
        chosen = actions(venv, rng)
        ours, theirs = venv.step(chosen), other.step(chosen)
        np.testing.assert_array_equal(ours[0][0], theirs[0][0])
        np.testing.assert_array_equal(ours[1], theirs[1])
        np.testing.assert_array_equal(ours[2], theirs[2])


def test_time_limits_are_truncations():
    venv = make_vec("HalfCheetah-v5", 1, max_episode_steps=5)
    venv.reset()
    rng = np.random.default_rng(0)
    for step in range(1, 11):
        _, _, dones, infos = venv.step(actions(venv, rng))
        assert dones[0] == (step % 5 == 0)
        if dones[0]:
            assert infos[0]["TimeLimit.truncated"] is True
            assert infos[0]["episode"]["l"] == 5


def test_misuse_is_named():
    venv = make_vec("Swimmer-v5", 1)
    with pytest.raises(AprlError, match="reset"):
        venv.step([np.zeros((1, 2), np.float32)])
    with pytest.raises(ConfigError, match="agent_idx"):
        venv.terms(1)
    with pytest.raises(ConfigError, match="num_envs"):
        make_vec("Swimmer-v5", 0)
