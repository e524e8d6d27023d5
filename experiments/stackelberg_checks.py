"""The numbers that tabular MAL has to reach, on seeds that nothing was tuned on.

`python experiments/stackelberg_checks.py [part ...]`, parts: sustained, random, stopping, oracle,
published, planning; all by default. Results are in RESULTS.md.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from aprl.cli import run_cli
from aprl.errors import unknown_name
from aprl.stackelberg.comparison import quantile, run_jobs
from aprl.stackelberg.finished import Job, Outcome
from aprl.stackelberg.methods import make_method
from aprl.stackelberg.model import random_model
from aprl.stackelberg.oracle import PretrainConfig, pretrain_oracle
from aprl.stackelberg.planning import best_response, max_return, policy_return
from aprl.stackelberg.runner import Run, run_method
from aprl.stackelberg.worlds import RANDOM_WORLD, make_world
from aprl.stats import WinRate

SEEDS = range(1000, 1100)
TABULAR = (
    "mal_tabular",
    "mal_fixed",
    "mal_fixed_noise",
    "mal_redraw",
    "mal_optimistic",
    "mal_bonus",
    "mal_posterior",
)
WORLDS = {
    "simple_mdp_1": 400,
    "simple_mdp_2": 400,
    "ergodic_mdp_1": 400,
    "riverswim6": 2000,
    "trap": 2000,
    RANDOM_WORLD: 3000,
}


def _line(label: str, outcomes: list[Outcome]) -> str:
    solved_at = np.array([o.solved_at for o in outcomes])
    finals = np.array([o.final for o in outcomes])
    return (
        f"{label:36s} solved {WinRate(int(np.isfinite(solved_at).sum()), len(outcomes))}  "
        f"median {quantile(solved_at, 0.5):.0f}  90 % {quantile(solved_at, 0.9):.0f}  "
        f"final/optimum mean {finals.mean():.4f} least {finals.min():.3f}"
    )


def sustained() -> None:
    """Every variant in every world, 100 seeds: within 1 % of the optimum and staying there."""
    for world, budget in WORLDS.items():
        for method in TABULAR:
            jobs = [Job(method, world, seed, budget) for seed in SEEDS]
            print(_line(f"{world} {method}", run_jobs(jobs, processes=1)), flush=True)


def random_worlds() -> None:
    """The default against Dyna-Q in 100 random worlds at equal samples."""
    finals = {}
    for method in ("mal_tabular", "dyna_q", "dyna_q_tuned"):
        jobs = [Job(method, RANDOM_WORLD, seed, 3000) for seed in SEEDS]
        finals[method] = np.array([o.final for o in run_jobs(jobs, processes=1)])
    for baseline in ("dyna_q", "dyna_q_tuned"):
        better = int((finals["mal_tabular"] > finals[baseline]).sum())
        print(
            f"better than {baseline}: {WinRate(better, len(SEEDS))}, its mean final/optimum "
            f"{finals[baseline].mean():.3f}",
            flush=True,
        )


def stopping() -> None:
    """How often the stopping rule ends a run with a policy that is worse than 1 %."""
    rules = {
        "both tests": {"eps": 0.05},
        "|model - old| alone": {"eps": 0.05, "min_visits": 0},
    }
    for rule, stop in rules.items():
        for method in ("mal_tabular", "mal_redraw", "mal_fixed"):
            for world in ("simple_mdp_1", "simple_mdp_2", "riverswim6", RANDOM_WORLD):
                runs = [
                    run_method(
                        make_method(method, {"stop": stop}), make_world(world, seed), 5000, seed
                    )
                    for seed in SEEDS
                ]
                stopped = [run for run in runs if run.result.stopped]
                wrong = sum(not run.near_optimal[-1] for run in stopped)
                used = quantile(np.array([float(run.used) for run in runs]), 0.5)
                print(
                    f"{rule}, {method}, {world}: stopped {len(stopped)}/{len(runs)}, of them wrong "
                    f"{WinRate(wrong, len(stopped))}, median samples {used:.0f}",
                    flush=True,
                )


def oracle() -> None:
    """The learned follower: regret, deployment with true answers, and MAL with it."""
    world = make_world("simple_mdp_2")
    follower = pretrain_oracle(world.task, PretrainConfig(), np.random.SeedSequence(0))
    rng = np.random.default_rng(1)
    regrets, optima = [], []
    for _ in range(100):
        model = random_model(world.task, rng)
        optima.append(max_return(model))
        regrets.append(optima[-1] - policy_return(model, follower.best_response(model)))
    print(
        f"regret on 100 random models: mean {np.mean(regrets):.3f}, median {np.median(regrets):.3f}"
        f", greatest {np.max(regrets):.3f}; mean optimum {np.mean(optima):.3f}"
    )
    deployed = policy_return(world, follower.best_response(world))
    print(f"with the true answers: {deployed:.3f} of {max_return(world):.3f}", flush=True)
    for method in ("mal_posterior", "mal_redraw"):
        runs = [
            run_method(make_method(method, None, lambda task: follower), world, 400, seed)
            for seed in SEEDS
        ]
        solved_at = np.array([run.solved_at for run in runs])
        solved = WinRate(int(np.isfinite(solved_at).sum()), len(runs))
        print(
            f"{method} with it: solved {solved}, median {quantile(solved_at, 0.5):.0f}, 90 % "
            f"{quantile(solved_at, 0.9):.0f}",
            flush=True,
        )


# As the course project's logs describe the PPO that it tuned for sample efficiency.
_TUNED_PPO = {
    "gamma": 1.0,
    "n_steps": 188,
    "batch_size": 94,
    "learning_rate": 6.1e-3,
    "n_epochs": 4,
}
_AS_PUBLISHED: tuple[tuple[str, dict[str, Any], int, int], ...] = (
    ("mal", {"ppo": _TUNED_PPO}, 20_000, 5),
    ("mal_reward", {"ppo": _TUNED_PPO, "reward_weight": 0.5}, 20_000, 5),
    ("mal_reward", {"ppo": _TUNED_PPO, "reward_weight": 1.0}, 20_000, 5),
    ("mal_noise", {"ppo": _TUNED_PPO, "noise": 0.75}, 20_000, 5),
    ("answer_search", {}, 20_000, 5),
    ("mal_published", {}, 250_000, 1),
    ("pal_published", {}, 1_250_000, 2),
)


def _from_on(run: Run, least: float, share: float) -> float:
    """Samples from which on at least a share of the policies returns `least`; may be infinite."""
    good = (run.returns >= least)[::-1]
    kept = np.flatnonzero(good & (good.cumsum() >= share * np.arange(1, len(good) + 1)))
    return float(run.samples[::-1][kept[-1]]) if kept.size else np.inf


def published() -> None:
    """The methods as published, with budgets as published: what they reach, and when."""
    world = make_world("simple_mdp_2")
    for method, options, budget, seeds in _AS_PUBLISHED:
        for seed in SEEDS[:seeds]:
            run = run_method(make_method(method, options), world, budget, seed)
            print(
                f"{method} {options} seed {seed}: {run.used} samples, final return "
                f"{run.final_return:.2f}, best {run.returns.max():.2f}; at least 35 from "
                f"{_from_on(run, 35, 1.0):.0f} on, in 90 % of the later policies from "
                f"{_from_on(run, 35, 0.9):.0f} on; {run.wall_time_s:.0f} s",
                flush=True,
            )


def planning() -> None:
    """Seconds per best response in a sparse world of 1000 states and 10 actions."""
    world = make_world("random_s1000_a10_0")
    for horizon in (50, 1000):
        cut = world.with_horizon(horizon)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            best_response(cut)
            times.append(time.perf_counter() - started)
        print(f"horizon {horizon}: {min(times):.3f} to {max(times):.3f} s per best response")


PARTS: dict[str, Callable[[], None]] = {
    "sustained": sustained,
    "random": random_worlds,
    "stopping": stopping,
    "oracle": oracle,
    "published": published,
    "planning": planning,
}


def main() -> None:
    """Run the parts that are named, or all."""
    names = sys.argv[1:] or list(PARTS)
    for name in names:
        if name not in PARTS:
            raise unknown_name("part", name, PARTS)
    for name in names:
        PARTS[name]()


if __name__ == "__main__":
    run_cli(main)
