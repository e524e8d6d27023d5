"""All methods on all worlds over many seeds, in parallel processes, and what came out."""

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pandas as pd
from scipy import stats

from aprl.errors import AprlError, RunError
from aprl.stackelberg.finished import CURVE_POINTS, FinishedRuns, Job, Outcome
from aprl.stackelberg.methods import METHODS, make_method
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from aprl.stats import WinRate

# Expensive ones first, so that no process is left alone with one at the end.
_SLOW = ("pal", "mal", "mal_reward", "mal_noise", "ppo_tuned", "sampled_answers", "ppo")


def curve_samples(budget: int) -> np.ndarray:
    """`(CURVE_POINTS,)`: the numbers of samples at which curves are read."""
    return np.linspace(0, budget, CURVE_POINTS)


def run_job(job: Job) -> Outcome:
    """Run one job; the seed also chooses the world if the name stands for a random family."""
    world = make_world(job.world, job.seed)
    run = run_method(make_method(job.method), world, job.budget, job.seed)
    return Outcome(
        job,
        run.solved_at,
        run.final_return / run.optimum,
        run.used,
        run.wall_time_s,
        run.returns_at(curve_samples(job.budget)) / run.optimum,
    )


def make_jobs(
    methods: Sequence[str], budgets: Mapping[str, int], seeds: Sequence[int]
) -> list[Job]:
    """All combinations.

    Args:
        methods: names.
        budgets: real samples by world.
        seeds: of the runs.
    """
    return [
        Job(method, world, seed, budget)
        for (world, budget), method, seed in itertools.product(budgets.items(), methods, seeds)
    ]


def run_jobs(
    jobs: Sequence[Job],
    processes: int,
    on_progress: Callable[[int], None] | None = None,
    finished: FinishedRuns | None = None,
) -> list[Outcome]:
    """Run jobs; the outcome does not depend on the number of processes.

    Args:
        jobs: what to run.
        processes: how many at once; 1 runs them in this process.
        on_progress: told the number of finished jobs.
        finished: outcomes on disk, which are not run again and to which new ones are added.

    Returns:
        Outcomes in the order of the jobs.

    Raises:
        RunError: an outcome could not be written, or a process was killed.
    """
    outcomes = {
        job: finished.outcomes[job] for job in jobs if finished and job in finished.outcomes
    }
    missing = [job for job in jobs if job not in outcomes]
    slow_first = sorted(missing, key=lambda job: (job.method not in _SLOW, -job.budget))
    for outcome in _run_all(slow_first, processes):
        if finished is not None:
            finished.add(outcome)
        outcomes[outcome.job] = outcome
        if on_progress is not None:
            on_progress(len(outcomes))
    return [outcomes[job] for job in jobs]


def _run_all(jobs: Sequence[Job], processes: int) -> Iterator[Outcome]:
    if processes == 1:
        yield from map(run_job, jobs)
        return
    # A fresh interpreter per process: PyTorch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_follow_parent) as pool:
        try:
            for future in as_completed([pool.submit(run_job, job) for job in jobs]):
                yield future.result()
        except BrokenProcessPool:
            raise RunError("a process of the comparison was killed, perhaps for memory") from None
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def runs_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row per run."""
    return pd.DataFrame(
        {
            "method": [o.job.method for o in outcomes],
            "world": [o.job.world for o in outcomes],
            "seed": [o.job.seed for o in outcomes],
            "budget": [o.job.budget for o in outcomes],
            "solved_at": [o.solved_at for o in outcomes],
            "final_over_optimum": [o.final for o in outcomes],
            "samples_used": [o.used for o in outcomes],
            "wall_time_s": [round(o.wall_time_s, 3) for o in outcomes],
        }
    )


def quantile(values: np.ndarray, q: float) -> float:
    """The least value that at least a share `q` of the runs does not exceed; may be infinite."""
    ordered = np.sort(values)
    return float(ordered[max(0, int(np.ceil(q * len(ordered))) - 1)])


def summary_table(outcomes: Sequence[Outcome], reference: str) -> pd.DataFrame:
    """One row per world and method, in the order of the worlds, best median first.

    Columns: runs that were solved, with counts and 95 % Wilson interval; median and 90 % quantile
    of the samples that took; mean and least final return over the optimum; whether the method's
    median beats that of `reference` (empty for the reference itself).
    """
    runs = runs_table(outcomes)
    rows = []
    for (world, method), group in runs.groupby(["world", "method"], sort=False):
        solved = WinRate(int(np.isfinite(group.solved_at).sum()), len(group))
        rows.append(
            {
                "world": world,
                "method": method,
                "solved": str(solved),
                "solved_rate": solved.rate,
                "median": quantile(group.solved_at.to_numpy(), 0.5),
                "p90": quantile(group.solved_at.to_numpy(), 0.9),
                "final_mean": group.final_over_optimum.mean(),
                "final_min": group.final_over_optimum.min(),
                "claim": METHODS[str(method)].claim,
            }
        )
    table = pd.DataFrame(rows)
    medians = table[table.method == reference].set_index("world")["median"]
    limit = table.world.map(medians)
    table["beats_default"] = (table["median"] < limit) & (table.method != reference)
    table["world"] = pd.Categorical(table.world, list(dict.fromkeys(runs.world)), ordered=True)
    return table.sort_values(["world", "median", "method"], ignore_index=True)


def curves_table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Mean learning curves with 95 % Student intervals over the seeds.

    Columns: world, method, samples, mean, low, high (returns over the optimum).
    """
    frames = []
    for (method, world), group in itertools.groupby(
        sorted(outcomes, key=lambda o: (o.job.method, o.job.world)),
        key=lambda o: (o.job.method, o.job.world),
    ):
        members = list(group)
        curves = np.stack([member.curve for member in members])
        half = np.zeros(curves.shape[1])
        if len(curves) > 1:
            spread = stats.t.ppf(0.975, len(curves) - 1) / np.sqrt(len(curves))
            half = spread * curves.std(axis=0, ddof=1)
        mean = curves.mean(axis=0)
        frames.append(
            pd.DataFrame(
                {
                    "world": world,
                    "method": method,
                    "samples": curve_samples(members[0].job.budget),
                    "mean": mean,
                    "low": mean - half,
                    "high": mean + half,
                }
            )
        )
    if not frames:
        raise AprlError("there are no runs to draw curves of")
    return pd.concat(frames, ignore_index=True)
