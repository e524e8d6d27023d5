"""Finished runs survive on disk, whatever cuts the writing short."""

import numpy as np
import pytest

from aprl.errors import RunError
from aprl.stackelberg.finished import FinishedRuns, Job, Outcome


def outcome(seed, solved_at=12.0, points=101):
    curve = np.linspace(0, 1 / 3, points)
    curve[0] = np.nan
    return Outcome(Job("pal", "trap", seed, 400), solved_at, 0.7, 399, 0.25, curve)


def test_what_was_added_is_read_back_exactly(tmp_path):
    path = tmp_path / "finished.jsonl"
    log = FinishedRuns(path)
    assert log.outcomes == {}
    written = [outcome(0), outcome(1, np.inf)]
    for one in written:
        log.add(one)
    read = FinishedRuns(path).outcomes
    assert list(read) == list(log.outcomes) == [one.job for one in written]
    for one, other in zip(written, read.values(), strict=True):
        assert (one.solved_at, one.final, one.used) == (other.solved_at, other.final, other.used)
        assert np.array_equal(one.curve, other.curve, equal_nan=True)


def test_last_line_that_was_cut_short_is_dropped_and_written_again(tmp_path):
    path = tmp_path / "finished.jsonl"
    log = FinishedRuns(path)
    log.add(outcome(0))
    log.add(outcome(1))
    whole = path.read_bytes()
    for cut in (1, 20, len(whole) // 2 - 1):
        path.write_bytes(whole[:-cut])
        again = FinishedRuns(path)
        assert [job.seed for job in again.outcomes] == [0]
        again.add(outcome(1))
        assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["", "null", "{}", "[1]", '{"job": {"name": 3}}', "\x00\xff"])
def test_other_damage_names_the_line(tmp_path, line):
    path = tmp_path / "finished.jsonl"
    FinishedRuns(path).add(outcome(0))
    with open(path, "a", encoding="latin-1") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match="line 2, is no finished run"):
        FinishedRuns(path)


def test_curves_of_another_length_are_damage(tmp_path):
    FinishedRuns(tmp_path / "finished.jsonl").add(outcome(0, points=7))
    with pytest.raises(RunError, match=r"line 1, .* 101 points"):
        FinishedRuns(tmp_path / "finished.jsonl")


def test_a_full_disk_is_an_error_of_one_line(tmp_path):
    log = FinishedRuns(tmp_path / "finished.jsonl")
    (tmp_path / "finished.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"cannot write .*finished.jsonl: No space left"):
        log.add(outcome(0))
    assert log.outcomes == {}
