"""An ant that changes sides plays the same game, turned by half."""

import numpy as np
import pytest
import torch

from aprl.envs import make_vec
from aprl.errors import PolicyError
from aprl.policies import ActorCriticMlp, MlpPolicy
from aprl.policies.mirror import other_side


def ant_policy(venv):
    torch.manual_seed(0)
    network = ActorCriticMlp(122, 8)
    with torch.no_grad():
        network.obs_mean.normal_()
        network.obs_std.uniform_(0.5, 2.0)
    return MlpPolicy(network, venv.observation_spaces[0], venv.action_spaces[0])


def turned(qpos, qvel):
    """Both players exchanged, and the world turned by 180 degrees about z."""
    qpos, qvel = np.roll(qpos, 15, axis=1), np.roll(qvel, 14, axis=1)
    for start in (0, 15):
        w, x, y, z = qpos[:, start + 3 : start + 7].T.copy()
        qpos[:, start : start + 2] *= -1
        # A half turn from the left; the sign of the quaternion is the one that agent 0 starts with
        # where agent 1 stood, and the other way round.
        back = 1.0 if start == 0 else -1.0
        qpos[:, start + 3 : start + 7] = back * np.stack([z, y, -x, -w], axis=1)
        qvel[:, start - start // 15 : start - start // 15 + 2] *= -1
    return qpos, qvel


def test_other_side_acts_alike_in_the_turned_game():
    venv = make_vec("multicomp/RunToGoalAnts-v1", 4, seed=3, num_threads=1)
    first = ant_policy(venv)
    second = other_side(first)
    obs = venv.reset()
    for _ in range(25):  # until the feet are on the ground and contact forces count
        obs = venv.step([first.predict(o, deterministic=True)[0] for o in obs])[0]
    qpos, qvel = venv.get_physics_state(range(4))
    venv.sim.ctrl[:] = np.roll(venv.sim.ctrl, 8, axis=1)
    as_first = first.mean(obs[0])
    venv.set_physics_state(range(4), *turned(qpos, qvel))
    there = venv.observe()[1]
    assert np.abs(there - obs[0]).max() > 0.5
    np.testing.assert_allclose(second.mean(there), as_first, atol=2e-3)
    np.testing.assert_allclose(second.value(there), first.value(obs[0]), atol=2e-3)


def test_twice_is_the_same_player():
    venv = make_vec("multicomp/RunToGoalAnts-v1", 2, seed=3, num_threads=1)
    first = ant_policy(venv)
    obs = venv.reset()[0]
    twice = other_side(other_side(first))
    # Two half turns change the sign of the quaternions, the same orientation.
    flipped = obs.copy()
    flipped[:, 3:7] *= -1
    flipped[:, 110:114] *= -1
    np.testing.assert_allclose(twice.mean(flipped), first.mean(obs), rtol=1e-5, atol=1e-6)


def test_other_games_are_refused():
    venv = make_vec("multicomp/YouShallNotPassHumans-v1", 1, num_threads=1)
    policy = MlpPolicy(ActorCriticMlp(380, 17), venv.observation_spaces[0], venv.action_spaces[0])
    with pytest.raises(PolicyError, match="122"):
        other_side(policy)
