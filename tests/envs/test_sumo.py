"""Sumo's rules on hand-made positions; the starts; the platform."""

import mujoco
import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES

PLATFORM = 0.5  # height, metres


def make(game, num_envs=1, version="v1", **options):
    return make_vec(f"multicomp/{game}-{version}", num_envs, seed=3, num_threads=1, **options)


def still(venv):
    return [np.zeros((venv.num_envs, *s.shape), np.float32) for s in venv.action_spaces]


def place(venv, first, second, *, radius=2.5, touched=False, elapsed=0):
    """Put the torsos of both players of environment 0 somewhere, at rest."""
    qpos = venv.model.qpos0.copy()
    for agent, position in zip(venv.rules.agents, (first, second), strict=True):
        qpos[agent.qpos.start : agent.qpos.start + 3] = position
    venv.set_physics_state(
        [0],
        qpos[None],
        np.zeros((1, venv.model.nv)),
        elapsed=np.array([elapsed]),
        memory=np.array([[radius, touched]]),
    )


def outcome(venv):
    """(done, winner or None, sparse rewards) of one step in which nobody acts."""
    _, _, dones, infos = venv.step(still(venv))
    if not dones[0]:
        return False, None, None
    winners = [i for i in (0, 1) if infos[0][i].get("winner")]
    rewards = tuple(infos[0][i]["reward_remaining"] for i in (0, 1))
    return True, winners[0] if winners else None, rewards


UP, LOW, OUT = (-1, 0, 2.0), (1, 0, 0.7), (2.0, 1.8, 2.0)


@pytest.fixture(params=["SumoAnts", "SumoHumans"])
def game(request):
    return request.param


@pytest.mark.parametrize("loser", [LOW, OUT])
def test_who_falls_or_leaves_loses_if_they_touched(game, loser):
    venv = make(game)
    venv.reset()
    place(venv, UP, loser, touched=True)
    assert outcome(venv) == (True, 0, (1000.0, -1000.0))
    place(venv, loser, (-1, 0, 2.0), touched=True)
    assert outcome(venv) == (True, 1, (-1000.0, 1000.0))


@pytest.mark.parametrize("loser", [LOW, OUT])
def test_without_a_touch_it_is_a_tie_and_only_the_loser_pays(game, loser):
    venv = make(game)
    venv.reset()
    place(venv, UP, loser)
    assert outcome(venv) == (True, None, (0.0, -1000.0))


def test_auto_contact_counts_every_fall(game):
    venv = make(f"{game}AutoContact")
    venv.reset()
    assert (venv.state.memory[:, 1] == 1).all()
    assert (make(game).state.memory[:, 1] == 0).all()
    place(venv, UP, LOW, touched=True)
    assert outcome(venv)[1] == 0


def test_both_down_is_a_tie_that_both_pay(game):
    venv = make(game)
    venv.reset()
    place(venv, (-1, 0, 0.7), LOW, touched=True)
    assert outcome(venv) == (True, None, (-1000.0, -1000.0))


def test_a_fall_counts_before_leaving_the_ring(game):
    venv = make(game)
    venv.reset()
    place(venv, (-2.0, 1.8, 2.0), LOW, touched=True)  # agent 0 is outside, agent 1 has fallen
    assert outcome(venv) == (True, 0, (1000.0, -1000.0))


def test_time_limit_is_a_tie_that_both_pay(game):
    venv = make(game)
    venv.reset()
    place(venv, UP, (1, 0, 2.0), touched=True, elapsed=498)
    assert outcome(venv)[0] is False
    obs = venv.observe()
    assert obs[0][0, -1] == obs[1][0, -1] == 1
    assert outcome(venv) == (True, None, (-1000.0, -1000.0))
    assert venv.observe()[0][0, -1] == 500


def test_touching_is_remembered_until_the_episode_ends(game):
    venv = make(game)
    venv.reset()
    place(venv, (0, 0, 2.0), (0.05, 0, 2.0))
    venv.step(still(venv))
    assert venv.state.memory[0, 1] == 1
    place(venv, (-1, 0, 2.0), (1, 0, 2.0), touched=bool(venv.state.memory[0, 1]))
    assert not venv.sim.touching("players")[0]
    venv.step(still(venv))
    assert venv.state.memory[0, 1] == 1
    place(venv, UP, LOW, touched=True)
    venv.step(still(venv))
    assert venv.state.memory[0, 1] == 0


def test_touch_sensor_agrees_with_the_list_of_contacts():
    venv = make("SumoAnts", num_envs=8)
    venv.reset()
    rng = np.random.default_rng(0)
    data = mujoco.MjData(venv.model)
    first, second = venv.rules.agents
    touching = 0
    for _ in range(150):
        towards = [np.clip(rng.normal(0, 1, (8, 8)), -1, 1).astype(np.float32) for _ in range(2)]
        venv.step(towards)
        if rng.random() < 0.1:  # bring them together
            qpos = venv.sim.qpos.copy()
            qpos[:, 15:17] = qpos[:, 0:2] + rng.uniform(-0.7, 0.7, (8, 2))
            venv.set_physics_state(np.arange(8), qpos, venv.sim.qvel.copy())
        for env in range(8):
            data.qpos[:] = venv.sim.qpos[env]
            venv.model.geom("arena").size[0] = venv.state.memory[env, 0]
            mujoco.mj_forward(venv.model, data)
            bodies = venv.model.geom_bodyid[data.contact.geom]
            ours = (bodies >= first.bodies.start) & (bodies < first.bodies.stop)
            theirs = (bodies >= second.bodies.start) & (bodies < second.bodies.stop)
            expected = (ours.any(axis=1) & theirs.any(axis=1) & (data.contact.dist < 0)).any()
            assert venv.sim.touching("players")[env] == expected
            touching += expected
    assert 20 < touching < 1150


def test_starts_lie_inside_the_ring_on_the_right_side(game):
    venv = make(game, num_envs=300)
    venv.reset()
    smallest, largest = GAMES[game].radius_range
    radius = venv.state.memory[:, 0]
    assert smallest < radius.min() < smallest + 0.1 and largest - 0.1 < radius.max() < largest
    gap = 0.3 + smallest / 2
    for agent, side in ((0, -1), (1, 1)):
        x, y = venv.rules.torso(venv.sim, agent, 0), venv.rules.torso(venv.sim, agent, 1)
        assert (side * x >= 0.3 - 1e-9).all() and (side * x <= radius - gap + 1e-9).all()
        assert (np.abs(y) <= np.sqrt(radius**2 - x**2) - gap + 1e-9).all()
        assert x.std() > 0.1 and y.std() > 0.1


def test_draws_come_in_the_published_order():
    venv = make("SumoAnts")
    rng = np.random.default_rng(np.random.SeedSequence(3).spawn(1)[0])
    venv.reset()
    radius = rng.uniform(2.5, 4.5)
    noise = rng.uniform(-0.1, 0.1, venv.model.nq)
    qvel = 0.1 * rng.standard_normal(venv.model.nv)
    expected = venv.model.qpos0 + noise
    for start, low, high in ((0, -radius + 1.55, -0.3), (15, 0.3, radius - 1.55)):
        x = rng.uniform(low, high)
        y = rng.uniform(-np.sqrt(radius**2 - x**2) + 1.55, np.sqrt(radius**2 - x**2) - 1.55)
        expected[start : start + 2] = x, y
    qpos, velocity = venv.get_physics_state([0])
    np.testing.assert_allclose(qpos[0], expected)
    np.testing.assert_allclose(velocity[0], qvel)
    assert venv.state.memory[0, 0] == radius


def test_the_curriculum_narrows_the_ring():
    narrow = make("SumoAnts", num_envs=100, version="v1")
    stage = make_vec("multicomp/SumoAnts-v1", 100, seed=3, num_threads=1, version=0.0)
    narrow.reset(), stage.reset()
    assert stage.state.memory[:, 0].max() <= 2.6 < narrow.state.memory[:, 0].max()
    late = make_vec("multicomp/SumoAnts-v1", 100, seed=3, num_threads=1, version=1e4)
    late.reset()
    np.testing.assert_array_equal(late.state.memory[:, 0], narrow.state.memory[:, 0])


def test_each_simulation_has_its_own_platform():
    """A still ant stands on a wide platform, and falls to the floor beside a narrow one."""
    venv = make("SumoAnts", num_envs=2)
    venv.reset()
    qpos = np.tile(venv.model.qpos0, (2, 1))
    qpos[:, 15:17] = 3.5, 0  # agent 1, inside radius 4.4, outside radius 2.5
    qpos[:, [2, 17]] = 1.0
    memory = np.array([[4.4, 0.0], [2.5, 0.0]])
    venv.set_physics_state([0, 1], qpos, np.zeros((2, venv.model.nv)), memory=memory)
    for _ in range(60):
        venv.sim.step(np.zeros((2, venv.model.nu)))
    wide, narrow = venv.rules.torso(venv.sim, 1, 2)
    assert wide > PLATFORM + 0.15 and narrow < PLATFORM + 0.1
    geoms = venv.sim._geoms
    arena = venv.model.geom("arena").id
    np.testing.assert_allclose(geoms["rbound"][:, arena], np.hypot([4.4, 2.5], 0.25))
    np.testing.assert_allclose(geoms["aabb"][:, arena, 3], [4.4, 2.5])


def test_ring_entries_of_the_observation(game):
    venv = make(game)
    venv.reset()
    place(venv, (-1.0, 0.5, 2.0), (1.0, -0.5, 2.0), radius=2.4, elapsed=100)
    for agent, (own, other) in enumerate([((-1, 0.5), (1, -0.5)), ((1, -0.5), (-1, 0.5))]):
        ring = venv.observe()[agent][0, -15:]
        np.testing.assert_allclose(ring[:2], np.subtract(other, own))
        np.testing.assert_allclose(ring[11], 2.4, rtol=1e-6)
        np.testing.assert_allclose(ring[12:14], 2.4 - np.hypot(1, 0.5), rtol=1e-6)
        assert ring[14] == 400
        rotation = ring[2:11].reshape(3, 3)
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)


def test_a_branch_returns_to_where_it_left():
    venv = make("SumoAnts", num_envs=3)
    venv.reset()
    place(venv, (0, 0, 2.0), (0.05, 0, 2.0))
    venv.step(still(venv))
    rows, before = venv.get_simulator_state([0, 1, 2]), venv.observe()
    memory, lengths = venv.state.memory.copy(), venv.state.elapsed.copy()
    place(venv, UP, (1, 0, 2.0), radius=4.0)
    for _ in range(3):
        venv.step(still(venv))
    venv.set_simulator_state([0, 1, 2], rows)
    np.testing.assert_array_equal(venv.state.memory, memory)
    np.testing.assert_array_equal(venv.state.elapsed, lengths)
    for now, then in zip(venv.observe(), before, strict=True):
        np.testing.assert_array_equal(now, then)
