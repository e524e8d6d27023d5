"""How fast the main job is, against bare physics and against what a user would write instead.

All ratios come from one run on one machine, on You Shall Not Pass, with two threads:

* stepping: `make_vec` with given actions / bare `mj_step` (5 substeps, 2 Python threads);
* training: complete PPO with a stochastic victim and the paper's hyperparameters / bare `mj_step`;
* the same training on SB3's `SubprocVecEnv` over single environments, better of 2 and 8 processes.

Run it on a quiet machine: `make bench`. Parts are measured in turn, `--repeats` times, and the
median of the ratios counts.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import stable_baselines3
import torch
from rich.console import Console
from rich.table import Table
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from aprl.envs import make_vec
from aprl.envs.mujoco.engine import RESET_NOISE
from aprl.envs.mujoco.simulation import FRAME_SKIP
from aprl.policies import ActorCriticMlp, MlpPolicy, save_policy
from aprl.policies.store import load_saved
from aprl.training.config import TrainConfig
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.run import start_run

NUM_ENVS = 64
THREADS = 2
BATCH = 16384
GAME = "multicomp/YouShallNotPassHumans"
WALKER, BLOCKER = 1, 0
TARGETS = {"v1": (0.9, 0.75, 3.5), "v0": (0.9, 0.85, 1.8)}
EPISODE = 150  # steps between resets of the bare simulations, about a game's length


def bare_steps_per_second(model: mujoco.MjModel, seconds: float) -> float:
    """Environment steps per second of `mj_step` alone, in Python threads that own their data."""
    counts = [0] * THREADS

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        data = mujoco.MjData(model)
        end = time.perf_counter() + seconds
        steps = 0
        while time.perf_counter() < end:
            if steps % EPISODE == 0:
                mujoco.mj_resetData(model, data)
                data.qpos[:] += rng.uniform(-RESET_NOISE, RESET_NOISE, model.nq)
                data.qvel[:] = RESET_NOISE * rng.standard_normal(model.nv)
            data.ctrl[:] = rng.uniform(-0.4, 0.4, model.nu)
            mujoco.mj_step(model, data, nstep=FRAME_SKIP)
            steps += 1
        counts[thread] = steps

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def batch_steps_per_second(env_id: str, seconds: float) -> float:
    """Environment steps per second of the batched game with given random actions."""
    venv = make_vec(env_id, NUM_ENVS, num_threads=THREADS)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.4, 0.4, (64, 2, NUM_ENVS, 17)).astype(np.float32)
    venv.reset()
    for t in range(EPISODE):
        venv.step(list(actions[t % 64]))
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        venv.step(list(actions[steps % 64]))
        steps += 1
    return steps * NUM_ENVS / (time.perf_counter() - begin)


class Stopwatch:
    """Seconds spent in chosen methods of chosen objects."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def watch(self, label: str, owner: object, method: str) -> None:
        """Replace `owner.method` by itself with the time taken under `label`."""
        inner: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds[label] += time.perf_counter() - begin

        setattr(owner, method, timed)


def training_steps_per_second(
    env_id: str, victim: Path, updates: int, watch: Stopwatch | None = None
) -> float:
    """Environment steps per second of `aprl`'s complete training, after one update of warm-up."""
    with tempfile.TemporaryDirectory() as root:
        config = TrainConfig(
            root_dir=root,
            env_name=env_id,
            embed_type="ppo",
            embed_path=str(victim),
            num_env=NUM_ENVS,
            num_threads=THREADS,
            batch_size=BATCH,
            total_timesteps=BATCH * (updates + 1),
            checkpoint_interval=BATCH * 1000,
            rew_shape_params={"anneal_frac": 0.0},
            progress=False,
        )
        run = start_run(config)
        began: list[float] = []
        finish_update = run.learner.train

        def update() -> None:
            finish_update()
            if not began:
                began.append(time.perf_counter())
                if watch is not None:
                    watch.seconds.clear()

        if watch is not None:
            game: Any = run.game.unwrapped
            watch.watch("physics", game.sim, "step")
            watch.watch("observations", game.rules, "observe")
            watch.watch("rewards and winners", game.rules, "judge")
            watch.watch("resets", game, "_begin")
            player: Any = run.game
            watch.watch("victim", player._player, "act")
            normaliser: Any = run.normaliser
            for method in ("_update_obs", "normalize_obs", "_update_reward", "normalize_reward"):
                watch.watch("normaliser", normaliser, method)
            watch.watch("policy", run.learner, "_values_and_mean")
            watch.watch("update", run.learner, "train")
            finish_update = run.learner.train
        run.learner.train = update  # type: ignore[method-assign]
        run.train()
        return BATCH * updates / (time.perf_counter() - began[0])


class SingleAttack(gymnasium.Env):
    """One blocker's game against the walker: the environment a user would write by hand."""

    def __init__(self, env_id: str, victim: Path, seed: int) -> None:
        torch.set_num_threads(1)
        game = make_vec(env_id, 1, seed, num_threads=1)
        self._env = FlattenSingletonVecEnv(
            CurryVecEnv(game, load_saved(victim, seed), WALKER), BLOCKER
        )
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Begin an episode."""
        return self._env.reset()[0], {}

    def step(self, action: np.ndarray) -> tuple:
        """Play one step."""
        obs, _, dones, infos = self._env.step(action[None])
        reward = 0.01 * self._env.terms()["reward_remaining"][0]
        if dones[0]:  # the batch has already begun the next episode; hand out the last observation
            obs = infos[0].pop("terminal_observation")[None]
        return obs[0], float(reward), bool(dones[0]), False, {}


def subprocess_steps_per_second(env_id: str, victim: Path, processes: int, updates: int) -> float:
    """The same training on stock SB3: PPO, VecNormalize, SubprocVecEnv of single environments."""
    makers = [partial(SingleAttack, env_id, victim, i) for i in range(processes)]
    venv = VecNormalize(SubprocVecEnv(makers, start_method="forkserver"))
    torch.set_num_threads(THREADS)
    learner = stable_baselines3.PPO(
        "MlpPolicy",
        venv,
        n_steps=BATCH // processes,
        batch_size=BATCH // 4,
        n_epochs=4,
        clip_range_vf=0.2,
        device="cpu",
        seed=0,
    )
    begin = time.perf_counter()
    learner.learn(BATCH * updates)
    rate = BATCH * updates / (time.perf_counter() - begin)
    venv.close()
    return rate


def stand_in_victim(directory: Path) -> Path:
    """A walker of the published network's size with arbitrary weights: speed does not care."""
    torch.manual_seed(0)
    game = make_vec(f"{GAME}-v1", 1)
    network = ActorCriticMlp(380, 17)
    policy = MlpPolicy(network, game.observation_spaces[WALKER], game.action_spaces[WALKER])
    return save_policy(policy, directory, {"note": "random weights, for benchmarks"})


def measure(version: str, victim: Path, args: argparse.Namespace) -> dict[str, Any]:
    env_id = f"{GAME}-{version}"
    model = make_vec(env_id, 1).model  # type: ignore[attr-defined]
    rounds = []
    for _ in range(args.repeats):
        bare = bare_steps_per_second(model, args.seconds)
        batch = batch_steps_per_second(env_id, args.seconds)
        train = training_steps_per_second(env_id, victim, args.updates)
        bare = (bare + bare_steps_per_second(model, args.seconds)) / 2
        rounds.append({"bare": bare, "stepping": batch, "training": train})
    subprocess_rates = {
        n: subprocess_steps_per_second(env_id, victim, n, updates=1) for n in args.processes
    }
    watch = Stopwatch()
    traced = training_steps_per_second(env_id, victim, args.updates, watch)
    median = statistics.median
    train = median(r["training"] for r in rounds)
    return {
        "rounds": rounds,
        "subprocess": subprocess_rates,
        "stepping / bare": median(r["stepping"] / r["bare"] for r in rounds),
        "training / bare": median(r["training"] / r["bare"] for r in rounds),
        "training / subprocess": train / max(subprocess_rates.values()),
        "breakdown_us": _breakdown(watch, traced, args.updates),
    }


def _breakdown(watch: Stopwatch, rate: float, updates: int) -> dict[str, float]:
    """Microseconds per environment step."""
    parts = {k: 1e6 * v / (BATCH * updates) for k, v in watch.seconds.items()}
    total = 1e6 / rate
    return {**parts, "other": total - sum(parts.values()), "total": total}


def report(version: str, result: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{GAME}-{version}, {NUM_ENVS} environments, {THREADS} threads")
    for column in ("ratio", "measured", "wanted"):
        table.add_column(column)
    names = ("stepping / bare", "training / bare", "training / subprocess")
    for name, wanted in zip(names, TARGETS[version], strict=True):
        table.add_row(name, f"{result[name]:.2f}", f">= {wanted}")
    console.print(table)
    for index, rates in enumerate(result["rounds"]):
        console.print(f"round {index}: " + ", ".join(f"{k} {v:,.0f}/s" for k, v in rates.items()))
    rates = ", ".join(f"{n} processes {v:,.0f}/s" for n, v in result["subprocess"].items())
    console.print(f"SubprocVecEnv: {rates}")
    parts = result["breakdown_us"]
    console.print("per step, us: " + ", ".join(f"{k} {v:.1f}" for k, v in parts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", nargs="+", choices=sorted(TARGETS), default=["v1", "v0"])
    parser.add_argument("--victim", type=Path, help="policy directory; default: random weights")
    parser.add_argument("--seconds", type=float, default=6.0, help="per stepping measurement")
    parser.add_argument("--updates", type=int, default=3, help="PPO updates per measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 8])
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args()
    console = Console()
    torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as folder:
        victim = args.victim or stand_in_victim(Path(folder) / "victim")
        console.print(f"victim: {args.victim or 'a stand-in with random weights'}")
        results = {}
        for version in args.versions:
            results[version] = measure(version, victim, args)
            report(version, results[version], console)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
