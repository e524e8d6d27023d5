"""What a game asks of its players, without a batch of it."""

import functools
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from aprl.envs.registry import is_mujoco_game, make_vec


@dataclass(frozen=True)
class GameDescription:
    """Sizes and names, each a tuple over the agents.

    Attributes:
        observation_spaces: what each agent sees.
        action_spaces: what each agent may do.
        reward_terms: names of the terms that `VecMultiEnv.terms` reports.
    """

    observation_spaces: tuple[spaces.Space, ...]
    action_spaces: tuple[spaces.Space, ...]
    reward_terms: tuple[tuple[str, ...], ...]


@functools.cache
def describe_game(env_id: str) -> GameDescription:
    """Describe a game, by one step of one environment that is closed again.

    Raises:
        ConfigError: unknown id.
    """
    venv = make_vec(env_id, 1, **({"num_threads": 1} if is_mujoco_game(env_id) else {}))
    try:
        venv.reset()
        venv.step([_first_action(space) for space in venv.action_spaces])
        terms = tuple(tuple(venv.terms(agent)) for agent in range(venv.num_agents))
    finally:
        venv.close()
    return GameDescription(venv.observation_spaces, venv.action_spaces, terms)


def _first_action(space: spaces.Space) -> np.ndarray:
    if isinstance(space, spaces.Discrete):
        return np.array([space.start])
    assert isinstance(space, spaces.Box)
    return np.zeros((1, *space.shape), space.dtype)
