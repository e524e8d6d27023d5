"""The batch of simulations under a game: stepping, safe resets, state copies, stability checks."""

from collections.abc import Sequence

import mjbatch
import mujoco
import numpy as np

FRAME_SKIP = 5  # physics substeps per environment step

_SENSOR_OFF = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
_UNSTABLE_WARNINGS = slice(  # bad qpos, qvel, qacc and ctrl, which follow each other
    int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADCTRL) + 1
)


class BatchSimulation:
    """`num_envs` simulations of one model on a thread pool, with *fresh* derived quantities.

    Each step ends with a forward pass, so positions, contact forces and the like belong to the new
    state. `cfrc_ext` needs MuJoCo's sensor stage; it is switched off during the substeps, where it
    would cost an inverse-dynamics pass each, and on in the closing forward pass.

    Array attributes are live, `(num_envs, ...)` in `mujoco.MjData`'s layout: `qpos`, `qvel`,
    `ctrl`, `warmstart`, `subtree_com`, `xmat` in float64; `cinert`, `cvel`, `qfrc_actuator`,
    `cfrc_ext` in float32.
    """

    def __init__(self, model: mujoco.MjModel, num_envs: int, num_threads: int = 0) -> None:
        self.model = model
        self.num_envs = num_envs
        self._batch = mjbatch.Batch(model, num_envs, num_threads)
        bind = self._batch.bind
        self._state = bind("state")
        self._blank = self._state[0].copy()
        positions = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME)
        self._motion = slice(positions, positions + model.nq + model.nv)
        self.qpos, self.qvel, self.ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self.warmstart = bind("qacc_warmstart")
        self.subtree_com, self.xmat = bind("subtree_com"), bind("xmat")
        self.cinert, self.cvel = bind("cinert", np.float32), bind("cvel", np.float32)
        self.qfrc_actuator = bind("qfrc_actuator", np.float32)
        self.cfrc_ext = bind("cfrc_ext", np.float32)
        self._warning = bind("warning")
        self._sensors = bind("sensordata")
        sensors = [model.sensor(i) for i in range(model.nsensor)]
        self._sensor_columns = {sensor.name: int(sensor.adr[0]) for sensor in sensors}
        expand = self._batch.expand
        self._geoms = {name: expand(f"geom_{name}") for name in ("size", "rbound", "aabb")}
        self._disable = self._batch.expand("disableflags")
        self._flags = int(model.opt.disableflags)
        self._unstable = self._unstable_count()

    @property
    def num_threads(self) -> int:
        """Size of the thread pool."""
        return self._batch.num_threads

    @property
    def state_size(self) -> int:
        """Length of one row of `copy_state`."""
        return self._state.shape[1]

    def step(self, ctrl: np.ndarray) -> np.ndarray:
        """Hold `ctrl` `(num_envs, nu)` for `FRAME_SKIP` substeps, then run the forward pass.

        Returns:
            `(num_envs,)` bool: simulations that became unstable (NaN or huge values). MuJoCo resets
            such a simulation silently and only counts a warning, which is what is looked at here.
        """
        before = self._unstable
        self.ctrl[:] = ctrl
        self._disable[:] = self._flags | _SENSOR_OFF
        self._batch.step(nstep=FRAME_SKIP)
        self._disable[:] = self._flags
        self._batch.forward()
        self._unstable = self._unstable_count()
        return self._unstable != before

    def _unstable_count(self) -> np.ndarray:
        return self._warning[:, _UNSTABLE_WARNINGS, 1].sum(axis=1)

    def reset(self, env_ids: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Start simulations anew (time, warm start, control at zero) from a given state.

        Args:
            env_ids: sorted, unique indices `(k,)`.
            qpos: `(k, nq)`.
            qvel: `(k, nv)`.
        """
        broken = env_ids[self._unstable[env_ids] > 0]
        if len(broken):
            self._batch.reset(broken)  # clears the warnings, so that the next one is noticed
            self._unstable[broken] = 0
        rows = np.tile(self._blank, (len(env_ids), 1))
        rows[:, self._motion] = np.concatenate([qpos, qvel], axis=1)
        self.restore_state(env_ids, rows)

    def set_state(
        self,
        env_ids: np.ndarray,
        qpos: np.ndarray,
        qvel: np.ndarray,
        warmstart: np.ndarray | None = None,
    ) -> None:
        """Write positions, velocities and the solver's warm start (zero if None); run forward."""
        warm = np.zeros_like(qvel) if warmstart is None else warmstart
        self.qpos[env_ids], self.qvel[env_ids], self.warmstart[env_ids] = qpos, qvel, warm
        self._batch.forward(env_ids)
        self.warmstart[env_ids] = warm

    def touching(self, sensor: str) -> np.ndarray:
        """Whether the two parties of a contact sensor of the scene touch, `(num_envs,)` bool.

        A contact whose distance is not negative is only within the geoms' margin.
        """
        found = self._sensor_columns[sensor]
        return (self._sensors[:, found] > 0) & (self._sensors[:, found + 1] < 0)

    def set_cylinder_radius(
        self, geom: str, env_ids: np.ndarray | slice, radius: np.ndarray
    ) -> None:
        """Give an upright cylinder its own radius `(k,)`, in metres, in each simulation.

        The bounding sphere and box, by which far geoms are passed over, change with it.
        """
        index = self.model.geom(geom).id
        half_height = self.model.geom_size[index, 1]
        self._geoms["size"][env_ids, index, 0] = radius
        self._geoms["rbound"][env_ids, index] = np.hypot(radius, half_height)
        for axis in (3, 4):  # half sizes of the box follow its centre
            self._geoms["aabb"][env_ids, index, axis] = radius

    def copy_state(self, env_ids: np.ndarray | Sequence[int] | slice) -> np.ndarray:
        """Complete simulator states, `(k, nstate)` opaque float64 rows."""
        return self._state[env_ids].copy()

    def restore_state(self, env_ids: np.ndarray, rows: np.ndarray) -> None:
        """Put back rows made by `copy_state`, into the same or other simulations."""
        self._state[env_ids] = rows
        self._batch.forward(env_ids)
        self._state[env_ids] = rows  # the forward pass may move the warm start
