"""The MuJoCo games, batched."""

from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.mujoco.rules import Rules
from aprl.envs.mujoco.run_to_goal import RunToGoalAnts, RunToGoalHumans
from aprl.envs.mujoco.scene import PROFILES
from aprl.envs.mujoco.you_shall_not_pass import YouShallNotPassHumans

GAMES: dict[str, type[Rules]] = {
    "RunToGoalAnts": RunToGoalAnts,
    "RunToGoalHumans": RunToGoalHumans,
    "YouShallNotPassHumans": YouShallNotPassHumans,
}

__all__ = ["GAMES", "PROFILES", "MujocoGame"]
