"""What an `mj_step` costs in every game, and what other solver settings would save.

States are taken from games of published policies; each is stepped once with each setting. Per
setting: the least time, the median of the times relative to the shipped `-v1`, and how far its
accelerations end up from those of the shipped settings, relative to their size (median and largest
over states). A setting is equivalent when that difference stays at rounding. Run it on a quiet
machine: `python benchmarks/physics_options.py --zoo data/agent_zoo`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import mujoco
import numpy as np
from measure import median_ratio
from rich.console import Console
from rich.table import Table

from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES, MujocoGame
from aprl.envs.mujoco.scene import PROFILES, build_model
from aprl.policies import load_policy

ENVS, STEPS, EVERY = 16, 120, 10
SUBSTEPS = 5


class State(NamedTuple):
    """What one simulation step starts from."""

    qpos: np.ndarray
    qvel: np.ndarray
    warmstart: np.ndarray
    ctrl: np.ndarray


def states_from_play(game: str, tag: str, zoo_dir: str) -> list[State]:
    """States met by published policies, every `EVERY` steps of `ENVS` games."""
    env_id = f"multicomp/{game}-v1"
    venv = make_vec(env_id, ENVS, seed=0, num_threads=1)
    assert isinstance(venv, MujocoGame)
    policies = [
        load_policy(
            "zoo",
            tag,
            observation_space=venv.observation_spaces[i],
            action_space=venv.action_spaces[i],
            env_name=env_id,
            index=i,
            zoo_dir=zoo_dir,
        )
        for i in range(2)
    ]
    obs, memories, starts = venv.reset(), [None, None], np.ones(ENVS, bool)
    found = []
    for step in range(STEPS):
        actions = []
        for i, policy in enumerate(policies):
            action, memories[i] = policy.predict(obs[i], memories[i], starts)
            actions.append(action)
        if step % EVERY == EVERY // 2:
            ctrl = np.concatenate(actions, axis=1)
            rows = zip(venv.sim.qpos, venv.sim.qvel, venv.sim.warmstart, ctrl, strict=True)
            found += [State(*(np.array(part) for part in row)) for row in rows]
        obs, _, starts, _ = venv.step(actions)
    return found


def settings() -> Iterator[tuple[str, Callable[[mujoco.MjModel], None]]]:
    """Changes to the shipped `-v1` model."""

    def option(**values: float) -> Callable[[mujoco.MjModel], None]:
        def apply(model: mujoco.MjModel) -> None:
            for name, value in values.items():
                setattr(model.opt, name, value)

        return apply

    def disable(flag: mujoco.mjtDisableBit) -> Callable[[mujoco.MjModel], None]:
        def apply(model: mujoco.MjModel) -> None:
            model.opt.disableflags |= int(flag)

        return apply

    def enable(flag: mujoco.mjtDisableBit) -> Callable[[mujoco.MjModel], None]:
        def apply(model: mujoco.MjModel) -> None:
            model.opt.disableflags &= ~int(flag)

        return apply

    yield "shipped", lambda model: None
    yield "tolerance 1e-6", option(tolerance=1e-6)
    yield "tolerance 1e-4", option(tolerance=1e-4)
    yield "at most 2 iterations", option(iterations=2)
    yield "at most 10 line-search steps", option(ls_iterations=10)
    yield "dense Jacobian", option(jacobian=int(mujoco.mjtJacobian.mjJAC_DENSE))
    yield "sparse Jacobian", option(jacobian=int(mujoco.mjtJacobian.mjJAC_SPARSE))
    yield "conjugate gradients", option(solver=int(mujoco.mjtSolver.mjSOL_CG))
    yield "Euler", option(integrator=int(mujoco.mjtIntegrator.mjINT_EULER))
    yield "no islands", disable(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    yield "warm start", enable(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    yield "no midphase", disable(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    yield "no sensors", disable(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    yield "no contacts", disable(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    yield "no constraints at all", disable(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)


def run(model: mujoco.MjModel, states: list[State]) -> tuple[float, np.ndarray]:
    """Processor seconds per `mj_step`, and velocities `(states, nv)` after one step from each."""
    data = mujoco.MjData(model)
    velocities, spent = np.empty((len(states), model.nv)), 0.0
    for row, state in enumerate(states):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = state.qpos, state.qvel
        data.qacc_warmstart[:], data.ctrl[:] = state.warmstart, state.ctrl
        start = time.process_time()
        mujoco.mj_step(model, data)
        velocities[row] = data.qvel
        mujoco.mj_step(model, data, SUBSTEPS - 1)
        spent += time.process_time() - start
    return spent / (SUBSTEPS * len(states)), velocities


def measure(game: str, tag: str, zoo_dir: str, repeats: int) -> Table:
    """One game's table."""
    states = states_from_play(game, tag, zoo_dir)
    scene = GAMES[game].scene
    models = {"-v0": build_model(scene, PROFILES["v0"])}
    for name, change in settings():
        models[name] = build_model(scene, PROFILES["v1"])
        change(models[name])
    rounds = [{n: run(model, states)[0] for n, model in models.items()} for _ in range(repeats)]
    shipped = run(models["shipped"], states)[1]
    before = np.stack([state.qvel for state in states])
    change_size = np.linalg.norm(shipped - before, axis=1)
    table = Table(title=f"{game}, zoo {tag}, {len(states)} states")
    for column in ("setting", "us per mj_step", "/ shipped", "median deviation", "largest"):
        table.add_column(column)
    for name, model in models.items():
        deviation = np.linalg.norm(run(model, states)[1] - shipped, axis=1) / change_size
        table.add_row(
            name,
            f"{1e6 * min(spent[name] for spent in rounds):.1f}",
            f"{median_ratio(rounds, name, 'shipped'):.2f}",
            f"{np.median(deviation):.1e}",
            f"{deviation.max():.1e}",
        )
    return table


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [game for game in GAMES if not game.endswith("AutoContact")]
    parser.add_argument("--games", nargs="+", choices=known, default=known)
    parser.add_argument("--tag", default="1", help="of the published policies that play")
    parser.add_argument("--zoo", default="data/agent_zoo", help="imported published policies")
    parser.add_argument("--repeats", type=int, default=15, help="rounds of all settings in turn")
    args = parser.parse_args()
    for game in args.games:
        Console().print(measure(game, args.tag, args.zoo, args.repeats))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
