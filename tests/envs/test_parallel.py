"""The PettingZoo form of the games."""

import ctypes.util
import os

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test, render_test
from pettingzoo.utils import parallel_to_aec

from aprl.envs import ENV_IDS, parallel_env
from aprl.errors import ConfigError

needs_opengl = pytest.mark.skipif(
    not any(map(ctypes.util.find_library, ("EGL", "OSMesa"))), reason="no off-screen OpenGL"
)
SUMO = "multicomp/SumoAnts-v1"


@pytest.mark.parametrize("env_id", [i for i in ENV_IDS if i.startswith("aprl/") or "v1" in i])
def test_pettingzoos_own_tests(env_id):
    parallel_api_test(parallel_env(env_id), num_cycles=60)
    parallel_seed_test(lambda: parallel_env(env_id), num_cycles=10)


@needs_opengl
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pettingzoos_render_test():
    render_test(lambda render_mode: parallel_to_aec(parallel_env(SUMO, render_mode)))


@needs_opengl
def test_pictures_follow_the_game():
    env = parallel_env(SUMO, "rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (480, 640, 3) and first.dtype == np.uint8
    for _ in range(5):
        env.step({a: env.action_space(a).sample() for a in env.agents})
    assert (env.render() != first).any()
    env.reset(seed=0)
    assert np.abs(env.render().astype(int) - first).mean() < 1
    env.close()


def test_an_episode_plays_as_in_the_batch():
    env = parallel_env("multicomp/RunToGoalAnts-v1", max_episode_steps=5)
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first["agent_0"], again["agent_0"])
    for step in range(5):
        actions = {a: np.zeros(8, np.float32) for a in env.agents}
        obs, rewards, terminated, truncated, infos = env.step(actions)
        assert not any(terminated.values())
        assert all(truncated.values()) == (step == 4)
        assert infos["agent_1"]["reward_move"] + infos["agent_1"]["reward_remaining"] == (
            pytest.approx(rewards["agent_1"])
        )
    assert env.agents == []
    assert abs(obs["agent_0"][0] - first["agent_0"][0]) < 1  # the last state, not the next start
    with pytest.raises(ConfigError, match="the game is over"):
        env.step(actions)


def test_bad_input_is_named():
    with pytest.raises(ConfigError, match="unknown env id 'multicomp/Chess-v0'"):
        parallel_env("multicomp/Chess-v0")
    with pytest.raises(ConfigError, match="render_mode must be one of"):
        parallel_env(SUMO, "ascii")
    with pytest.raises(ConfigError, match="has no pictures"):
        parallel_env("aprl/RockPaperScissors-v0", "rgb_array")
    env = parallel_env(SUMO)
    env.reset()
    with pytest.raises(ConfigError, match="no action for agent_1"):
        env.step({"agent_0": np.zeros(8)})
    with pytest.raises(ConfigError, match="needs a render_mode"):
        env.render()


@pytest.mark.skipif(bool(os.environ.get("DISPLAY")), reason="there is a display")
def test_a_window_without_a_display_says_what_to_do():
    env = parallel_env(SUMO, "human")
    env.reset()
    with pytest.raises(Exception, match="no display for a window; use render_mode='rgb_array'"):
        env.render()
