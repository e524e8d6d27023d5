"""`python -m aprl.stackelberg.compare`."""

import json

import pytest

from aprl.errors import ConfigError
from aprl.experiment import command_line
from aprl.stackelberg.compare import compare, compare_experiment
from aprl.stackelberg.config import CompareConfig


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


def test_command(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["methods=['psrl','mal_tabular']", "worlds=['trap']", "seeds=1", "processes=1"]
    observers = list(compare_experiment.observers)
    try:
        with pytest.raises(SystemExit) as end:
            command_line(compare_experiment, "data/stackelberg", ["prog", "with", *arguments])
    finally:
        compare_experiment.observers[:] = observers
    printed = capfd.readouterr()
    assert end.value.code == 0, printed.err
    assert "trap" in printed.out and "(1/1)" in printed.out and "report.html" in printed.out
