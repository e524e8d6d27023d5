import warnings

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor

from aprl.errors import ConfigError
from aprl.imitation.environments import GymVecEnv
from aprl.training.checkpoints import load_state, save_state


def play(venv, steps, seed=0):
    """Everything that a fixed sequence of random actions brings about."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        if isinstance(venv.action_space, spaces.Discrete):
            actions = rng.integers(0, venv.action_space.n, venv.num_envs)
        else:
            low, high = venv.action_space.low, venv.action_space.high
            actions = rng.uniform(low, high, (venv.num_envs, *low.shape)).astype(np.float32)
        obs, rewards, dones, infos = venv.step(actions)
        ends = [info.get("episode") for info in infos]
        seen.append((obs.tolist(), rewards.tolist(), dones.tolist(), ends))
    return seen


def test_terminated_and_truncated_are_kept_apart():
    venv = GymVecEnv("CartPole-v1", 1)
    venv.reset()
    step, dones = 0, np.array([False])
    while not dones[0]:
        obs, _, dones, infos = venv.step(np.array([1]))
        step += 1
    info = infos[0]
    assert info["TimeLimit.truncated"] is False
    assert info["episode"] == {"r": float(step), "l": step}
    assert abs(info["terminal_observation"][2]) > 0.2  # the pole fell
    assert abs(obs[0, 2]) < 0.1  # and stands again


def test_fixed_horizon_ignores_terminations():
    venv = GymVecEnv("CartPole-v1", 2, horizon=30)
    venv.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(1, 91):
            _, rewards, dones, infos = venv.step(np.array([1, 1]))
            assert dones.all() == (step % 30 == 0)
    assert infos[0]["TimeLimit.truncated"] is True and infos[0]["episode"]["l"] == 30
    assert infos[0]["episode"]["r"] < 15  # nothing is earned after the fall
    assert rewards.tolist() == [0.0, 0.0]


def test_time_limit_of_the_id():
    venv = GymVecEnv("Pendulum-v1", 1)
    venv.reset()
    for _ in range(200):
        _, _, dones, infos = venv.step(np.zeros((1, 1), np.float32))
    assert dones[0] and infos[0]["TimeLimit.truncated"] and infos[0]["episode"]["l"] == 200


def test_draws_depend_on_seed_and_place_only():
    first = GymVecEnv("CartPole-v1", 2, seed=3).reset()
    np.testing.assert_array_equal(first, GymVecEnv("CartPole-v1", 5, seed=3).reset()[:2])
    assert (first != GymVecEnv("CartPole-v1", 2, seed=4).reset()).any()
    assert (first[0] != first[1]).any() and first.dtype == np.float32


@pytest.mark.parametrize("env_name", ["CartPole-v1", "Pendulum-v1", "Swimmer-v5", "Hopper-v5"])
def test_restored_state_continues_exactly(tmp_path, env_name):
    if env_name in ("Swimmer-v5", "Hopper-v5"):
        pytest.importorskip("imageio")
    venv = GymVecEnv(env_name, 2, horizon=15)
    venv.reset()
    play(venv, 20)
    save_state(tmp_path / "state", venv.state_dict())
    ahead = play(venv, 40, seed=1)
    other = GymVecEnv(env_name, 2, seed=9, horizon=15)
    other.reset()
    play(other, 3)
    other.load_state_dict(load_state(tmp_path / "state"))
    assert play(other, 40, seed=1) == ahead
    with pytest.raises(ConfigError, match="saved with 2 environments, not 3"):
        GymVecEnv(env_name, 3).load_state_dict(venv.state_dict())


def test_what_cannot_be_made():
    with pytest.raises(ConfigError, match="CartPole-v1"):
        GymVecEnv("CartPol-v1", 1)
    with pytest.raises(ConfigError, match="Blackjack-v1 has the space"):
        GymVecEnv("Blackjack-v1", 1)
    with pytest.raises(ConfigError, match=r"cannot make CartPole-v1.*colour"):
        GymVecEnv("CartPole-v1", 1, colour="red")
    with pytest.raises(ConfigError, match="horizon must be at least 1, got 0"):
        GymVecEnv("CartPole-v1", 1, horizon=0)


def test_attributes_of_the_copies():
    venv = GymVecEnv("CartPole-v1", 2)
    venv.set_attr("gravity", 5.0, [1])
    assert venv.get_attr("gravity") == [9.8, 5.0]
    venv.reset()
    assert len(venv.env_method("reset", indices=[0])) == 1
    assert venv.env_is_wrapped(Monitor) == [True, True]
    venv.close()
