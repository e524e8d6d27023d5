"""Metrics survive kills; progress is told."""

import csv

import numpy as np
import pytest

from aprl.errors import RunError
from aprl.training.records import CsvLog, ProgressDisplay


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def row(steps, **values):
    return {"time/total_timesteps": steps, **values}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rl" / "progress.csv"


def three_rows(path):
    log = CsvLog(path)
    for steps in (10, 20, 30):
        log.write(row(steps, a=steps / 100, z=steps + 1000), {})
    log.close()
    return path.read_text()


def test_each_row_is_on_disk_as_soon_as_it_is_written(path):
    log = CsvLog(path)
    for i in range(3):
        log.write(row(10 * i, b=i, a=-i), {})
        assert [r["b"] for r in rows_of(path)] == [str(j) for j in range(i + 1)]
    assert path.read_text().splitlines()[0] == "a,b,time/total_timesteps"


def test_rows_are_appended_not_rewritten(path):
    log = CsvLog(path)
    log.write(row(10, a=1), {})
    inode, before = path.stat().st_ino, path.read_bytes()
    log.write(row(20, a=2), {})
    assert path.stat().st_ino == inode
    assert path.read_bytes().startswith(before)


def test_new_columns_widen_and_absent_ones_stay_empty(path):
    log = CsvLog(path)
    log.write(row(10, a=1), {})
    log.write(row(20, a=2, b=3), {})
    log.write(row(30, b=4), {})
    log.write(row(40, c="x"), {})
    table = [[r[c] for c in ("time/total_timesteps", "a", "b", "c")] for r in rows_of(path)]
    assert table == [
        ["10", "1", "", ""],
        ["20", "2", "3", ""],
        ["30", "", "4", ""],
        ["40", "", "", "x"],
    ]


def test_numbers_are_written_exactly(path):
    log = CsvLog(path)
    log.write(row(np.int64(7), f=np.float32(0.1), d=0.1 + 0.2, n=np.float64(1e-300)), {})
    (written,) = rows_of(path)
    assert written["time/total_timesteps"] == "7"
    assert float(written["f"]) == float(np.float32(0.1))
    assert float(written["d"]) == 0.1 + 0.2 and float(written["n"]) == 1e-300


@pytest.mark.parametrize(
    ("until", "kept"), [(0, []), (10, [10]), (29, [10, 20]), (99, [10, 20, 30])]
)
def test_resuming_drops_rows_beyond_the_checkpoint(path, until, kept):
    three_rows(path)
    CsvLog(path, until=until).write(row(99, a="new", z=1, more=2), {})
    rows = rows_of(path)
    assert [int(r["time/total_timesteps"]) for r in rows] == [*kept, 99]
    assert [r["more"] for r in rows] == [*[""] * len(kept), "2"]
    assert all(None not in r.values() and None not in r for r in rows)


@pytest.mark.parametrize("lost", range(1, 14))
def test_a_last_line_cut_short_is_dropped_wherever_it_was_cut(path, lost):
    """The last line is `0.3,30,1030` with its line break, 13 bytes; all of them may be lost."""
    text = three_rows(path)
    assert text.endswith("\n0.3,30,1030\n")
    raw = path.read_bytes()
    path.write_bytes(raw[:-lost])
    log = CsvLog(path, until=10**9)
    expected = [("10", "0.1", "1010"), ("20", "0.2", "1020")]
    rows = [(r["time/total_timesteps"], r["a"], r["z"]) for r in rows_of(path)]
    assert rows == expected
    log.write(row(30, a=0.3, z=1030), {})
    assert path.read_bytes() == raw


def test_a_cut_number_of_steps_does_not_pass_for_an_early_row(path):
    log = CsvLog(path)
    for steps in (100, 200, 3000):
        log.write(row(steps, a=1), {})
    path.write_bytes(path.read_bytes()[:-3])  # the last line reads 300 steps
    CsvLog(path, until=400)
    assert [r["time/total_timesteps"] for r in rows_of(path)] == ["100", "200"]


def test_continuing_an_empty_file(path):
    path.parent.mkdir()
    path.touch()
    CsvLog(path, until=5).write(row(10, a=1), {})
    assert rows_of(path) == [{"a": "1", "time/total_timesteps": "10"}]


@pytest.mark.parametrize("widen", [False, True])
def test_an_unwritable_file_is_named(path, widen):
    log = CsvLog(path)
    log.write(row(10, a=1), {})
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()  # now a file where the folder was
    with pytest.raises(RunError, match=r"cannot write .*progress\.csv"):
        log.write(row(20, a=1, **({"b": 2} if widen else {})), {})


def test_progress_is_told_line_by_line_where_there_is_no_terminal(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("aprl.training.records.time.monotonic", lambda: now[0])
    display = ProgressDisplay(10_000, done=1000, interval=15)
    for now[0], steps in ((105.0, 1500), (115.0, 2500), (120.0, 2900), (135.0, 4500)):
        display.update(steps, f"wins {steps / 100:.0f} %")
    display.close()
    # 1500 steps in 15 s and 3500 in 35 s are 100 a second; the start's 1000 were made before.
    assert capsys.readouterr().err.splitlines() == [
        "training: 2,500/10,000 steps  100 steps/s  wins 25 %  1.2 min left",
        "training: 4,500/10,000 steps  100 steps/s  wins 45 %  0.9 min left",
    ]


def test_speed_is_that_of_the_last_minute(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("aprl.training.records.time.monotonic", lambda: now[0])
    display = ProgressDisplay(100_000, interval=100)
    steps = 0
    for now[0] in range(1, 401):
        steps += 10 if now[0] <= 300 else 100  # other work beside it ends after 300 s
        display.update(steps)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "training: 13,000/100,000 steps  100 steps/s  14.5 min left"


def test_no_time_is_left_once_everything_is_done(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("aprl.training.records.time.monotonic", lambda: now[0])
    display = ProgressDisplay(100, interval=5, verb="scoring", unit="games")
    now[0] = 10.0
    display.update(100)
    assert capsys.readouterr().err == "scoring: 100/100 games  10 games/s\n"


def test_the_status_stays_until_a_new_one_comes(capsys):
    display = ProgressDisplay(100, interval=0, verb="scoring", unit="games")
    display.update(1, "wins 40 %")
    display.update(2)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "scoring: 2/100 games" in last and "wins 40 %" in last


def test_a_silent_display_says_nothing(capsys):
    display = ProgressDisplay(100, enabled=False, interval=0)
    display.update(1, "x")
    display.close()
    assert capsys.readouterr() == ("", "")
