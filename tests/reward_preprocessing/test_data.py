"""Which transitions a reward is preprocessed and judged on."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.reward_preprocessing.configs import RolloutsConfig
from aprl.reward_preprocessing.data import gather_data
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.trajectories import Trajectory, save_trajectories

MAZE = EnvConfig(name="aprl/EmptyMaze4-v0")
CAR = EnvConfig(name="aprl/MountainCar-v0")
RANDOM = [(1.0,)]


def gathered(env_config, seed=0, **rollouts):
    env = env_config.make()
    return gather_data(env, env_config.make, RolloutsConfig(**rollouts), 2, seed)


def numbers(transitions, count=None):
    return transitions.states[:count, 0].tolist()


@pytest.fixture
def saved(tmp_path):
    """Three trajectories of 20 steps in all, whose first coordinate numbers them."""

    def counting(begin, steps):
        states = np.stack([np.arange(begin, begin + steps + 1), np.zeros(steps + 1)], axis=1)
        return Trajectory(states, np.zeros(steps, int), np.zeros(steps), True)

    trajectories = [counting(0, 6), counting(6, 4), counting(10, 10)]
    return str(save_trajectories(tmp_path / "saved.npz", trajectories))


def test_all_of_a_finite_environment():
    data = gathered(MAZE)
    assert len(data.train) == 16 * 5 and data.test is None and data.mdp is not None


def test_rollouts_of_train_and_test_differ_and_repeat():
    data, again, other = (
        gathered(CAR, seed, rollouts=RANDOM, steps=300, test_steps=200) for seed in (3, 3, 4)
    )
    assert (len(data.train), len(data.test), data.mdp) == (300, 200, None)
    assert not np.isin(data.test.states, data.train.states).all()
    np.testing.assert_array_equal(data.train.states, again.train.states)
    np.testing.assert_array_equal(data.test.states, again.test.states)
    assert not np.array_equal(data.train.states, other.train.states)


def test_saved_trajectories_are_not_tested_on_what_they_train(saved):
    sources = [{"rollout_path": saved, "weight": 3}, {"random_prob": 1.0}]
    data = gathered(CAR, rollouts=sources[:1], steps=8, test_steps=7)
    assert numbers(data.train) == list(range(8)) and numbers(data.test) == list(range(8, 15))
    mixed = gathered(CAR, rollouts=sources, steps=8, test_steps=4)
    assert numbers(mixed.train, 6) == list(range(6)) and numbers(mixed.test, 3) == [6, 7, 8]


def test_all_of_a_saved_file(saved):
    data = gathered(CAR, rollouts=[{"rollout_path": saved}])
    assert numbers(data.train) == list(range(20)) and data.test is None


def test_data_that_cannot_be(saved, tmp_path):
    of_file = [{"rollout_path": saved, "name": "file"}]
    with pytest.raises(ConfigError, match="no rollouts"):
        gathered(CAR)
    with pytest.raises(ConfigError, match=r"needs rollouts\.steps"):
        gathered(CAR, rollouts=of_file, test_steps=3)
    with pytest.raises(TrajectoryError, match="without the first 15 steps, holds 5 steps, 6 were"):
        gathered(CAR, rollouts=of_file, steps=15, test_steps=6)
    with pytest.raises(ConfigError, match="another environment: their states have shape"):
        gathered(MAZE, rollouts=of_file, steps=5)
    far = Trajectory(np.array([0, 16]), np.array([0]), np.array([0.0]), True)
    path = str(save_trajectories(tmp_path / "far.npz", [far]))
    with pytest.raises(ConfigError, match="visit state 16, the environment has 16 states"):
        gathered(MAZE, rollouts=[{"rollout_path": path}])
