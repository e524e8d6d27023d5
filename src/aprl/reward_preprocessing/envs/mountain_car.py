"""Mountain car with episodes of one length, and rewards that shaping can disguise."""

from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv as GymnasiumMountainCar

from aprl.errors import unknown_name
from aprl.rewards import MountainCarRewardNet, RewardNet, ShapedRewardNet
from aprl.rewards.potentials import LinearPotential, Potential, SinusoidPotential

SHAPINGS = ("unshaped", "dense", "antidense", "random")
GAMMA = 0.99


def shaping_potential(shaping: str) -> Potential | None:
    """The potential of a named shaping: plus or minus 100 times the position, or random waves.

    Raises:
        ConfigError: unknown name.
    """
    if shaping not in SHAPINGS:
        raise unknown_name("shaping", shaping, SHAPINGS)
    if shaping == "unshaped":
        return None
    if shaping == "random":
        rng = np.random.default_rng(0)
        a, b = rng.uniform(-2, 0, 2)
        c, d = rng.uniform(-np.pi, np.pi, 2)
        return SinusoidPotential(100.0, np.array([a, b, c, d]))
    return LinearPotential.with_slopes(np.array([100.0 if shaping == "dense" else -100.0, 0.0]))


class MountainCarEnv(gymnasium.Wrapper):
    """Gymnasium's mountain car that stays at the top, once there, until the time limit.

    The reward is -1 until the car is at the top and 0 from then on, plus
    gamma * phi(s') - phi(s), s being the state before the step. Actions at the top have no effect.

    Args:
        shaping: name of phi; see `shaping_potential`.
        gamma: discount of the shaping.
    """

    def __init__(
        self,
        shaping: Literal["unshaped", "dense", "antidense", "random"] = "unshaped",
        gamma: float = GAMMA,
    ) -> None:
        super().__init__(GymnasiumMountainCar())
        self._net = mountain_car_reward_net(shaping, gamma)
        self._state = np.zeros(2, np.float32)
        self._arrived = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; see `gymnasium.Env.reset`."""
        self._state, info = self.env.reset(seed=seed, options=options)
        self._arrived = False
        return self._state, info

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move; see `gymnasium.Env.step`. Nothing terminates."""
        before = self._state
        if not self._arrived:
            self._state, _, self._arrived, _, _ = self.env.step(action)
        reward = self._net.predict(
            before[None], np.array([action]), self._state[None], np.zeros(1, bool)
        )
        return self._state, float(reward[0]), False, False, {}


def mountain_car_reward_net(shaping: str = "unshaped", gamma: float = GAMMA) -> RewardNet:
    """The true reward as a net.

    Raises:
        ConfigError: unknown shaping.
    """
    with torch.no_grad():
        env = GymnasiumMountainCar()
        base = MountainCarRewardNet(env.observation_space, env.action_space)
        potential = shaping_potential(shaping)
        return base if potential is None else ShapedRewardNet(base, potential, gamma)
