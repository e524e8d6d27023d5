"""Runs of a comparison, and what is made of them."""

import os
import signal

import numpy as np
import pytest

from aprl.errors import RunError
from aprl.stackelberg import comparison
from aprl.stackelberg.comparison import (
    curve_samples,
    curves_table,
    make_jobs,
    quantile,
    run_job,
    run_jobs,
    runs_table,
    summary_table,
)
from aprl.stackelberg.finished import FinishedRuns, Job, Outcome


def outcome(method, world, seed, solved_at, final=1.0, level=1.0):
    curve = np.full(101, level)
    return Outcome(Job(method, world, seed, 400), solved_at, final, 400, 0.1, curve)


def test_jobs_are_all_combinations():
    jobs = make_jobs(["mal_tabular", "dyna_q"], {"trap": 2000, "simple_mdp_1": 400}, range(3))
    assert len(set(jobs)) == len(jobs) == 12
    assert {(j.world, j.budget) for j in jobs} == {("trap", 2000), ("simple_mdp_1", 400)}


def test_outcomes_do_not_depend_on_the_number_of_processes():
    jobs = make_jobs(["mal_tabular", "q_learning"], {"simple_mdp_1": 60}, range(2))
    progress = []
    alone, together = run_jobs(jobs, 1, progress.append), run_jobs(jobs, 2)
    assert progress == [1, 2, 3, 4]
    assert [o.job for o in alone] == [o.job for o in together] == jobs
    for one, other in zip(alone, together, strict=True):
        assert one.solved_at == other.solved_at and (one.curve == other.curve).all()


def test_finished_runs_are_not_run_again(tmp_path, monkeypatch):
    jobs = make_jobs(["psrl"], {"simple_mdp_1": 60}, range(3))
    finished = FinishedRuns(tmp_path / "finished.jsonl")
    run_jobs(jobs[:2], 1, finished=finished)
    ran, progress = [], []

    def spy(job):
        ran.append(job)
        return run_job(job)

    monkeypatch.setattr(comparison, "run_job", spy)
    again = FinishedRuns(tmp_path / "finished.jsonl")
    together = run_jobs(jobs, 1, progress.append, again)
    assert ran == jobs[2:] and progress == [3]
    for one, other in zip(together, run_jobs(jobs, 1), strict=True):
        assert one.job == other.job and one.solved_at == other.solved_at
        assert np.array_equal(one.curve, other.curve, equal_nan=True)
    assert len(FinishedRuns(tmp_path / "finished.jsonl").outcomes) == 3


def kill_yourself(job):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(comparison, "run_job", kill_yourself)
    with pytest.raises(RunError, match="was killed"):
        run_jobs(make_jobs(["psrl"], {"simple_mdp_1": 60}, range(2)), 2)


def test_random_worlds_differ_between_seeds():
    jobs = [Job("psrl", "random_s10_a3", seed, 50) for seed in range(2)]
    assert run_job(jobs[0]).final != run_job(jobs[1]).final


def test_quantiles_count_runs():
    values = np.array([5.0, 1.0, np.inf, 3.0])
    assert [quantile(values, q) for q in (0.25, 0.5, 0.75, 0.9)] == [1, 3, 5, np.inf]
    assert quantile(np.array([2.0]), 0.9) == 2


def test_summary_counts_and_marks_who_beats_the_reference():
    outcomes = [
        *(outcome("mal_tabular", "trap", seed, at) for seed, at in enumerate([10, 20, np.inf])),
        *(outcome("dyna_q", "trap", seed, at, 0.5) for seed, at in enumerate([5, 6, 7])),
        *(outcome("psrl", "trap", seed, np.inf) for seed in range(3)),
    ]
    table = summary_table(outcomes, "mal_tabular").set_index("method")
    assert table.index.tolist() == ["dyna_q", "mal_tabular", "psrl"]
    assert table.solved["mal_tabular"] == "66.7 % [20.8, 93.9] (2/3)"
    assert table["median"].tolist() == [6, 20, np.inf]
    assert table.beats_default.tolist() == [True, False, False]
    assert table.final_mean["dyna_q"] == 0.5
    assert len(runs_table(outcomes)) == 9


def test_curves_have_student_intervals():
    outcomes = [outcome("psrl", "trap", s, 0.0, level=level) for s, level in enumerate([0.0, 1.0])]
    curves = curves_table(outcomes)
    assert (curves.samples == curve_samples(400)).all()
    assert (curves["mean"] == 0.5).all()
    half = 12.7062 * np.sqrt(0.5) / np.sqrt(2)  # t quantile of one degree of freedom
    assert curves.high.to_numpy() == pytest.approx(np.full(101, 0.5 + half), abs=1e-4)
    alone = curves_table(outcomes[:1])
    assert (alone.low == alone.high).all()
