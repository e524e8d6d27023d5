"""What Ray costs: a sweep of two trials against the same two runs as plain processes, side by side.

Both ways are timed to the end of the slower run, imports included, Ray's own start not. They take
turns; the median of the ratios counts. Run it on a quiet machine with two cores:
`python benchmarks/sweep_overhead.py`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aprl.multi import SweepConfig, sweep
from aprl.multi.cluster import connected

WANTED = 1.25
SEEDS = (0, 1)


def entries(steps: int) -> dict[str, Any]:
    return {
        "env_name": "multicomp/YouShallNotPassHumans-v1",
        "embed_type": "zero",
        "embed_path": "none",
        "num_threads": 1,
        "total_timesteps": steps,
        "rew_shape_params": {"anneal_frac": 0.0},
    }


def plain_seconds(steps: int, root: str) -> float:
    """Two processes at once."""
    begin = time.perf_counter()
    processes = []
    for seed in SEEDS:
        config = Path(root) / f"{seed}.json"
        values = {**entries(steps), "seed": seed, "root_dir": root, "progress": False}
        config.write_text(json.dumps(values), encoding="utf-8")
        command = [sys.executable, "-m", "aprl.train", "with", str(config)]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
    for process in processes:
        if process.wait():
            raise SystemExit("a plain run failed")
    return time.perf_counter() - begin


def sweep_seconds(steps: int, root: str) -> float:
    """Two trials at once."""
    axes = {"seed": list(SEEDS)}
    config = SweepConfig(
        root_dir=root, exp_name="overhead", axes=axes, train=entries(steps), progress=False
    )
    begin = time.perf_counter()
    result = sweep(config)
    if result.failed:
        raise SystemExit(f"a trial failed: {result.frame['error'].iloc[0]}")
    return time.perf_counter() - begin


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=131_072, help="environment steps of each run")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ratios = []
    with connected(None, 2):
        for _ in range(args.repeats):
            with tempfile.TemporaryDirectory() as root:
                plain = plain_seconds(args.steps, root)
                ray = sweep_seconds(args.steps, root)
            ratios.append(ray / plain)
            print(f"plain {plain:.1f} s, sweep {ray:.1f} s: {ratios[-1]:.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f} (wanted: at most {WANTED})")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
