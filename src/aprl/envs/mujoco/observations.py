"""Blocks that the games' observations are made of."""

import numpy as np

from aprl.envs.mujoco.rules import Rows
from aprl.envs.mujoco.scene import AgentSlices
from aprl.envs.mujoco.simulation import BatchSimulation

ANT_SELF = 107  # qpos 15, qvel 14, contact forces 13 x 6
HUMANOID_SELF = 356  # qpos 24, qvel 23, cinert 13 x 10, cvel 13 x 6, motor forces 23, contacts
RING = 15  # what sumo adds: see `fill_ring`


class _Writer:
    """Writes blocks side by side into the columns of `out`."""

    def __init__(self, out: np.ndarray) -> None:
        self.out = out
        self.column = 0

    def add(self, block: np.ndarray) -> np.ndarray:
        flat = block.reshape(len(self.out), -1)
        columns = self.out[:, self.column : self.column + flat.shape[1]]
        columns[:] = flat
        self.column += flat.shape[1]
        return columns


def fill_ant(out: np.ndarray, sim: BatchSimulation, own: AgentSlices, rows: Rows) -> None:
    """An ant's view of itself: qpos 0:15, qvel 15:29, contact forces 29:107."""
    write = _Writer(out)
    write.add(sim.qpos[rows, own.qpos])
    write.add(sim.qvel[rows, own.qvel])
    _add_contact_forces(write, sim, own, rows)


def fill_humanoid(
    out: np.ndarray, sim: BatchSimulation, own: AgentSlices, rows: Rows, skip: int = 0
) -> None:
    """A humanoid's view of itself.

    qpos 0:24, qvel 24:47, cinert 47:177, cvel 177:255, motor forces 255:278, contact forces
    278:356; `skip` leaves out the first entries of qpos, and all others move up.
    """
    write = _Writer(out)
    write.add(sim.qpos[rows, own.qpos][:, skip:])
    write.add(sim.qvel[rows, own.qvel])
    write.add(sim.cinert[rows, own.bodies])
    write.add(sim.cvel[rows, own.bodies])
    write.add(sim.qfrc_actuator[rows, own.qvel])
    _add_contact_forces(write, sim, own, rows)


def _add_contact_forces(write: _Writer, sim: BatchSimulation, own: AgentSlices, rows: Rows) -> None:
    columns = write.add(sim.cfrc_ext[rows, own.bodies])
    np.clip(columns, -1.0, 1.0, out=columns)


def fill_ring(
    out: np.ndarray,
    sim: BatchSimulation,
    own: AgentSlices,
    opponent: np.ndarray,
    radius: np.ndarray,
    steps_left: np.ndarray,
    rows: Rows,
) -> None:
    """What a sumo wrestler sees of the ring.

    The opponent's xy less the own 0:2, the torso's rotation matrix, row by row, 2:11, the ring's
    radius 11, and how far inside it the own torso 12 and the opponent's 13 stand (metres), steps
    left 14.
    """
    own_xy = sim.qpos[rows, own.qpos][:, :2]
    out[:, 0:2] = opponent[:, :2] - own_xy
    out[:, 2:11] = sim.xmat[rows, own.torso]
    out[:, 11] = radius
    out[:, 12] = radius - np.hypot(own_xy[:, 0], own_xy[:, 1])
    out[:, 13] = radius - np.hypot(opponent[:, 0], opponent[:, 1])
    out[:, 14] = steps_left
