"""The games: a multi-agent vector API, MuJoCo games, tiny test beds, and their registry."""

from aprl.envs.base import VecMultiEnv, VecMultiWrapper
from aprl.envs.mujoco.masking import OpponentMask, opponent_mask
from aprl.envs.parallel import parallel_env
from aprl.envs.registry import ENV_IDS, check_env_id, is_mujoco_game, make_vec

__all__ = [
    "ENV_IDS",
    "OpponentMask",
    "VecMultiEnv",
    "VecMultiWrapper",
    "check_env_id",
    "is_mujoco_game",
    "make_vec",
    "opponent_mask",
    "parallel_env",
]
