"""`python -m aprl.stackelberg.train`: what a run leaves, and one line for bad input."""

import json

import pandas as pd
import pytest

from aprl.errors import PolicyError
from aprl.experiment import command_line
from aprl.stackelberg.config import StackelbergConfig
from aprl.stackelberg.train import NAMED_CONFIGS, stackelberg_experiment, train


def test_run_directory(tmp_path):
    trained = train(StackelbergConfig(root_dir=str(tmp_path), seed=3))
    config = json.loads((trained.run_dir / "config.json").read_text())
    assert config["method"] == "mal_tabular" and config["budget"] == 400
    result = json.loads((trained.run_dir / "result.json").read_text())
    assert result["samples_used"] == 400 and result["ended_by"] == "budget"
    assert result["final_return"] == pytest.approx(36.45) == result["optimum"]
    assert result["solved_at"] == trained.run.solved_at and len(result["model"]) == 6
    curve = pd.read_csv(trained.run_dir / "curve.csv")
    assert curve["return"].tolist() == trained.run.returns.tolist()
    status = json.loads((trained.run_dir / "status.json").read_text())
    assert status["status"] == "completed" and status["num_timesteps"] == 400


def test_same_seed_same_run_and_the_stopping_rule(tmp_path):
    options = {"stop": {"eps": 0.05}}
    config = StackelbergConfig(root_dir=str(tmp_path), budget=5000, options=options)
    one, same = train(config), train(config)
    assert one.run_dir != same.run_dir
    assert (one.run_dir / "result.json").read_text() == (same.run_dir / "result.json").read_text()
    result = json.loads((one.run_dir / "result.json").read_text())
    assert result["ended_by"] == "method" and result["samples_used"] < 5000
    assert len(result["model"]) == 6


def test_learned_follower_is_saved_and_can_be_used_again(tmp_path):
    ppo = {"n_steps": 16, "batch_size": 16}
    config = StackelbergConfig(
        root_dir=str(tmp_path),
        method="mal_posterior",
        oracle="learned",
        pretrain={"steps": 128, "num_envs": 4, "ppo": ppo},
        budget=60,
    )
    first = train(config)
    config.oracle_path = str(first.run_dir / "oracle")
    again = train(config)
    assert again.run.returns.tolist() == first.run.returns.tolist()
    config.oracle_path = str(tmp_path / "nowhere")
    with pytest.raises(PolicyError, match="nowhere"):
        train(config)
    assert len(list(tmp_path.glob("*-mal_posterior-*"))) == 2


def test_failed_run_leaves_nothing(tmp_path):
    config = StackelbergConfig(root_dir=str(tmp_path), method="ppo", options={"ppo": {"clip": 1}})
    with pytest.raises(Exception, match="clip"):
        train(config)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def command(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            command_line(stackelberg_experiment, "data/stackelberg", ["prog", "with", *arguments])
        return end.value.code, capfd.readouterr()

    return run


def test_command_prints_the_result(command, tmp_path):
    code, printed = command("mal_redraw", "world=trap", "budget=100")
    assert code == 0 and "mal_redraw in trap" in printed.out and "203.0000" in printed.out
    (directory,) = (tmp_path / "data" / "stackelberg").glob("*-mal_redraw-trap")
    assert (directory / "result.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mal_tabuler"], "did you mean 'mal_tabular'"),
        (["world=simple_mdp_3"], "unknown world 'simple_mdp_3'; did you mean 'simple_mdp_"),
        (["method=daina_q"], "unknown method 'daina_q'"),
        (["options.initial_models=-1"], "initial_models"),
        (["options.stop.eps=3"], "eps must be in [0, 1], got 3"),
        (["horizon=0"], "horizon"),
        (["budgett=3"], "did you mean budget"),
    ],
)
def test_bad_input_is_one_line(command, tmp_path, arguments, message):
    code, printed = command(*arguments)
    lines = printed.err.strip().splitlines()
    assert code == 1 and len(lines) == 1 and lines[0].startswith("error: ")
    assert message in lines[0]
    assert not (tmp_path / "data").exists()


def test_every_method_has_a_named_config():
    assert NAMED_CONFIGS["pal"] == {"method": "pal"}
    assert NAMED_CONFIGS["mal_published"]["budget"] == 250_000
