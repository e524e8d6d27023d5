"""The MuJoCo games against vectors recorded with an independent port (`-v0` physics)."""

import numpy as np
import pytest

from aprl.envs import make_vec

GAMES = ["YouShallNotPassHumans", "RunToGoalAnts"]
FORCES = {"YouShallNotPassHumans": slice(278, 356), "RunToGoalAnts": slice(29, 107)}


@pytest.fixture(params=GAMES)
def recorded(request, shared_dir):
    return request.param, np.load(shared_dir / "vectors" / f"env_{request.param}.npz")


def play_one_step(game, vectors, t, prefix=""):
    """Set the recorded state before step `t`, play the recorded actions once."""
    venv = make_vec(f"multicomp/{game}-v0", num_envs=1)
    venv.reset()
    venv._episodes.lengths[:] = vectors[f"{prefix}elapsed"][t] - 1
    before = [vectors[f"{prefix}{name}_before"][t][None] for name in ("qpos", "qvel", "warmstart")]
    venv.set_physics_state([0], *before)
    actions = [vectors[f"{prefix}act{i}"][t][None] for i in range(2)]
    return venv, venv.step(actions)


def test_physics_rewards_and_observations_reproduce(recorded):
    game, vectors = recorded
    for t in range(len(vectors["done"]) - 1):
        venv, (obs, rewards, dones, _) = play_one_step(game, vectors, t)
        qpos, qvel = venv.get_physics_state([0])
        np.testing.assert_allclose(qpos[0], vectors["qpos_after"][t], atol=1e-6)
        np.testing.assert_allclose(qvel[0], vectors["qvel_after"][t], atol=1e-6)
        np.testing.assert_allclose(rewards[:, 0], vectors["reward"][t], rtol=1e-5)
        assert bool(dones[0]) == bool(vectors["done"][t])
        for i in range(2):
            expected = vectors[f"obs{i}"][t + 1]
            rest = np.ones(len(expected), dtype=bool)
            rest[FORCES[game]] = False
            np.testing.assert_allclose(obs[i][0][rest], expected[rest], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(obs[i][0][~rest], expected[~rest], atol=1e-3)
            for name in [n for n in vectors.files if n.startswith(f"info{i}_reward_")]:
                term = venv.terms(i)[name.removeprefix(f"info{i}_")]
                np.testing.assert_allclose(term[0], vectors[name][t], rtol=1e-5, atol=1e-6)


def test_last_steps_of_episodes_reproduce(recorded):
    game, vectors = recorded
    for t in range(len(vectors["term_done"])):
        _, (_, rewards, dones, infos) = play_one_step(game, vectors, t, prefix="term_")
        assert dones[0]
        np.testing.assert_allclose(rewards[:, 0], vectors["term_reward"][t], rtol=1e-5)
        winners = [i for i in range(2) if infos[0][i].get("winner")]
        expected = int(vectors["term_winner"][t])
        assert winners == ([] if expected < 0 else [expected])
        assert infos[0]["episode"]["l"] == vectors["term_elapsed"][t]
        assert infos[0]["TimeLimit.truncated"] is False
