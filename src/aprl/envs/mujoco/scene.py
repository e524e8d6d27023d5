"""Scenes: two players, the world they play in, and the physics profile they obey."""

from dataclasses import dataclass

import mujoco
import numpy as np

from aprl.envs.mujoco.bodies import IDENTITY_QUAT, Body, body_spec

NUM_AGENTS = 2
GOAL_LINE = 4.0  # metres from the centre, along x
ARENA_HEIGHT = 0.5  # metres, the top of sumo's platform
MAX_ARENA_RADIUS = 4.5
BALL_RADIUS = 0.15
BALL_MASS = 0.1  # kilograms
YAW_180 = (0.0, 0.0, 0.0, 1.0)

# Of the parts of the world, in pictures.
_COLOURS = {
    "arena": (0.93, 0.87, 0.73, 1),
    "ball": (0.95, 0.75, 0.2, 1),
    "goalpost": (0.3, 0.3, 0.3, 0.3),
    "leftgoal": (0.3, 0.3, 0.3, 1),
    "rightgoal": (0.3, 0.3, 0.3, 1),
}

Pose = tuple[tuple[float, float, float], tuple[float, float, float, float]]


@dataclass(frozen=True)
class Contact:
    """How contacts give way, in MuJoCo's terms; the defaults are MuJoCo's own."""

    solref: tuple[float, float] = (0.02, 1.0)  # time constant (s), damping ratio
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)


HARD = Contact(solimp=(0.99, 0.99, 0.001, 0.5, 2.0))
SLOW = Contact(solref=(0.03, 1.0))


@dataclass(frozen=True)
class PhysicsProfile:
    """How the equations of motion are solved.

    Attributes:
        name: version of the games' ids.
        integrator: of one substep.
        solver: of the constraints.
        iterations: that the solver may take.
        fast: use the contacts that a scene has for it. The solver starts from the unconstrained
            accelerations then: trying the last ones too costs more than the iterations it saves
            (`benchmarks/physics_options.py`), and a step depends on positions and velocities alone.
    """

    name: str
    integrator: mujoco.mjtIntegrator
    solver: mujoco.mjtSolver
    iterations: int
    fast: bool


PROFILES = {
    # As published: fourth-order Runge-Kutta, projected Gauss-Seidel.
    "v0": PhysicsProfile(
        "v0", mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtSolver.mjSOL_PGS, 1000, fast=False
    ),
    # Same play within noise, about three times faster; a single force evaluation per substep.
    "v1": PhysicsProfile(
        "v1", mujoco.mjtIntegrator.mjINT_IMPLICITFAST, mujoco.mjtSolver.mjSOL_NEWTON, 100, fast=True
    ),
}


@dataclass(frozen=True)
class Scene:
    """What a game is played with.

    Attributes:
        body: description of both players.
        poses: per agent, the torso's position (m) and orientation at qpos0.
        timestep: of one physics substep, in seconds.
        arena: a round platform in the middle, `MAX_ARENA_RADIUS` wide until a game changes it, and
            a sensor `players` of contact between the two.
        fast_contact: contacts of the fast profile, chosen so that the published policies play as
            under the published physics.
        ball: a free ball, whose coordinates come first in qpos and qvel, and a sensor
            `keeper_ball` of contact between it and agent 1.
    """

    body: Body
    poses: tuple[Pose, Pose]
    timestep: float
    arena: bool = False
    ball: bool = False
    fast_contact: Contact = HARD


@dataclass(frozen=True)
class AgentSlices:
    """Where one player's entries lie in the model's arrays."""

    qpos: slice
    qvel: slice
    bodies: slice
    torso: int


def facing_poses(distance: float, height: float) -> tuple[Pose, Pose]:
    """Two players on the x axis, `distance` metres either side of the centre, face to face."""
    return ((-distance, 0.0, height), IDENTITY_QUAT), ((distance, 0.0, height), YAW_180)


def build_model(scene: Scene, profile: PhysicsProfile) -> mujoco.MjModel:
    """Compile a scene; see `build_spec`."""
    return build_spec(scene, profile).compile()


def add_visuals(spec: mujoco.MjSpec) -> None:
    """Light and colours, for pictures of the scene."""
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0, 0, 8],
        dir=[0.2, 0.3, -1],
        diffuse=[0.5, 0.5, 0.5],
        castshadow=True,
    )
    spec.visual.headlight.ambient = [0.35, 0.35, 0.35]
    spec.visual.headlight.diffuse = [0.35, 0.35, 0.35]
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.95, 0.97, 1.0],
        rgb2=[0.75, 0.83, 0.92],
        width=64,
        height=64,
    )
    spec.add_texture(
        name="checker",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.82, 0.84, 0.82],
        rgb2=[0.90, 0.92, 0.90],
        width=256,
        height=256,
    )
    checker = spec.add_material(name="checker", texrepeat=[1, 1], texuniform=True)
    checker.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "checker"
    spec.geom("floor").material = "checker"
    for name, colour in _COLOURS.items():
        geom = spec.geom(name)
        if geom is not None:
            geom.rgba = colour


def build_spec(scene: Scene, profile: PhysicsProfile) -> mujoco.MjSpec:
    """Describe a scene; bodies, joints and geoms of agent `i` are named `agent<i>/...`."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = scene.timestep
    spec.option.integrator = profile.integrator
    spec.option.solver = profile.solver
    spec.option.iterations = profile.iterations
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    _add_world(spec, scene)
    for agent, (pos, quat) in enumerate(scene.poses):
        frame = spec.worldbody.add_frame(pos=pos, quat=quat)
        player = body_spec(scene.body)
        frame.attach_body(player.body(scene.body.root.name), f"agent{agent}/", "")
        # One acceleration-stage sensor makes MuJoCo fill `cfrc_ext`, which players observe.
        spec.add_sensor(
            name=f"agent{agent}/acceleration",
            type=mujoco.mjtSensor.mjSENS_FRAMELINACC,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=f"agent{agent}/{scene.body.root.name}",
        )
    if profile.fast:
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
        for geom in spec.geoms:
            geom.solref, geom.solimp = scene.fast_contact.solref, scene.fast_contact.solimp
    torsos = [f"agent{agent}/{scene.body.root.name}" for agent in range(NUM_AGENTS)]
    if scene.arena:
        _add_contact_sensor(spec, "players", torsos[0], torsos[1])
    if scene.ball:
        _add_contact_sensor(spec, "keeper_ball", "ball", torsos[1])
    return spec


def _add_contact_sensor(spec: mujoco.MjSpec, name: str, first: str, second: str) -> None:
    """Report the number of contacts between two subtrees of bodies, and the least distance."""
    found, dist = mujoco.mjtConDataField.mjCONDATA_FOUND, mujoco.mjtConDataField.mjCONDATA_DIST
    nearest_first, contacts = 1, 1
    spec.add_sensor(
        name=name,
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_XBODY,
        objname=first,
        reftype=mujoco.mjtObj.mjOBJ_XBODY,
        refname=second,
        intprm=[(1 << int(found)) | (1 << int(dist)), nearest_first, contacts],
    )


def _add_world(spec: mujoco.MjSpec, scene: Scene) -> None:
    spec.worldbody.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[20, 20, 0.125],
        condim=3,
        friction=[1, 0.1, 0.1],
    )
    # The goal lines are thin cylinders lying on the floor, and they do collide.
    for name, x in (("rightgoal", GOAL_LINE), ("leftgoal", -GOAL_LINE)):
        spec.worldbody.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            pos=[x, 0, 0],
            quat=np.array([1.0, 1.0, 0.0, 0.0]) / np.sqrt(2),
            size=[0.03, 5, 0],
            condim=3,
        )
    if scene.arena:
        spec.worldbody.add_geom(
            name="arena",
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            pos=[0, 0, ARENA_HEIGHT / 2],
            size=[MAX_ARENA_RADIUS, ARENA_HEIGHT / 2, 0],
            condim=3,
            friction=[1, 0.1, 0.1],
        )
    if scene.ball:
        _add_ball(spec)
        spec.worldbody.add_geom(
            name="goalpost",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[GOAL_LINE + 0.05, 0, 0],
            size=[0.1, 3, 3],
            contype=0,
            conaffinity=0,
        )


def _add_ball(spec: mujoco.MjSpec) -> None:
    body = spec.worldbody.add_body(name="ball", pos=[0, 0, 0.2])
    body.add_joint(name="ball", type=mujoco.mjtJoint.mjJNT_FREE, damping=[0.001, 0, 0])
    body.add_geom(
        name="ball",
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[BALL_RADIUS, 0, 0],
        mass=BALL_MASS,
        condim=3,
    )


def agent_slices(model: mujoco.MjModel) -> tuple[AgentSlices, AgentSlices]:
    """Locate both players' entries in a compiled model, whatever else the scene holds."""
    found = []
    for agent in range(NUM_AGENTS):
        prefix = f"agent{agent}/"
        bodies = [i for i in range(model.nbody) if model.body(i).name.startswith(prefix)]
        joints = [i for i in range(model.njnt) if model.joint(i).name.startswith(prefix)]
        first, last = joints[0], joints[-1]
        found.append(
            AgentSlices(
                qpos=slice(int(model.jnt_qposadr[first]), int(model.jnt_qposadr[last]) + 1),
                qvel=slice(int(model.jnt_dofadr[first]), int(model.jnt_dofadr[last]) + 1),
                bodies=slice(bodies[0], bodies[-1] + 1),
                torso=bodies[0],
            )
        )
    return found[0], found[1]
