"""Scenes: two players, the world they play in, and the physics profile they obey."""

from dataclasses import dataclass

import mujoco
import numpy as np

from aprl.envs.mujoco.bodies import IDENTITY_QUAT, Body, build_spec

NUM_AGENTS = 2
GOAL_LINE = 4.0  # metres from the centre, along x
YAW_180 = (0.0, 0.0, 0.0, 1.0)

Pose = tuple[tuple[float, float, float], tuple[float, float, float, float]]


@dataclass(frozen=True)
class PhysicsProfile:
    """How the equations of motion are solved; `geom_solimp=None` is MuJoCo's default impedance."""

    name: str
    integrator: mujoco.mjtIntegrator
    solver: mujoco.mjtSolver
    iterations: int
    geom_solimp: tuple[float, float, float, float, float] | None = None


PROFILES = {
    # As published: fourth-order Runge-Kutta, projected Gauss-Seidel.
    "v0": PhysicsProfile(
        "v0", mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtSolver.mjSOL_PGS, iterations=1000
    ),
    # Same play within noise, 3-4 times faster; harder contacts make up for the single force
    # evaluation per substep.
    "v1": PhysicsProfile(
        "v1",
        mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
        mujoco.mjtSolver.mjSOL_NEWTON,
        iterations=100,
        geom_solimp=(0.99, 0.99, 0.001, 0.5, 2.0),
    ),
}


@dataclass(frozen=True)
class Scene:
    """What a game is played with.

    Attributes:
        body: description of both players.
        poses: per agent, the torso's position (m) and orientation at qpos0.
        timestep: of one physics substep, in seconds.
    """

    body: Body
    poses: tuple[Pose, Pose]
    timestep: float


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
    """Compile a scene; bodies, joints and geoms of agent `i` are named `agent<i>/...`."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = scene.timestep
    spec.option.integrator = profile.integrator
    spec.option.solver = profile.solver
    spec.option.iterations = profile.iterations
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    _add_world(spec, profile)
    for agent, (pos, quat) in enumerate(scene.poses):
        frame = spec.worldbody.add_frame(pos=pos, quat=quat)
        player = build_spec(scene.body, profile.geom_solimp)
        frame.attach_body(player.body(scene.body.root.name), f"agent{agent}/", "")
        # One acceleration-stage sensor makes MuJoCo fill `cfrc_ext`, which players observe.
        spec.add_sensor(
            name=f"agent{agent}/acceleration",
            type=mujoco.mjtSensor.mjSENS_FRAMELINACC,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=f"agent{agent}/{scene.body.root.name}",
        )
    return spec.compile()


def _add_world(spec: mujoco.MjSpec, profile: PhysicsProfile) -> None:
    floor = spec.worldbody.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[20, 20, 0.125],
        condim=3,
        friction=[1, 0.1, 0.1],
    )
    geoms = [floor]
    # The goal lines are thin cylinders lying on the floor, and they do collide.
    for name, x in (("rightgoal", GOAL_LINE), ("leftgoal", -GOAL_LINE)):
        line = spec.worldbody.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            pos=[x, 0, 0],
            quat=np.array([1.0, 1.0, 0.0, 0.0]) / np.sqrt(2),
            size=[0.03, 5, 0],
            condim=3,
        )
        geoms.append(line)
    if profile.geom_solimp is not None:
        for geom in geoms:
            geom.solimp = profile.geom_solimp


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
