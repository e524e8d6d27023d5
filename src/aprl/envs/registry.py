"""Ids of the games and how to make them."""

from collections.abc import Callable
from functools import partial

import numpy as np

from aprl.envs.base import VecMultiEnv
from aprl.envs.crowded_line import CrowdedLine
from aprl.envs.matrix_games import matching_pennies, rock_paper_scissors
from aprl.envs.mujoco import GAMES, PROFILES, MujocoGame
from aprl.envs.single_agent import SINGLE_AGENT_IDS, SingleAgentGame
from aprl.errors import unknown_name

# Run to Goal has no limit of its own: with a passive opponent an episode could go on for ever.
RUN_TO_GOAL_LIMIT = 500

_MUJOCO_NAMESPACE = "multicomp/"

_MAKERS: dict[str, Callable[..., VecMultiEnv]] = {
    "aprl/CrowdedLine-v0": CrowdedLine,
    "aprl/CrowdedLinePair-v0": partial(CrowdedLine, num_agents=2, max_episode_steps=50),
    "aprl/IteratedMatchingPennies-v0": matching_pennies,
    "aprl/RockPaperScissors-v0": rock_paper_scissors,
}
for _name, _rules in GAMES.items():
    for _version, _profile in PROFILES.items():
        _limit = None if _rules.max_steps else RUN_TO_GOAL_LIMIT
        _MAKERS[f"{_MUJOCO_NAMESPACE}{_name}-{_version}"] = partial(
            MujocoGame, _rules, _profile, max_episode_steps=_limit
        )

for _name in SINGLE_AGENT_IDS:
    _MAKERS[_name] = partial(SingleAgentGame, _name)

ENV_IDS: tuple[str, ...] = tuple(sorted(_MAKERS))


def check_env_id(env_id: str) -> None:
    """Raise unless `env_id` is registered.

    Raises:
        ConfigError: unknown; the message lists near matches.
    """
    if env_id not in _MAKERS:
        raise unknown_name("env id", env_id, _MAKERS)


def is_mujoco_game(env_id: str) -> bool:
    """Whether the id is that of a MuJoCo game, with the options of `MujocoGame`."""
    return env_id.startswith(_MUJOCO_NAMESPACE)


def make_vec(
    env_id: str, num_envs: int, seed: int | np.random.SeedSequence = 0, **kwargs: object
) -> VecMultiEnv:
    """Make a batch of games.

    Args:
        env_id: e.g. `multicomp/YouShallNotPassHumans-v1`. `-v0` is the published physics, `-v1` the
            fast one; Gymnasium's MuJoCo environments are games of one player. `aprl.envs.ENV_IDS`
            lists all.
        num_envs: environments in the batch.
        seed: of all random draws; environment `i`'s stream does not depend on `num_envs`.
        **kwargs: of the game: `max_episode_steps` for all; for MuJoCo games `num_threads`, `masks`
            and the others of `aprl.envs.mujoco.MujocoGame`.

    Raises:
        ConfigError: unknown id or an unusable value.
    """
    check_env_id(env_id)
    return _MAKERS[env_id](num_envs=num_envs, seed=seed, **kwargs)
