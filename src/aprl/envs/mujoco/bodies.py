"""The two bodies of the games, a humanoid and an ant, as tables that build `mujoco.MjSpec` parts.

Lengths in metres, angles in degrees, masses in kilograms. The numbers are those of the published
games (Bansal et al., 2018).

Inertia follows MuJoCo 1.31, with which the published policies were trained: a capsule of radius `r`
whose cap centres are `L` apart counts as a solid cylinder of radius `r` and length `L + r`. With
the true capsule inertia of today's MuJoCo the published humanoids fall within 70 steps.
"""

import math
from dataclasses import dataclass, field

import mujoco
import numpy as np

Vec3 = tuple[float, float, float]
IDENTITY_QUAT = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Capsule:
    """A capsule between two cap centres; `end=None` makes it a sphere at `start`."""

    name: str
    radius: float
    start: Vec3
    end: Vec3 | None = None


@dataclass(frozen=True)
class Hinge:
    """A limited hinge joint; the axis is normalised when the model is built."""

    name: str
    axis: Vec3
    range: tuple[float, float]
    pos: Vec3 = (0.0, 0.0, 0.0)
    stiffness: float = 0.0
    damping: float = 1.0
    armature: float = 0.0


@dataclass(frozen=True)
class Limb:
    """A rigid body: pose relative to its parent, geoms, joints, children."""

    name: str
    pos: Vec3
    geoms: tuple[Capsule, ...]
    joints: tuple[Hinge, ...] = ()
    children: tuple["Limb", ...] = ()
    quat: tuple[float, float, float, float] = IDENTITY_QUAT


@dataclass(frozen=True)
class Body:
    """A whole player: kinematic tree (its root floats), contact parameters, motors."""

    root: Limb
    density: float
    condim: int
    friction: Vec3
    margin: float
    motors: tuple[tuple[str, float], ...]  # (joint, gear), in action order
    control_limit: float
    num_bodies: int = field(init=False)
    num_hinges: int = field(init=False)

    def __post_init__(self) -> None:
        limbs = list(_walk(self.root))
        object.__setattr__(self, "num_bodies", len(limbs))
        object.__setattr__(self, "num_hinges", sum(len(limb.joints) for limb in limbs))

    @property
    def nq(self) -> int:
        """Length of the player's qpos: free joint (7) and hinges."""
        return 7 + self.num_hinges

    @property
    def nv(self) -> int:
        """Length of the player's qvel: free joint (6) and hinges."""
        return 6 + self.num_hinges

    @property
    def nu(self) -> int:
        """Number of motors, the action dimension."""
        return len(self.motors)


def _walk(limb: Limb) -> list[Limb]:
    return [limb, *(found for child in limb.children for found in _walk(child))]


def cylinder_inertia(geom: Capsule, density: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass (kg), centre (m), 3x3 inertia about the centre (kg m^2), by MuJoCo 1.31's convention."""
    start = np.array(geom.start)
    if geom.end is None:
        mass = density * 4 / 3 * math.pi * geom.radius**3
        return mass, start, 0.4 * mass * geom.radius**2 * np.eye(3)
    end = np.array(geom.end)
    separation = float(np.linalg.norm(end - start))
    axis = (end - start) / separation
    length = separation + geom.radius
    mass = density * math.pi * geom.radius**2 * length
    axial = mass * geom.radius**2 / 2
    transverse = mass * (3 * geom.radius**2 + length**2) / 12
    along = np.outer(axis, axis)
    return mass, (start + end) / 2, axial * along + transverse * (np.eye(3) - along)


def limb_inertia(limb: Limb, density: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it, of all of a limb's geoms together."""
    parts = [cylinder_inertia(geom, density) for geom in limb.geoms]
    mass = sum(m for m, _, _ in parts)
    centre = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for m, c, about_own in parts:
        offset = c - centre
        inertia += about_own + m * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    return mass, centre, inertia


def body_spec(body: Body) -> mujoco.MjSpec:
    """Make a spec that holds one player at its root's origin, to be attached to a scene."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    _add_limb(spec.worldbody, body.root, body, is_root=True)
    for joint, gear in body.motors:
        actuator = spec.add_actuator(name=joint, target=joint)
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.gear[0] = gear
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.ctrlrange = (-body.control_limit, body.control_limit)
    return spec


def _add_limb(parent: mujoco.MjsBody, limb: Limb, body: Body, is_root: bool = False) -> None:
    part = parent.add_body(name=limb.name, pos=limb.pos, quat=limb.quat)
    if is_root:
        part.add_freejoint(name="root")
    for hinge in limb.joints:
        part.add_joint(
            name=hinge.name,
            type=mujoco.mjtJoint.mjJNT_HINGE,
            axis=np.array(hinge.axis) / np.linalg.norm(hinge.axis),
            pos=hinge.pos,
            limited=mujoco.mjtLimited.mjLIMITED_TRUE,
            range=np.radians(hinge.range),
            stiffness=[hinge.stiffness, 0.0, 0.0],
            damping=[hinge.damping, 0.0, 0.0],
            armature=hinge.armature,
        )
    for geom in limb.geoms:
        shape = part.add_geom(
            name=geom.name,
            condim=body.condim,
            friction=body.friction,
            margin=body.margin,
            density=body.density,
        )
        if geom.end is None:
            shape.type = mujoco.mjtGeom.mjGEOM_SPHERE
            shape.pos = geom.start
        else:
            shape.type = mujoco.mjtGeom.mjGEOM_CAPSULE
            shape.fromto = [*geom.start, *geom.end]
        shape.size[0] = geom.radius
    mass, centre, inertia = limb_inertia(limb, body.density)
    part.explicitinertial = True
    part.mass = mass
    part.ipos = centre
    part.fullinertia = [
        inertia[0, 0],
        inertia[1, 1],
        inertia[2, 2],
        inertia[0, 1],
        inertia[0, 2],
        inertia[1, 2],
    ]
    for child in limb.children:
        _add_limb(part, child, body)


def _leg(side: str) -> Limb:
    """One leg of the humanoid; the two sides differ in a few constants, as published."""
    right = side == "right"
    out = -1.0 if right else 1.0  # y of this side
    mirror = 1.0 if right else -1.0
    foot = Limb("foot", (0, 0, -0.45), (Capsule("foot", 0.075, (0, 0, 0.1)),))
    shin = Limb(
        "shin",
        (0, 0.01 * mirror, -0.403),
        (Capsule("shin1", 0.049, (0, 0, 0), (0, 0, -0.3)),),
        (
            Hinge(
                "knee",
                (0, -1, 0),
                (-160, -2),
                pos=(0, 0, 0.02),
                stiffness=0.0 if right else 1.0,
                armature=0.006,
            ),
        ),
        (_renamed(foot, side),),
    )
    thigh = Limb(
        "thigh",
        (0, 0.1 * out, -0.04),
        (Capsule("thigh1", 0.06, (0, 0, 0), (0, 0.01 * mirror, -0.34)),),
        (
            Hinge("hip_x", (mirror, 0, 0), (-25, 5), stiffness=10, damping=5, armature=0.01),
            Hinge("hip_z", (0, 0, mirror), (-60, 35), stiffness=10, damping=5, armature=0.01),
            Hinge(
                "hip_y",
                (0, 1, 0),
                (-110 if right else -120, 20),
                stiffness=20,
                damping=5,
                armature=0.008 if right else 0.01,
            ),
        ),
        (_renamed(shin, side),),
    )
    return _renamed(thigh, side)


def _arm(side: str) -> Limb:
    """One arm of the humanoid."""
    right = side == "right"
    y = -1.0 if right else 1.0
    shoulder_range = (-85, 60) if right else (-60, 85)
    lower = Limb(
        "lower_arm",
        (0.18, 0.18 * y, -0.18),
        (
            Capsule("larm", 0.031, (0.01, -0.01 * y, 0.01), (0.17, -0.17 * y, 0.17)),
            Capsule("hand", 0.04, (0.18, -0.18 * y, 0.18)),
        ),
        (Hinge("elbow", (0, -1, -y), (-90, 50), armature=0.0028),),
    )
    upper = Limb(
        "upper_arm",
        (0, 0.17 * y, 0.06),
        (Capsule("uarm1", 0.04, (0, 0, 0), (0.16, 0.16 * y, -0.16)),),
        (
            Hinge("shoulder1", (2, -y, 1), shoulder_range, stiffness=1, armature=0.0068),
            Hinge("shoulder2", (0, y, 1), shoulder_range, stiffness=1, armature=0.0051),
        ),
        (_renamed(lower, side),),
    )
    return _renamed(upper, side)


def _renamed(limb: Limb, prefix: str) -> Limb:
    """Prefix the names of a limb, its geoms and joints (not its children's) with `prefix_`."""
    return Limb(
        f"{prefix}_{limb.name}",
        limb.pos,
        tuple(Capsule(f"{prefix}_{g.name}", g.radius, g.start, g.end) for g in limb.geoms),
        tuple(
            Hinge(f"{prefix}_{j.name}", j.axis, j.range, j.pos, j.stiffness, j.damping, j.armature)
            for j in limb.joints
        ),
        limb.children,
        limb.quat,
    )


# The published file gives the tilt as a rounded, unnormalised quaternion; MuJoCo normalises it.
_WAIST_TILT = (1.0, 0.0, -0.002, 0.0)

HUMANOID = Body(
    root=Limb(
        "torso",
        (0, 0, 0),
        (
            Capsule("torso1", 0.07, (0, -0.07, 0), (0, 0.07, 0)),
            Capsule("head", 0.09, (0, 0, 0.19)),
            Capsule("uwaist", 0.06, (-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12)),
        ),
        children=(
            Limb(
                "lwaist",
                (-0.01, 0, -0.26),
                (Capsule("lwaist", 0.06, (0, -0.06, 0), (0, 0.06, 0)),),
                (
                    Hinge(
                        "abdomen_z",
                        (0, 0, 1),
                        (-45, 45),
                        pos=(0, 0, 0.065),
                        stiffness=20,
                        damping=5,
                        armature=0.02,
                    ),
                    Hinge(
                        "abdomen_y",
                        (0, 1, 0),
                        (-75, 30),
                        pos=(0, 0, 0.065),
                        stiffness=10,
                        damping=5,
                        armature=0.02,
                    ),
                ),
                (
                    Limb(
                        "pelvis",
                        (0, 0, -0.165),
                        (Capsule("butt", 0.09, (-0.02, -0.07, 0), (-0.02, 0.07, 0)),),
                        (
                            Hinge(
                                "abdomen_x",
                                (1, 0, 0),
                                (-35, 35),
                                pos=(0, 0, 0.1),
                                stiffness=10,
                                damping=5,
                                armature=0.02,
                            ),
                        ),
                        (_leg("right"), _leg("left")),
                        quat=_WAIST_TILT,
                    ),
                ),
                quat=_WAIST_TILT,
            ),
            _arm("right"),
            _arm("left"),
        ),
    ),
    density=1000.0,
    condim=1,
    friction=(1.0, 0.005, 0.0001),
    margin=0.001,
    motors=(
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
    ),
    control_limit=0.4,
)


def _ant_leg(number: int, names: tuple[str, str, str], x: float, y: float) -> Limb:
    """One leg of the ant.

    Args:
        number: suffix of its joints, 1 to 4.
        names: of the leg's body, its hip geom and its ankle geom, as published.
        x: sign of the leg's direction along x.
        y: sign of the leg's direction along y.
    """
    leg, hip_geom, ankle_geom = names
    ankle_range = (30, 70) if number in (1, 4) else (-70, -30)
    ankle_axis = (-1, 1, 0) if number in (1, 3) else (1, 1, 0)
    step = (0.2 * x, 0.2 * y, 0.0)
    ankle = Limb(
        f"ankle_{number}_body",
        step,
        (Capsule(ankle_geom, 0.08, (0, 0, 0), (0.4 * x, 0.4 * y, 0)),),
        (Hinge(f"ankle_{number}", ankle_axis, ankle_range, armature=1.0),),
    )
    hip = Limb(
        f"aux_{number}",
        step,
        (Capsule(hip_geom, 0.08, (0, 0, 0), step),),
        (Hinge(f"hip_{number}", (0, 0, 1), (-30, 30), armature=1.0),),
        (ankle,),
    )
    return Limb(leg, (0, 0, 0), (Capsule(f"aux_{number}_geom", 0.08, (0, 0, 0), step),), (), (hip,))


ANT = Body(
    root=Limb(
        "torso",
        (0, 0, 0),
        (Capsule("torso_geom", 0.25, (0, 0, 0)),),
        children=(
            _ant_leg(1, ("front_left_leg", "left_leg_geom", "left_ankle_geom"), 1, 1),
            _ant_leg(2, ("front_right_leg", "right_leg_geom", "right_ankle_geom"), -1, 1),
            _ant_leg(3, ("back_leg", "back_leg_geom", "third_ankle_geom"), -1, -1),
            _ant_leg(4, ("right_back_leg", "rightback_leg_geom", "fourth_ankle_geom"), 1, -1),
        ),
    ),
    density=5.0,
    condim=3,
    friction=(1.0, 0.5, 0.5),
    margin=0.01,
    motors=(
        ("hip_4", 150),
        ("ankle_4", 150),
        ("hip_1", 150),
        ("ankle_1", 150),
        ("hip_2", 150),
        ("ankle_2", 150),
        ("hip_3", 150),
        ("ankle_3", 150),
    ),
    control_limit=1.0,
)
