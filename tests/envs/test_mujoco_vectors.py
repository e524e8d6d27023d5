"""The MuJoCo games against vectors recorded with an independent port (`-v0` physics)."""

import numpy as np
import pytest

from aprl.envs import make_vec

FORCES = {
    "KickAndDefend": slice(276, 354),
    "RunToGoalAnts": slice(29, 107),
    "SumoHumans": slice(278, 356),
    "YouShallNotPassHumans": slice(278, 356),
}


@pytest.fixture(params=FORCES)
def recorded(request, shared_dir):
    return request.param, np.load(shared_dir / "vectors" / f"env_{request.param}.npz")


def remembered(game, vectors, t, prefix, touched):
    """The rules' memory before step `t`; whether players (or keeper and ball) had touched before
    is not recorded."""
    if game == "SumoHumans":
        radius = vectors[f"{prefix}arena_radius"]
        return np.array([[radius[t] if prefix else radius, touched]])
    return np.array([[touched]] if game == "KickAndDefend" else [[]])


def play_one_step(game, vectors, t, prefix="", touched=False):
    """Set the recorded state before step `t`, play the recorded actions once."""
    venv = make_vec(f"multicomp/{game}-v0", num_envs=1)
    venv.reset()
    before = [vectors[f"{prefix}{name}_before"][t][None] for name in ("qpos", "qvel", "warmstart")]
    venv.set_physics_state(
        [0],
        *before,
        elapsed=vectors[f"{prefix}elapsed"][t] - 1,
        memory=remembered(game, vectors, t, prefix, touched),
    )
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
        # In sumo the winner's reward tells whether they had touched, in Kick and Defend the
        # keeper's 500 points do.
        touched = vectors["term_winner"][t] >= 0 if game == "SumoHumans" else False
        if game == "KickAndDefend":
            touched = vectors["term_rem1"][t] in (1500.0, 2000.0)
        _, (_, rewards, dones, infos) = play_one_step(
            game, vectors, t, prefix="term_", touched=touched
        )
        assert dones[0]
        np.testing.assert_allclose(rewards[:, 0], vectors["term_reward"][t], rtol=1e-5)
        winners = [i for i in range(2) if infos[0][i].get("winner")]
        expected = int(vectors["term_winner"][t])
        assert winners == ([] if expected < 0 else [expected])
        assert infos[0]["episode"]["l"] == vectors["term_elapsed"][t]
        assert infos[0]["TimeLimit.truncated"] is False
