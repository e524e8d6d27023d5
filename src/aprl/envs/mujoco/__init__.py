"""The MuJoCo games, batched."""

from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.mujoco.kick_and_defend import KickAndDefend
from aprl.envs.mujoco.rules import Rules
from aprl.envs.mujoco.run_to_goal import RunToGoalAnts, RunToGoalHumans
from aprl.envs.mujoco.scene import PROFILES
from aprl.envs.mujoco.sumo import (
    SumoAnts,
    SumoAntsAutoContact,
    SumoHumans,
    SumoHumansAutoContact,
)
from aprl.envs.mujoco.you_shall_not_pass import YouShallNotPassHumans

GAMES: dict[str, type[Rules]] = {
    "KickAndDefend": KickAndDefend,
    "RunToGoalAnts": RunToGoalAnts,
    "RunToGoalHumans": RunToGoalHumans,
    "SumoAnts": SumoAnts,
    "SumoAntsAutoContact": SumoAntsAutoContact,
    "SumoHumans": SumoHumans,
    "SumoHumansAutoContact": SumoHumansAutoContact,
    "YouShallNotPassHumans": YouShallNotPassHumans,
}

__all__ = ["GAMES", "PROFILES", "MujocoGame"]
