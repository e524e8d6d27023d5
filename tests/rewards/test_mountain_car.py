import numpy as np
from gymnasium import spaces

from aprl.rewards import MountainCarRewardNet


def test_mountain_car():
    net = MountainCarRewardNet(spaces.Box(-np.inf, np.inf, (2,)), spaces.Discrete(3))
    states = np.array([[0.49, 0], [0.5, 0], [0.6, 0]], np.float32)
    rewards = net.predict(states, np.zeros(3, int), states, np.zeros(3, bool))
    assert rewards.tolist() == [-1, 0, 0]
