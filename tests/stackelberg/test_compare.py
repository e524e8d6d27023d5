"""`python -m aprl.stackelberg.compare`."""

import json

import pytest

from aprl.errors import AprlError, ConfigError, RunError
from aprl.experiment import command_line
from aprl.locks import DirectoryLock
from aprl.stackelberg.compare import compare, compare_experiment, newest_unfinished, resume
from aprl.stackelberg.config import CompareConfig
from aprl.training.interruption import Interrupted, Terminated


def test_report_and_summary(tmp_path):
    config = CompareConfig(
        root_dir=str(tmp_path),
        methods=["mal_tabular", "dyna_q"],
        worlds=["simple_mdp_1"],
        seeds=2,
        processes=1,
    )
    progress = []
    directory, summary = compare(config, progress.append)
    assert progress == [1, 2, 3, 4] and len(summary) == 2
    assert (directory / "report.html").exists() and (directory / "simple_mdp_1.png").exists()
    assert json.loads((directory / "config.json").read_text())["budgets"] == {"simple_mdp_1": 400}


def test_bad_input_leaves_nothing(tmp_path):
    with pytest.raises(ConfigError, match="did you mean"):
        compare(CompareConfig(root_dir=str(tmp_path), methods=["mal_tabluar"]))
    assert list(tmp_path.iterdir()) == []


def small(tmp_path, **values):
    options = {"methods": ["mal_tabular", "psrl"], "worlds": ["trap"], "seeds": 2, "processes": 1}
    return CompareConfig(root_dir=str(tmp_path), **options | values)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Terminated, RunError("disk full")])
def test_a_stopped_comparison_continues_to_the_same_result(tmp_path, stop):
    whole, summary = compare(small(tmp_path / "whole"))

    def stop_after_two(done):
        if done == 2:
            raise stop

    with pytest.raises((Interrupted, RunError)) as end:
        compare(small(tmp_path / "stopped"), stop_after_two)
    (directory,) = (tmp_path / "stopped").iterdir()
    if isinstance(end.value, Interrupted):
        assert (
            f"at 2 runs; continue with: python -m aprl.stackelberg.compare with resume={directory}"
            in str(end.value)
        )
    assert not (directory / "report.html").exists()
    progress = []
    again, resumed = resume(directory, progress.append)
    assert again == directory and progress == [3, 4]
    assert resumed.equals(summary)
    for name in ("summary.csv", "curves.csv"):
        assert (directory / name).read_bytes() == (whole / name).read_bytes()


def test_stopped_before_its_first_run_it_leaves_nothing(tmp_path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("aprl.stackelberg.compare.run_jobs", stop)
    with pytest.raises(KeyboardInterrupt):
        compare(small(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_newest_unfinished_is_the_one_that_can_be_continued(tmp_path):
    done, _ = compare(small(tmp_path, worlds=["trap"], seeds=1))
    assert (done / "finished.jsonl").exists()
    with pytest.raises(RunError, match="no unfinished comparison"):
        newest_unfinished(tmp_path)
    for name in ("20200101_000000-a", "20210101_000000-b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "finished.jsonl").touch()
    assert newest_unfinished(tmp_path).name == "20210101_000000-b"
    lock = DirectoryLock(tmp_path / "20210101_000000-b")
    lock.acquire()
    assert newest_unfinished(tmp_path).name == "20200101_000000-a"


def test_two_cannot_continue_the_same(tmp_path):
    directory, _ = compare(small(tmp_path, seeds=1))
    lock = DirectoryLock(directory)
    lock.acquire()
    with pytest.raises(RunError, match="in use by another process"):
        resume(directory)


@pytest.mark.parametrize("config", ["[]", "{", '{"metods": []}', '{"seeds": "three"}', None])
def test_a_directory_that_cannot_be_continued(tmp_path, config):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(AprlError):
        resume(tmp_path)


def test_command(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["methods=['psrl','mal_tabular']", "worlds=['trap']", "seeds=1", "processes=1"]
    with pytest.raises(SystemExit) as end:
        command_line(compare_experiment, "data/stackelberg", ["prog", "with", *arguments])
    printed = capfd.readouterr()
    assert end.value.code == 0, printed.err
    assert "trap" in printed.out and "(1/1)" in printed.out and "report.html" in printed.out
