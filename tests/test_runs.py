"""Finding and reading run directories."""

import json
import os
from hashlib import sha256

import pytest

from aprl.errors import RunError
from aprl.runs import GameCounts, find_runs, is_finished, read_run, run_stamp
from tests.run_trees import edit_config, make_run


def write_progress(run, text):
    (run / "rl/progress.csv").write_bytes(text if isinstance(text, bytes) else text.encode())


def test_finds_runs_at_any_depth_and_nothing_else(tmp_path):
    expected = [make_run(tmp_path / "a", []), make_run(tmp_path / "deep/er/b", [])]
    for place in ("a/checkpoint/000/x", "checkpoint/x", "y/mon/x", "y/tb/x", ".b.tmp-1f/b"):
        make_run(tmp_path / place, [])
    make_run(expected[0] / "inside", [])
    (tmp_path / "only_config").mkdir()
    (tmp_path / "only_config/config.json").write_text("{}")
    assert find_runs(tmp_path) == expected


@pytest.mark.parametrize("marker", ["rl", "final_model", "status.json"])
def test_each_marker_beside_the_config_makes_a_run(tmp_path, marker):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text("{}")
    (run / marker).touch() if "." in marker else (run / marker).mkdir()
    assert find_runs(tmp_path) == [run]


def test_the_root_itself_may_be_a_run(tmp_path):
    run = make_run(tmp_path / "run", [])
    assert find_runs(run) == [run]


def test_links_are_followed_without_going_round_in_circles(tmp_path):
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    outside = make_run(elsewhere / "outside", [])
    inside = make_run(tree / "sub/inside", [])
    (tree / "sub/loop").symlink_to(tree)
    (tree / "again").symlink_to(inside)  # sorts before sub, but the real path counts
    (tree / "dangling").symlink_to(tmp_path / "nowhere")
    (tree / "zzz").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(tree)
    assert find_runs(tree) == [inside, tree / "zzz/outside"]
    assert os.path.samefile(tree / "zzz/outside", outside)


def test_missing_root_and_file_as_root(tmp_path):
    with pytest.raises(RunError, match="none does not exist"):
        find_runs(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file is not a directory"):
        find_runs(tmp_path / "file")


def test_record_of_a_run(tmp_path):
    run = make_run(
        tmp_path / "run",
        [(1, 2, 3), None, (4, 5, 6)],
        embed_index=0,
        embedded=[("zoo", "2"), ("ppo", "x/y")],
        load_path="start",
        status="interrupted",
        steps=77,
        finished=False,
    )
    record = read_run(run)
    assert record.path == run
    assert record.env_name == "multicomp/YouShallNotPassHumans-v0"
    assert record.embed_index == 0
    assert record.embedded == (("zoo", "2"), ("ppo", "x/y"))
    assert record.load_path == "start"
    assert (record.status, record.num_timesteps, record.finished) == ("interrupted", 77, False)
    assert record.rollouts == ((1, 2, 3), (0, 0, 0), (4, 5, 6))
    assert record.config["exp_name"] == "test"


def test_single_embedded_policy_and_missing_status(tmp_path):
    run = make_run(tmp_path / "run", [(1, 0, 0)], status=None)
    edit_config(run, embed_types=None, embed_paths=None, embed_type="zoo", embed_path=3)
    record = read_run(run)
    assert record.embedded == (("zoo", "3"),)
    assert (record.status, record.num_timesteps) == (None, 0)


def test_nothing_embedded_needs_no_game_columns(tmp_path):
    run = make_run(tmp_path / "run", [], embedded=[])
    write_progress(run, "x\n1\n")
    record = read_run(run)
    assert (record.embed_index, record.embedded, record.rollouts) == (None, (), ())


@pytest.mark.parametrize(
    ("window", "expected"),
    [(1, (0, 1, 0)), (2, (0, 101, 0)), (101, (0, 101, 0)), (102, (9, 101, 1)), (999, (9, 101, 1))],
)
def test_newest_games_takes_whole_rollouts_until_the_window_is_full(tmp_path, window, expected):
    run = make_run(tmp_path / "run", [(9, 0, 1), (0, 100, 0), None, (0, 1, 0)])
    assert read_run(run).newest_games(window) == GameCounts(*expected)


def test_old_log_of_proportions(tmp_path):
    run = make_run(tmp_path / "run", [])
    write_progress(
        run,
        "game_tie,game_total,game_win0,game_win1,loss\n"
        f"{1 / 7},7,{2 / 7},{4 / 7},0.5\n"
        ",0,,,0.4\n"
        ",,,,0.3\n"
        "nan,0.0,nan,nan,0.2\n"
        "0.0,3.0,1.0,0.0,\n",
    )
    nothing = (0, 0, 0)
    assert read_run(run).rollouts == ((2, 4, 1), nothing, nothing, nothing, (3, 0, 0))


def test_counts_are_preferred_and_proportions_fill_older_rows(tmp_path):
    run = make_run(tmp_path / "run", [])
    write_progress(
        run,
        "game_total,game_win0,game_win1,game_count_win0,game_count_win1,game_count_tie\n"
        "4,0.5,0.25,,,\n"
        "4,0.9,0.1,1,2.0,1\n",
    )
    assert read_run(run).rollouts == ((2, 1, 1), (1, 2, 1))


@pytest.mark.parametrize("tail", ["7,7,0", "7,7,0,0,30", "7,7,0,0,", "\0\0\0", '7,"', b"\xe2\x82"])
def test_a_last_line_cut_short_is_left_out(tmp_path, caplog, tail):
    run = make_run(tmp_path / "run", [(1, 2, 3), (4, 5, 6)])
    with open(run / "rl/progress.csv", "ab") as file:
        file.write(tail if isinstance(tail, bytes) else tail.encode())
    assert read_run(run).rollouts == ((1, 2, 3), (4, 5, 6))
    assert "last line is cut short" in caplog.text


GAMES = "game_count_win0,game_count_win1,game_count_tie\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "progress.csv has no game columns"),
        ("loss,reward\n1,2\n", "progress.csv has no game columns"),
        ("game_count_win0,game_count_tie\n1,2\n", "has no game columns"),
        (GAMES + "1,2,3\n1,21,2,3\n1,2,3\n", "progress.csv, line 3: 4 fields, expected 3"),
        (GAMES + "1,2\n", "line 2: 2 fields"),
        (GAMES + "1,2,x\n", "line 2: could not convert"),
        (GAMES + "1,2,-1\n", "not all whole and non-negative"),
        (GAMES + "1,2,0.5\n", "not all whole and non-negative"),
        (GAMES + "1,2,inf\n", "not all whole and non-negative"),
        (GAMES + "1,2,\n", "not all whole and non-negative"),
        ("game_win0,game_win1,game_total\n0.5,0.9,10\n", "not all whole and non-negative"),
        ("game_win0,game_win1,game_total\n0.5,,10\n", "10 games but no proportion"),
        (GAMES.encode() + b"\xff,1,1\n", "is not text"),
    ],
)
def test_damaged_log(tmp_path, text, message):
    run = make_run(tmp_path / "run", [])
    write_progress(run, text)
    with pytest.raises(RunError, match=message):
        read_run(run)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "config.json does not exist"),
        ("config.json", '{"env_name": ', "config.json is not readable JSON"),
        ("config.json", "[]", "does not name the game"),
        ("config.json", '{"env_name": 3}', "does not name the game"),
        ("status.json", "{", "status.json is not readable JSON"),
        ("status.json", "[]", "status.json lacks a status"),
        ("status.json", '{"status": "running", "num_timesteps": "many"}', "whole num_timesteps"),
        ("rl/progress.csv", None, "progress.csv cannot be read: No such file"),
    ],
)
def test_damaged_file(tmp_path, file, content, message):
    run = make_run(tmp_path / "run", [(1, 1, 1)])
    (run / file).unlink()
    if content is not None:
        (run / file).write_text(content)
    with pytest.raises(RunError, match=message):
        read_run(run)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embed_index": 2}, "embed_index is 2, expected 0 or 1"),
        ({"embed_index": None}, "embed_index is None"),
        ({"embed_index": True}, "embed_index is True"),
        ({"embed_types": ["zoo", "ppo"]}, "same length"),
        ({"embed_types": None}, "same length"),
        ({"embed_paths": "1"}, "must be lists"),
    ],
)
def test_config_that_makes_no_sense(tmp_path, changes, message):
    run = make_run(tmp_path / "run", [(1, 1, 1)])
    edit_config(run, **changes)
    with pytest.raises(RunError, match=message):
        read_run(run)


def test_weights_are_checked_against_their_header(tmp_path):
    run = make_run(tmp_path / "run", [(1, 1, 1)], weights=b"abc")
    header = run / "final_model/policy.json"
    header.write_text(json.dumps({"weights_sha256": sha256(b"abc").hexdigest()}))
    assert read_run(run).finished
    (run / "final_model/policy.safetensors").write_bytes(b"abd")
    with pytest.raises(RunError, match=r"policy\.safetensors is damaged"):
        read_run(run)


def test_finished_means_both_files_of_the_final_policy(tmp_path):
    run = make_run(tmp_path / "run", [])
    assert is_finished(run)
    (run / "final_model/policy.safetensors").unlink()
    assert not is_finished(run)


def test_stamp_follows_content_and_not_time(tmp_path):
    run = make_run(tmp_path / "run", [(1, 1, 1)])
    stamp = run_stamp(run)
    for path in run.rglob("*"):
        os.utime(path, (0, 0))
    (run / "checkpoint").mkdir()
    (run / "checkpoint/x").touch()
    assert run_stamp(run) == stamp


@pytest.mark.parametrize(
    "file",
    [
        "config.json",
        "status.json",
        "rl/progress.csv",
        "final_model/policy.json",
        "final_model/policy.safetensors",
    ],
)
def test_stamp_sees_every_file(tmp_path, file):
    run = make_run(tmp_path / "run", [(1, 1, 1)])
    stamps = {run_stamp(run)}
    path = run / file
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")  # same size
    stamps.add(run_stamp(run))
    path.write_bytes(b"")
    stamps.add(run_stamp(run))
    path.unlink()
    stamps.add(run_stamp(run))
    assert len(stamps) == 4
