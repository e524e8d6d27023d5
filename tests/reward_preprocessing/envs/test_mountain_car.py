"""The mountain car: episodes of one length, and shaping by the state before the step."""

import gymnasium
import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.reward_preprocessing.envs.mountain_car import (
    SHAPINGS,
    MountainCarEnv,
    mountain_car_reward_net,
    shaping_potential,
)


def drive_to_the_top(env, steps=200):
    """Push in the direction of motion: reaches the top in about 120 steps."""
    state, _ = env.reset(seed=0)
    rows = []
    for _ in range(steps):
        action = 2 if state[1] >= 0 else 0
        after, reward, terminated, truncated, _ = env.step(action)
        rows.append((state, action, after, reward, terminated))
        state = after
    assert truncated
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("shaping", SHAPINGS)
def test_rewards_are_shaped_by_the_states_before_and_after(shaping):
    """D3: the environment pays what the net says, gamma phi(s') - phi(s) included."""
    env = gymnasium.make("aprl/MountainCar-v0", shaping=shaping)
    states, actions, after, rewards, terminated = drive_to_the_top(env)
    potential = shaping_potential(shaping)
    phi, phi_after = (0, 0) if potential is None else (potential.of(states), potential.of(after))
    base = np.where(states[:, 0] >= 0.5, 0.0, -1.0)
    np.testing.assert_allclose(rewards, base + 0.99 * phi_after - phi, atol=1e-9)
    net = mountain_car_reward_net(shaping)
    np.testing.assert_allclose(net.predict(states, actions, after, terminated), rewards, atol=1e-9)
    assert not terminated.any()


def test_the_car_stays_at_the_top():
    states, _, after, rewards, _ = drive_to_the_top(gymnasium.make("aprl/MountainCar-v0"))
    arrived = int(np.argmax(after[:, 0] >= 0.5))
    assert 50 < arrived < 199 and (rewards[: arrived + 1] == -1).all()
    assert (rewards[arrived + 1 :] == 0).all()
    assert (after[arrived:] == after[arrived]).all() and (
        states[arrived + 1 :] == after[arrived]
    ).all()


def test_a_new_episode_begins_below():
    env = MountainCarEnv()
    env.reset(seed=0)
    env._arrived = True
    state, _ = env.reset()
    assert state[0] < 0
    after, *_ = env.step(2)
    assert after[0] != state[0]


def test_potentials():
    states = np.array([[0.3, 0.02], [-1.0, -0.05]])
    np.testing.assert_allclose(shaping_potential("dense").of(states), [30, -100])
    np.testing.assert_allclose(shaping_potential("antidense").of(states), [-30, 100])
    waves = shaping_potential("random").of(np.random.default_rng(0).uniform(-1, 1, (500, 2)))
    assert np.abs(waves).max() <= 100 and waves.std() > 1
    with pytest.raises(ConfigError, match="'dense'"):
        shaping_potential("dens")
