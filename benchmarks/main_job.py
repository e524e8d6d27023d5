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
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from measure import (
    BATCH,
    NUM_ENVS,
    THREADS,
    Stopwatch,
    bare_steps_per_second,
    batch_steps_per_second,
    stand_in_victim,
    subprocess_steps_per_second,
    training_steps_per_second,
)
from rich.console import Console
from rich.table import Table

from aprl.envs import make_vec

GAME = "multicomp/YouShallNotPassHumans"
TARGETS = {"v1": (0.9, 0.75, 3.5), "v0": (0.9, 0.85, 1.8)}


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
        victim = args.victim or stand_in_victim(f"{GAME}-v1", Path(folder) / "victim")
        console.print(f"victim: {args.victim or 'a stand-in with random weights'}")
        results = {}
        for version in args.versions:
            results[version] = measure(version, victim, args)
            report(version, results[version], console)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
