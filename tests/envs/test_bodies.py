"""The compiled bodies against the published tables (inertia as MuJoCo 1.31 computed it)."""

import mujoco
import numpy as np
import pytest

from aprl.envs.mujoco import GAMES, PROFILES
from aprl.envs.mujoco.bodies import ANT, HUMANOID, Capsule, cylinder_inertia
from aprl.envs.mujoco.scene import agent_slices, build_model

# body, mass (kg), principal moments of inertia (kg m^2, ascending)
HUMANOID_BODIES = [
    ("torso", 8.32208, (0.033132, 0.147625, 0.15914)),
    ("lwaist", 2.03575, (0.003664, 0.007329, 0.007329)),
    ("pelvis", 5.85279, (0.023704, 0.037653, 0.037653)),
    ("right_thigh", 4.52556, (0.008146, 0.064458, 0.064458)),
    ("right_shin", 2.63249, (0.00316, 0.0283, 0.0283)),
    ("right_foot", 1.76715, (0.003976, 0.003976, 0.003976)),
    ("left_thigh", 4.52556, (0.008146, 0.064458, 0.064458)),
    ("left_shin", 2.63249, (0.00316, 0.0283, 0.0283)),
    ("left_foot", 1.76715, (0.003976, 0.003976, 0.003976)),
    ("right_upper_arm", 1.59406, (0.001275, 0.013997, 0.013997)),
    ("right_lower_arm", 1.19834, (0.000619, 0.012812, 0.012812)),
    ("left_upper_arm", 1.59406, (0.001275, 0.013997, 0.013997)),
    ("left_lower_arm", 1.19834, (0.000619, 0.012812, 0.012812)),
]
_LEG, _ANKLE = (0.03648, (0.000117, 0.000459, 0.000459)), (0.06491, (0.000208, 0.002359, 0.002359))
ANT_BODIES = [
    ("torso", 0.32725, (0.008181, 0.008181, 0.008181)),
    ("front_left_leg", *_LEG),
    ("aux_1", *_LEG),
    ("ankle_1_body", *_ANKLE),
    ("front_right_leg", *_LEG),
    ("aux_2", *_LEG),
    ("ankle_2_body", *_ANKLE),
    ("back_leg", *_LEG),
    ("aux_3", *_LEG),
    ("ankle_3_body", *_ANKLE),
    ("right_back_leg", *_LEG),
    ("aux_4", *_LEG),
    ("ankle_4_body", *_ANKLE),
]

# joint, body, unit axis, position (m), range (degrees), stiffness, damping, armature
_R2 = np.sqrt(0.5)
HUMANOID_JOINTS = [
    ("abdomen_z", "lwaist", (0, 0, 1), (0, 0, 0.065), (-45, 45), 20, 5, 0.02),
    ("abdomen_y", "lwaist", (0, 1, 0), (0, 0, 0.065), (-75, 30), 10, 5, 0.02),
    ("abdomen_x", "pelvis", (1, 0, 0), (0, 0, 0.1), (-35, 35), 10, 5, 0.02),
    ("right_hip_x", "right_thigh", (1, 0, 0), (0, 0, 0), (-25, 5), 10, 5, 0.01),
    ("right_hip_z", "right_thigh", (0, 0, 1), (0, 0, 0), (-60, 35), 10, 5, 0.01),
    ("right_hip_y", "right_thigh", (0, 1, 0), (0, 0, 0), (-110, 20), 20, 5, 0.008),
    ("right_knee", "right_shin", (0, -1, 0), (0, 0, 0.02), (-160, -2), 0, 1, 0.006),
    ("left_hip_x", "left_thigh", (-1, 0, 0), (0, 0, 0), (-25, 5), 10, 5, 0.01),
    ("left_hip_z", "left_thigh", (0, 0, -1), (0, 0, 0), (-60, 35), 10, 5, 0.01),
    ("left_hip_y", "left_thigh", (0, 1, 0), (0, 0, 0), (-120, 20), 20, 5, 0.01),
    ("left_knee", "left_shin", (0, -1, 0), (0, 0, 0.02), (-160, -2), 1, 1, 0.006),
    (
        *("right_shoulder1", "right_upper_arm", (0.8165, 0.4082, 0.4082), (0, 0, 0)),
        *((-85, 60), 1, 1, 0.0068),
    ),
    ("right_shoulder2", "right_upper_arm", (0, -_R2, _R2), (0, 0, 0), (-85, 60), 1, 1, 0.0051),
    ("right_elbow", "right_lower_arm", (0, -_R2, _R2), (0, 0, 0), (-90, 50), 0, 1, 0.0028),
    (
        *("left_shoulder1", "left_upper_arm", (0.8165, -0.4082, 0.4082), (0, 0, 0)),
        *((-60, 85), 1, 1, 0.0068),
    ),
    ("left_shoulder2", "left_upper_arm", (0, _R2, _R2), (0, 0, 0), (-60, 85), 1, 1, 0.0051),
    ("left_elbow", "left_lower_arm", (0, -_R2, -_R2), (0, 0, 0), (-90, 50), 0, 1, 0.0028),
]
ANT_JOINTS = [
    ("hip_1", "aux_1", (0, 0, 1), (0, 0, 0), (-30, 30), 0, 1, 1),
    ("ankle_1", "ankle_1_body", (-_R2, _R2, 0), (0, 0, 0), (30, 70), 0, 1, 1),
    ("hip_2", "aux_2", (0, 0, 1), (0, 0, 0), (-30, 30), 0, 1, 1),
    ("ankle_2", "ankle_2_body", (_R2, _R2, 0), (0, 0, 0), (-70, -30), 0, 1, 1),
    ("hip_3", "aux_3", (0, 0, 1), (0, 0, 0), (-30, 30), 0, 1, 1),
    ("ankle_3", "ankle_3_body", (-_R2, _R2, 0), (0, 0, 0), (-70, -30), 0, 1, 1),
    ("hip_4", "aux_4", (0, 0, 1), (0, 0, 0), (-30, 30), 0, 1, 1),
    ("ankle_4", "ankle_4_body", (_R2, _R2, 0), (0, 0, 0), (30, 70), 0, 1, 1),
]

HUMANOID_MOTORS = [
    ("abdomen_y", 100),
    ("abdomen_z", 100),
    ("abdomen_x", 100),
    ("right_hip_x", 100),
    ("right_hip_z", 100),
    ("right_hip_y", 300),
    ("right_knee", 200),
    ("left_hip_x", 100),
    ("left_hip_z", 100),
    ("left_hip_y", 300),
    ("left_knee", 200),
    ("right_shoulder1", 25),
    ("right_shoulder2", 25),
    ("right_elbow", 25),
    ("left_shoulder1", 25),
    ("left_shoulder2", 25),
    ("left_elbow", 25),
]
_ANT_ORDER = ("hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3")
ANT_MOTORS = [(joint, 150) for joint in _ANT_ORDER]

_ANT = (ANT_BODIES, ANT_JOINTS, ANT_MOTORS, 1.0)
_HUMANOID = (HUMANOID_BODIES, HUMANOID_JOINTS, HUMANOID_MOTORS, 0.4)
TABLES = {game: _ANT if "Ants" in game else _HUMANOID for game in GAMES}

_STRAIGHT, _ROUND = (1, 0, 0, 0), (0, 0, 0, 1)
# (nq, nv, nu), time step (s), torso x and height at qpos0 (m), torso orientations
WORLDS = {
    "KickAndDefend": ((55, 52, 34), 0.003, 3, 1.5, (_STRAIGHT, _ROUND)),
    "RunToGoalAnts": ((30, 28, 16), 0.01, 1, 0.75, (_STRAIGHT, _ROUND)),
    "RunToGoalHumans": ((48, 46, 34), 0.003, 1, 1.4, (_STRAIGHT, _ROUND)),
    "SumoAnts": ((30, 28, 16), 0.003, 1, 2.5, (_ROUND, _ROUND)),
    "SumoHumans": ((48, 46, 34), 0.003, 2, 2.5, (_STRAIGHT, _ROUND)),
    "YouShallNotPassHumans": ((48, 46, 34), 0.003, 1, 1.4, (_STRAIGHT, _ROUND)),
}


# The AutoContact games differ from sumo in their rules only.
@pytest.fixture(params=sorted(WORLDS))
def game(request):
    return request.param


@pytest.fixture(params=sorted(PROFILES))
def model(request, game):
    return build_model(GAMES[game].scene, PROFILES[request.param])


def test_masses_and_inertias_are_those_of_mujoco_1_31(game, model):
    bodies = TABLES[game][0]
    first = 2 if game == "KickAndDefend" else 1  # after the world, and the ball
    assert model.nbody == first + 2 * len(bodies)
    for agent in range(2):
        for i, (name, mass, moments) in enumerate(bodies):
            body = first + agent * len(bodies) + i
            assert model.body(body).name == f"agent{agent}/{name}"
            assert model.body_mass[body] == pytest.approx(mass, abs=6e-6), name
            np.testing.assert_allclose(
                np.sort(model.body_inertia[body]), moments, rtol=0, atol=6e-7, err_msg=name
            )


@pytest.mark.parametrize(
    ("game_name", "total"), [("RunToGoalAnts", 0.87871), ("RunToGoalHumans", 39.64582)]
)
def test_total_mass(game_name, total):
    model = build_model(GAMES[game_name].scene, PROFILES["v0"])
    assert model.body_mass.sum() == pytest.approx(2 * total, abs=2e-5)


def test_capsule_inertia_by_hand():
    # radius 1, caps 3 apart: a cylinder of length 4, not a capsule
    mass, centre, inertia = cylinder_inertia(Capsule("c", 1.0, (0, 0, 0), (0, 0, 3)), density=2.0)
    assert mass == pytest.approx(8 * np.pi)
    np.testing.assert_allclose(centre, (0, 0, 1.5))
    transverse = mass * (3 + 16) / 12
    np.testing.assert_allclose(inertia, np.diag([transverse, transverse, mass / 2]), atol=1e-12)


def test_joints(game, model):
    joints = TABLES[game][1]
    balls = int(game == "KickAndDefend")
    assert model.njnt == balls + 2 * (1 + len(joints))
    for agent in range(2):
        first = balls + agent * (1 + len(joints))
        assert model.joint(first).name == f"agent{agent}/root"
        assert model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE
        free = slice(model.jnt_dofadr[first], model.jnt_dofadr[first] + 6)
        assert not model.dof_damping[free].any() and not model.dof_armature[free].any()
        for i, (name, body, axis, pos, degrees, stiffness, damping, armature) in enumerate(joints):
            j = first + 1 + i
            dof = model.jnt_dofadr[j]
            assert model.joint(j).name == f"agent{agent}/{name}"
            assert model.body(model.jnt_bodyid[j]).name == f"agent{agent}/{body}"
            assert model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE
            assert model.jnt_limited[j] == 1
            np.testing.assert_allclose(model.jnt_axis[j], axis, atol=1e-4, err_msg=name)
            np.testing.assert_allclose(model.jnt_pos[j], pos, atol=1e-12, err_msg=name)
            np.testing.assert_allclose(np.degrees(model.jnt_range[j]), degrees, err_msg=name)
            assert model.jnt_stiffness[j] == stiffness, name
            assert model.dof_damping[dof] == damping, name
            assert model.dof_armature[dof] == armature, name


def test_left_and_right_of_the_humanoid_differ_as_published():
    model = build_model(GAMES["YouShallNotPassHumans"].scene, PROFILES["v1"])

    def joint(name):
        found = model.joint(f"agent0/{name}")
        return float(np.degrees(found.range[0])), found.stiffness[0], found.armature[0]

    assert joint("right_knee") == pytest.approx((-160, 0, 0.006))
    assert joint("left_knee") == pytest.approx((-160, 1, 0.006))
    assert joint("right_hip_y") == pytest.approx((-110, 20, 0.008))
    assert joint("left_hip_y") == pytest.approx((-120, 20, 0.01))


def test_motors_in_action_order(game, model):
    motors, limit = TABLES[game][2:]
    assert model.nu == 2 * len(motors)
    for agent in range(2):
        for i, (joint, gear) in enumerate(motors):
            motor = agent * len(motors) + i
            assert model.joint(model.actuator_trnid[motor, 0]).name == f"agent{agent}/{joint}"
            np.testing.assert_array_equal(model.actuator_gear[motor], [gear, 0, 0, 0, 0, 0])
            assert model.actuator_ctrllimited[motor] == 1
            np.testing.assert_array_equal(model.actuator_ctrlrange[motor], [-limit, limit])


def test_both_agents_have_the_same_body(model):
    """Everything about the two players agrees, except where they stand."""
    first, second = agent_slices(model)
    for name in ("mass", "inertia", "ipos", "iquat"):
        values = getattr(model, f"body_{name}")
        np.testing.assert_array_equal(values[first.bodies], values[second.bodies])
    inner = [slice(s.bodies.start + 1, s.bodies.stop) for s in (first, second)]
    for name in ("pos", "quat"):
        values = getattr(model, f"body_{name}")
        np.testing.assert_array_equal(values[inner[0]], values[inner[1]])
    for name in ("damping", "armature", "frictionloss"):
        values = getattr(model, f"dof_{name}")
        np.testing.assert_array_equal(values[first.qvel], values[second.qvel])
    geoms = [
        [g for g in range(model.ngeom) if s.bodies.start <= model.geom_bodyid[g] < s.bodies.stop]
        for s in (first, second)
    ]
    assert len(geoms[0]) == len(geoms[1]) > 0
    for name in (
        *("type", "size", "pos", "quat", "friction", "condim", "margin", "solimp", "solref"),
        *("contype", "conaffinity"),
    ):
        values = getattr(model, f"geom_{name}")
        np.testing.assert_array_equal(values[geoms[0]], values[geoms[1]], err_msg=name)


@pytest.mark.parametrize(
    ("game_name", "condim", "friction", "margin", "count"),
    [
        ("RunToGoalAnts", 3, (1, 0.5, 0.5), 0.01, 13),
        ("RunToGoalHumans", 1, (1, 0.005, 0.0001), 0.001, 17),
    ],
)
def test_contact_parameters(game_name, condim, friction, margin, count):
    model = build_model(GAMES[game_name].scene, PROFILES["v0"])
    players = np.flatnonzero(model.geom_bodyid > 0)
    assert len(players) == 2 * count
    assert (model.geom_condim[players] == condim).all()
    assert (model.geom_margin[players] == margin).all()
    np.testing.assert_array_equal(model.geom_friction[players], np.tile(friction, (2 * count, 1)))
    assert (model.geom_contype[players] == 1).all() and (model.geom_conaffinity[players] == 1).all()


def test_worlds(game, model):
    sizes, step, x, height, turns = WORLDS[game]
    assert (model.nq, model.nv, model.nu) == sizes
    assert model.opt.timestep == step
    np.testing.assert_array_equal(model.opt.gravity, [0, 0, -9.81])
    first, second = agent_slices(model)
    for agent, side, turn in zip((first, second), (-x, x), turns, strict=True):
        np.testing.assert_allclose(model.qpos0[agent.qpos][:7], [side, 0, height, *turn], atol=1e-9)
    assert not model.qpos0[first.qpos][7:].any() and not model.qpos0[second.qpos][7:].any()
    for name, x in (("leftgoal", -4), ("rightgoal", 4)):
        line = model.geom(name)
        np.testing.assert_array_equal(line.pos, [x, 0, 0])
        np.testing.assert_array_equal(line.size[:2], [0.03, 5])
        assert line.contype[0] == line.conaffinity[0] == 1, "goal lines collide"
    np.testing.assert_array_equal(model.geom("floor").friction, [1, 0.1, 0.1])


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_sumo_platform(profile):
    for game in ("SumoAnts", "SumoHumans"):
        arena = build_model(GAMES[game].scene, PROFILES[profile]).geom("arena")
        np.testing.assert_array_equal(arena.size[:2], [4.5, 0.25])
        np.testing.assert_array_equal(arena.pos, [0, 0, 0.25])
        np.testing.assert_array_equal(arena.friction, [1, 0.1, 0.1])
        assert arena.condim[0] == 3 and arena.contype[0] == arena.conaffinity[0] == 1


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_ball(profile):
    model = build_model(GAMES["KickAndDefend"].scene, PROFILES[profile])
    np.testing.assert_array_equal(model.qpos0[:7], [0, 0, 0.2, 1, 0, 0, 0])
    assert model.geom("ball").size[0] == 0.15 and model.geom("ball").condim[0] == 3
    assert model.body("ball").mass[0] == 0.1
    np.testing.assert_allclose(model.body("ball").inertia, 3 * [0.0009])
    np.testing.assert_array_equal(model.dof_damping[:6], 6 * [0.001])
    np.testing.assert_array_equal(model.geom("ball").friction, [1, 0.005, 0.0001])


def test_descriptions_count_their_parts():
    assert (HUMANOID.num_bodies, HUMANOID.nq, HUMANOID.nv, HUMANOID.nu) == (13, 24, 23, 17)
    assert (ANT.num_bodies, ANT.nq, ANT.nv, ANT.nu) == (13, 15, 14, 8)
