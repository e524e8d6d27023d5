"""Kick and Defend's rules on hand-made positions; the starts."""

import numpy as np
import pytest

from aprl.envs import make_vec

KICKER, KEEPER, BALL = 7, 31, 0  # where each one's qpos begins


@pytest.fixture
def venv():
    venv = make_vec("multicomp/KickAndDefend-v1", 1, seed=5, num_threads=1)
    venv.reset()
    return venv


def place(venv, ball, velocity=(0, 0, 0), keeper=(3, 0, 1.5), kicker=(-3, 0, 1.5), **state):
    qpos = venv.model.qpos0.copy()
    qvel = np.zeros(venv.model.nv)
    for start, position in ((BALL, ball), (KEEPER, keeper), (KICKER, kicker)):
        qpos[start : start + 3] = position
    qvel[:3] = velocity
    memory = np.array([[state.pop("touched", 0.0)]])
    elapsed = np.array([state.pop("elapsed", 0)])
    venv.set_physics_state([0], qpos[None], qvel[None], elapsed=elapsed, memory=memory)


def outcome(venv):
    actions = [np.zeros((1, 17), np.float32)] * 2
    _, rewards, dones, infos = venv.step(actions)
    if not dones[0]:
        return False, None, None
    info = infos[0]
    winners = [i for i in (0, 1) if info[i].get("winner")]
    sparse = tuple(info[i]["reward_remaining"] for i in (0, 1))
    for i in (0, 1):  # the terms of a last step are those of the returned reward
        assert info[i]["reward_move"] + sparse[i] == pytest.approx(rewards[i, 0])
    return True, winners[0] if winners else None, sparse


def test_a_ball_in_the_goal_wins_for_the_kicker(venv):
    place(venv, (4.1, 2.9, 0.3))
    assert outcome(venv) == (True, 0, (1000.0, -1000.0))


def test_a_ball_beside_the_goal_wins_for_the_keeper(venv):
    place(venv, (4.1, 3.1, 0.3))
    assert outcome(venv) == (True, 1, (-1000.0, 1500.0))  # 500 for standing


@pytest.mark.parametrize(
    ("touched", "height", "reward"),
    [(0, 1.5, 1500.0), (1, 1.5, 2000.0), (0, 0.6, 1000.0), (1, 0.6, 1500.0)],
)
def test_a_stopped_ball_pays_the_keeper_by_how_it_was_stopped(venv, touched, height, reward):
    place(venv, (1, 2, 0.3), velocity=(-2, 0, 0), keeper=(3, 0, height), touched=touched)
    assert outcome(venv) == (True, 1, (-1000.0, reward))


def test_a_slow_ball_that_rolls_back_does_not_end_the_game(venv):
    place(venv, (1, 2, 0.3), velocity=(-0.5, 0, 0))
    assert outcome(venv)[0] is False


def test_a_keeper_far_from_its_goal_fouls(venv):
    place(venv, (0, 2, 0.3), keeper=(1.4, 0, 1.5))
    assert outcome(venv) == (True, None, (0.0, -1000.0))
    place(venv, (0, 2, 0.3), keeper=(1.6, 0, 1.5))
    assert outcome(venv)[0] is False


def test_when_time_is_up_the_keeper_wins(venv):
    place(venv, (0, 2, 0.3), elapsed=498)
    assert outcome(venv)[0] is False
    assert outcome(venv)[:2] == (True, 1)


def test_the_keepers_touch_is_remembered(venv):
    place(venv, (3, 0.0, 1.5))
    outcome(venv)
    assert venv.state.memory[0, 0] == 1
    place(venv, (0, 2, 0.3), touched=1)
    outcome(venv)
    assert venv.state.memory[0, 0] == 1


def test_infos_hold_the_ball_while_the_game_goes_on(venv):
    place(venv, (1, 2, 0.3))
    _, rewards, _, _ = venv.step([np.zeros((1, 17), np.float32)] * 2)
    distance = abs(venv.sim.qpos[0, BALL] - 4)
    for agent, sign in ((0, -1), (1, 1)):
        shown = venv.terms(agent)["reward_move"][0]
        assert shown == pytest.approx(rewards[agent, 0] + sign * distance)


def test_starts_lie_in_the_published_ranges():
    venv = make_vec("multicomp/KickAndDefend-v1", 300, seed=0, num_threads=1)
    venv.reset()
    qpos, qvel = venv.get_physics_state(np.arange(300))
    for start, x, y in ((KICKER, (-3.5, -0.5), 2), (KEEPER, (1.6, 3.5), 2), (BALL, (-2, 1), 4)):
        places = qpos[:, start : start + 2]
        assert x[0] <= places[:, 0].min() and places[:, 0].max() <= x[1]
        assert np.ptp(places[:, 0]) > 0.9 * (x[1] - x[0])
        assert -y <= places[:, 1].min() < -0.9 * y and 0.9 * y < places[:, 1].max() <= y
    assert (qpos[:, 2] == 0.35).all()
    rolling = qvel[:, 0] >= 0
    assert 0 < (qvel[:, 0] == 0.1).sum() < 300 and rolling.all()
    backwards = qvel[:, 0] == 0.1
    assert (qvel[backwards, :3] == 0.1).all()


def test_the_curriculum_starts_everything_near_its_place():
    venv = make_vec("multicomp/KickAndDefend-v1", 50, seed=0, num_threads=1, version=0.0)
    venv.reset()
    qpos, _ = venv.get_physics_state(np.arange(50))
    for start, x in ((KICKER, -2), (KEEPER, 2), (BALL, 0)):
        assert (np.abs(qpos[:, start] - x) <= 0.05).all()
        assert (np.abs(qpos[:, start + 1]) <= 0.05).all()


def test_observation_of_ball_and_opponent(venv):
    place(venv, (1, 2, 0.3), keeper=(3, 0.5, 1.5), kicker=(-3, -0.5, 1.4))
    first, second = (o[0] for o in venv.observe())
    np.testing.assert_allclose(first[354:356], (6, 1))
    np.testing.assert_allclose(second[354:356], (-6, -1))
    np.testing.assert_allclose(first[378:384], (4, 2.5, 0.3, 3, 1, -5), rtol=1e-6)
    np.testing.assert_allclose(second[378:384], (-2, 1.5, 0.3, 3, 1, -5), rtol=1e-6)
    assert first[0] == np.float32(1.4) and first[356] == 1.5
