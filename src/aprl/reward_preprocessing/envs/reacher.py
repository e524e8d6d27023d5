"""Reacher that is paid only for touching the target."""

from typing import Any

import gymnasium
import numpy as np

TOUCHING = 0.05  # m, between fingertip and target


class SparseReacherEnv(gymnasium.Wrapper):
    """Gymnasium's reacher, paid 1 while the fingertip is within 5 cm of the target, else 0."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("Reacher-v5").unwrapped)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move; see `gymnasium.Env.step`. The observation ends in fingertip minus target, in m."""
        obs, _, terminated, truncated, info = self.env.step(action)
        distance = float(np.linalg.norm(obs[-2:]))
        return obs, float(distance < TOUCHING), terminated, truncated, info
