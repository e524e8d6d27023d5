"""The games: a multi-agent vector API, MuJoCo games, tiny test beds, and their registry."""

from aprl.envs.base import VecMultiEnv, VecMultiWrapper
from aprl.envs.registry import ENV_IDS, check_env_id, make_vec

__all__ = ["ENV_IDS", "VecMultiEnv", "VecMultiWrapper", "check_env_id", "make_vec"]
