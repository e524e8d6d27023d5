"""How fast every game is, in both physics, against bare MuJoCo and against the usual ways.

Per game, all in one run on one machine, with two threads and 64 environments:

* stepping: `make_vec` with given random actions / bare `mj_step` (5 substeps, 2 Python threads);
* `-v1` / `-v0`: steps per second of the two physics, with random actions and, with `--zoo`, in
  games between published policies;
* SubprocVecEnv, AsyncVectorEnv: stepping of `aprl/Attack-v0` with a victim that does nothing, one
  batch / in 2 processes of single environments (SB3's and Gymnasium's way);
* training: complete PPO against a victim of the published size, MLP and LSTM / bare `mj_step`, and
  / the same training on SB3's `SubprocVecEnv` (`-v1`; with `--train`).

Then how stepping scales with environments and threads. Run it on a quiet machine:
`python benchmarks/engine.py --json engine.json`.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from measure import (
    NUM_ENVS,
    THREADS,
    BareSteps,
    BatchSteps,
    PlayedSteps,
    Stopwatch,
    median_ratio,
    random_actions,
    stand_in_victim,
    subprocess_steps_per_second,
    take_turns,
    training_rounds,
)
from rich.console import Console
from rich.table import Table
from stable_baselines3.common.vec_env import SubprocVecEnv

import aprl  # noqa: F401 - registers aprl/Attack-v0
from aprl.attack_env import AttackEnv, AttackVectorEnv
from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES
from aprl.policies.store import load_saved
from aprl.policies.zoo import ZOO_GAMES

PROCESSES = 2
SCALING_GAME = "multicomp/YouShallNotPassHumans-v1"
ATTACK_SECONDS = 3.0


def attack_rates(env_id: str, seconds: float) -> dict[str, float]:
    """Steps per second of the attack on a still victim, as a batch and in processes."""
    torch.set_num_threads(1)
    options = {"game": env_id, "victim_type": "zero"}
    batch = AttackVectorEnv(NUM_ENVS, **options, num_threads=THREADS)
    rates = {"batch": _gymnasium_rate(batch, seconds)}
    makers = [partial(AttackEnv, **options) for _ in range(PROCESSES)]
    pool = gymnasium.vector.AsyncVectorEnv(makers, context="forkserver")
    rates["AsyncVectorEnv"] = _gymnasium_rate(pool, seconds)
    sb3 = SubprocVecEnv(makers, start_method="forkserver")
    sb3.reset()
    high = sb3.action_space.high  # type: ignore[attr-defined]
    actions = np.random.default_rng(0).uniform(-high, high, (64, PROCESSES, len(high)))
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        sb3.step(actions[steps % 64])
        steps += 1
    rates["SubprocVecEnv"] = steps * PROCESSES / (time.perf_counter() - begin)
    sb3.close()
    return rates


def _gymnasium_rate(env: gymnasium.vector.VectorEnv, seconds: float) -> float:
    env.reset(seed=0)
    high = env.single_action_space.high  # type: ignore[attr-defined]
    shape = (64, env.num_envs, len(high))
    actions = np.random.default_rng(0).uniform(-high, high, shape).astype(np.float32)
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        env.step(actions[steps % 64])
        steps += 1
    rate = steps * env.num_envs / (time.perf_counter() - begin)
    env.close()
    return rate


def split(env_id: str, seconds: float, victim: Path) -> dict[str, float]:
    """Microseconds per environment step by part, both sides played by networks."""
    venv: Any = make_vec(env_id, NUM_ENVS, num_threads=THREADS)
    watch = Stopwatch()
    watch.watch("physics", venv.sim, "step")
    watch.watch("observation", venv.rules, "observe")
    watch.watch("rules", venv.rules, "judge")
    watch.watch("resets", venv, "_begin")
    policy: Any = load_saved(victim)
    watch.watch("policy", policy, "predict")
    actions = random_actions(venv, NUM_ENVS)
    obs, state, steps = venv.reset(), None, 0
    watch.seconds.clear()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        action, state = policy.predict(obs[0], state)
        obs, *_ = venv.step([action, actions[steps % 64, 1]])
        steps += 1
    total = time.perf_counter() - begin
    scale = 1e6 / (steps * NUM_ENVS)
    parts = {name: value * scale for name, value in watch.seconds.items()}
    return parts | {"total": total * scale}


def measure(game: str, args: argparse.Namespace) -> dict[str, Any]:
    """All figures of one game."""
    ids = {version: f"multicomp/{game}-{version}" for version in ("v0", "v1")}
    sources: dict[str, BareSteps | BatchSteps] = {}
    for version, env_id in ids.items():
        sources[f"{version} bare"] = BareSteps(make_vec(env_id, 1).model)  # type: ignore[attr-defined]
        sources[f"{version} stepping"] = BatchSteps(env_id)
    rounds = take_turns(sources, args)
    result: dict[str, Any] = {
        "rounds": rounds,
        "v1 / v0": median_ratio(rounds, "v1 stepping", "v0 stepping"),
    }
    if args.zoo is not None:
        played = take_turns({v: PlayedSteps(i, args.zoo) for v, i in ids.items()}, args)
        result["played"] = played
        result["v1 / v0 played"] = median_ratio(played, "v1", "v0")
    recurrent = ZOO_GAMES[game].recurrent
    with tempfile.TemporaryDirectory() as folder:
        for version, env_id in ids.items():
            victim = stand_in_victim(env_id, Path(folder) / version, recurrent)
            result[version] = {
                "stepping / bare": median_ratio(rounds, f"{version} stepping", f"{version} bare"),
                "attack": attack_rates(env_id, ATTACK_SECONDS),
                "split_us": split(env_id, ATTACK_SECONDS, victim),
            }
        if args.train:
            result["training"] = training(ids["v1"], Path(folder), args)
    return result


def training(env_id: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Ratios of complete training to bare stepping and to training in processes."""
    torch.set_num_threads(THREADS)
    figures: dict[str, Any] = {}
    for kind, recurrent in (("MLP", False), ("LSTM", True)):
        victim = stand_in_victim(env_id, folder / f"train-{kind}", recurrent)
        rounds = training_rounds(env_id, victim, args.updates, args.seconds)
        figures[f"{kind} / bare"] = median_ratio(rounds, "training", "bare")
        rival = max(subprocess_steps_per_second(env_id, victim, n, 1) for n in args.processes)
        rounds += training_rounds(env_id, victim, 1, args.seconds)  # the rival's turn is long
        rate = statistics.median(rates["training"] for rates in rounds)
        figures[f"{kind} / subprocess"] = rate / rival
        figures[f"{kind} rounds"] = rounds
    return figures


def scaling(seconds: float) -> dict[str, dict[int, float]]:
    """Steps per second of one game by environments (2 threads) and by threads (64 envs)."""
    return {
        "environments": {
            n: BatchSteps(SCALING_GAME, num_envs=n).rate(seconds)
            for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)
        },
        "threads": {
            n: BatchSteps(SCALING_GAME, num_threads=n).rate(seconds)
            for n in range(1, (os.cpu_count() or 1) + 1)
        },
    }


def report(results: dict[str, Any], console: Console) -> None:
    """Print the table."""
    table = Table(title=f"{NUM_ENVS} environments, {THREADS} threads; ratios of steps per second")
    for column in ("game", "", "/ bare", "v1 / v0", "/ Subproc", "/ Async", "us: physics", "rest"):
        table.add_column(column)
    for game, result in results.items():
        for version in ("v0", "v1"):
            row, attack = result[version], result[version]["attack"]
            us = row["split_us"]
            table.add_row(
                game if version == "v0" else "",
                version,
                f"{row['stepping / bare']:.2f}",
                f"{result['v1 / v0']:.2f}" if version == "v1" else "",
                f"{attack['batch'] / attack['SubprocVecEnv']:.1f}",
                f"{attack['batch'] / attack['AsyncVectorEnv']:.1f}",
                f"{us['physics']:.0f}",
                f"{us['total'] - us['physics']:.0f}",
            )
    console.print(table)
    for game, result in results.items():
        if "v1 / v0 played" in result:
            console.print(f"{game}, played by zoo policies: v1 / v0 {result['v1 / v0 played']:.2f}")
        if "training" in result:
            ratios = ", ".join(
                f"{name} {value:.2f}"
                for name, value in result["training"].items()
                if isinstance(value, float)
            )
            console.print(f"training {game}-v1: {ratios}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [game for game in GAMES if not game.endswith("AutoContact")]
    parser.add_argument("--games", nargs="+", choices=known, default=known)
    parser.add_argument("--seconds", type=float, default=0.7, help="of each turn")
    parser.add_argument("--repeats", type=int, default=15, help="rounds of turns")
    parser.add_argument("--zoo", help="imported published policies, to compare physics in play")
    parser.add_argument("--train", action="store_true", help="also complete PPO training (slow)")
    parser.add_argument("--updates", type=int, default=2, help="PPO updates per measurement")
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 8])
    parser.add_argument("--no-scaling", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args()
    console = Console()
    results = {game: measure(game, args) for game in args.games}
    report(results, console)
    figures: dict[str, Any] = {"games": results}
    if not args.no_scaling:
        figures["scaling"] = scaling(ATTACK_SECONDS)
        for what, rates in figures["scaling"].items():
            base = next(iter(rates.values()))
            text = ", ".join(f"{n}: {rate / base:.2f}" for n, rate in rates.items())
            console.print(f"{SCALING_GAME}, speed by {what}, relative to the first: {text}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
