"""Every registered game can be made and played."""

import numpy as np
import pytest

from aprl.envs import ENV_IDS, make_vec
from aprl.errors import ConfigError


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_every_game_resets_and_steps(env_id):
    venv = make_vec(env_id, 2, seed=1)
    obs = venv.reset()
    for space, rows in zip(venv.observation_spaces, obs, strict=True):
        assert rows.shape == (2, *space.shape)
    actions = [np.stack([space.sample() for _ in range(2)]) for space in venv.action_spaces]
    obs, rewards, dones, infos = venv.step(actions)
    assert rewards.shape == (venv.num_agents, 2) and dones.shape == (2,) and infos == [{}, {}]
    assert all(np.isfinite(rows).all() for rows in obs)


def test_unknown_id_names_near_matches():
    with pytest.raises(ConfigError, match="RunToGoalAnts-v1"):
        make_vec("multicomp/RunToGoalAnt-v1", 1)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_seeds_may_be_numbers_or_sequences(env_id):
    by_number = make_vec(env_id, 2, seed=7).reset()
    by_sequence = make_vec(env_id, 2, np.random.SeedSequence(7)).reset()
    for one, other in zip(by_number, by_sequence, strict=True):
        np.testing.assert_array_equal(one, other)
