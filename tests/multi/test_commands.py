"""The commands of sweeps: what they print, and how they end."""

import json
import subprocess
import sys

import pytest

from aprl.configs.multi_train import NAMED_CONFIGS

GAME = NAMED_CONFIGS["debug_config"]["train"]


def run(module, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", f"aprl.multi.{module}", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_dry_run_prints_trials_and_cost_and_runs_nothing(tmp_path):
    ended = run("train", "with", "paper", "dry_run=True", f"root_dir={tmp_path}",
                f"train.zoo_dir={tmp_path}", "axes={'seed': [3]}")  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "paper: 11 trials" in ended.stdout
    assert "220,000,000 environment steps" in ended.stdout and "core-hours" in ended.stdout
    assert "11 would be left out" in ended.stdout and "and 6 more" in ended.stdout
    assert not (tmp_path / "paper").exists()


def test_axes_from_a_file(tmp_path):
    (tmp_path / "sweep.json").write_text(
        json.dumps({"exp_name": "rates", "axes": {"rl_args.gamma": [0.9, 0.99]}, "train": GAME})
    )
    ended = run("train", "with", str(tmp_path / "sweep.json"), "dry_run=True")
    assert ended.returncode == 0, ended.stderr
    assert "rl_args.gamma" in ended.stdout and "2 trials" in ended.stdout


@pytest.mark.parametrize(
    "module, arguments, complaint",
    [
        ("train", [], "nothing to sweep"),
        ("train", ["with", "papers"], "papers"),
        ("train", ["with", "paper", "defense_dual"], "defense_dual is for"),
        ("train", ["with", "resume=nowhere"], "nowhere is no sweep"),
        ("train", ["with", "adv_against_hardened", "hardened=nowhere"], "nowhere"),
        ("train", ["with", "debug_config", "ray_server=127.0.0.1:1"], "no Ray cluster"),
        ("train", ["with", "debug_config", "train.learning_rate=7"], "learning_rate"),
        ("score", [], "victims is empty"),
        ("score", ["with", "victims=['zoos']", "opponents=['zoo']"], "zoos"),
        ("league", ["nowhere.json"], "nowhere.json does not exist"),
    ],
)
def test_bad_input_is_one_line(tmp_path, module, arguments, complaint):
    ended = run(module, *arguments, cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1
    assert complaint in ended.stderr


@pytest.mark.parametrize("module", ["train", "score"])
def test_help_explains_every_option(module):
    ended = run(module, "--help")
    assert ended.returncode == 0
    assert "ray_server" in ended.stdout and "num_cpus" in ended.stdout
