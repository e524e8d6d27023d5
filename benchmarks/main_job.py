"""How fast the main job is, against bare physics and against what a user would write instead.

All ratios come from one run on one machine, on You Shall Not Pass, with two threads:

* stepping: `make_vec` with given actions / bare `mj_step` (5 substeps, 2 Python threads);
* training: complete PPO with a stochastic victim and the paper's hyperparameters / bare `mj_step`;
* the same training on SB3's `SubprocVecEnv` over single environments, better of 2 and 8 processes.

Run it on a quiet machine: `make bench`. What is compared takes turns of about a second, and the
median of the ratios of neighbouring turns counts.
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
    BareSteps,
    BatchSteps,
    Stopwatch,
    median_ratio,
    stand_in_victim,
    subprocess_steps_per_second,
    take_turns,
    training_rounds,
)
from rich.console import Console
from rich.table import Table

from aprl.envs import make_vec

GAME = "multicomp/YouShallNotPassHumans"
TARGETS = {"v1": (0.9, 0.75, 3.5), "v0": (0.9, 0.85, 1.8)}


def measure(version: str, victim: Path, args: argparse.Namespace) -> dict[str, Any]:
    env_id = f"{GAME}-{version}"
    bare = BareSteps(make_vec(env_id, 1).model)  # type: ignore[attr-defined]
    stepping = take_turns({"bare": bare, "stepping": BatchSteps(env_id)}, args)
    watch = Stopwatch()
    training = training_rounds(env_id, victim, args.updates, args.seconds, watch)
    subprocess_rates = {
        n: subprocess_steps_per_second(env_id, victim, n, updates=1) for n in args.processes
    }
    train = statistics.median(r["training"] for r in training)
    return {
        "stepping": stepping,
        "training": training,
        "subprocess": subprocess_rates,
        "stepping / bare": median_ratio(stepping, "stepping", "bare"),
        "training / bare": median_ratio(training, "training", "bare"),
        "training / subprocess": train / max(subprocess_rates.values()),
        "breakdown_us": _breakdown(watch, train, args.updates),
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
    for rounds in (result["stepping"], result["training"]):
        for name in rounds[0]:
            rates = sorted(r[name] for r in rounds)
            console.print(f"{name}: {rates[0]:,.0f} to {rates[-1]:,.0f}/s in {len(rates)} turns")
    rates = ", ".join(f"{n} processes {v:,.0f}/s" for n, v in result["subprocess"].items())
    console.print(f"SubprocVecEnv: {rates}")
    parts = result["breakdown_us"]
    console.print("per step, us: " + ", ".join(f"{k} {v:.1f}" for k, v in parts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", nargs="+", choices=sorted(TARGETS), default=["v1", "v0"])
    parser.add_argument("--victim", type=Path, help="policy directory; default: random weights")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--updates", type=int, default=5, help="PPO updates to measure")
    parser.add_argument("--repeats", type=int, default=15, help="rounds of turns")
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
