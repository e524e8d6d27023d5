"""The command: errors as one line, tables, resumption by name."""

import json
import shutil

import pytest

from aprl.errors import RunError
from aprl.experiment import command_line
from aprl.files import read_json
from aprl.imitation.config import ImitationConfig
from aprl.imitation.demonstrations import save_demonstrations
from aprl.imitation.train import imitate, imitation_experiment, resume
from tests.imitation.helpers import demonstrations
from tests.imitation.test_run import SMALL


def run_command(*updates):
    observers = list(imitation_experiment.observers)
    try:
        with pytest.raises(SystemExit) as end:
            command_line(imitation_experiment, "data/imitation", ["train", "with", *updates])
    finally:
        imitation_experiment.observers[:] = observers
    return end.value.code


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_demonstrations(demonstrations(), "d.npz")
    return tmp_path


def test_command_trains_stops_and_resumes(place, capfd):
    updates = [f"{name}={json.dumps(value)}" for name, value in SMALL.items()]
    updates = [u.replace("false", "False") for u in updates]
    assert run_command("airl", "demonstrations=d.npz", *updates) == 0
    out, err = capfd.readouterr()
    (run,) = place.glob("data/imitation/*-airl")
    assert "airl on CartPole-v1" in out and "random" in out and err == ""
    assert f"policy: data/imitation/{run.name}/final_model" in out
    table = read_json(run / "evaluation.json")
    shutil.rmtree(run / "final_model")
    shutil.rmtree(run / "checkpoint" / "000000000320")
    assert run_command("resume=True", "progress=False") == 0
    assert read_json(run / "evaluation.json") == table


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (["gail"], "demonstrations must name an .npz file"),
        (["gail", "demonstrations=e.npz"], "e.npz: the file does not exist"),
        (["gial", "demonstrations=d.npz"], "did you mean 'gail'"),
        (["gail", "demonstrations=d.npz", "horizn=5"], "did you mean horizon"),
        (["gail", "demonstrations=d.npz", "env_name=Pendulum-v1"], "do not fit Pendulum-v1"),
        (["gail", "resume=nowhere"], "gail cannot be given too"),
        (["resume=nowhere"], "nowhere/config.json does not exist"),
        (["resume=True"], "no unfinished run in data/imitation"),
    ],
)
def test_bad_input_is_one_line(place, capfd, updates, message):
    assert run_command(*updates) == 1
    out, err = capfd.readouterr()
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert out == ""


def test_only_the_evaluation_is_made_up_for(place):
    values = {**SMALL, "demonstrations": "d.npz", "eval_episodes": 4}
    whole = imitate(ImitationConfig(**values))
    table = (whole.run_dir / "evaluation.json").read_bytes()
    (log_path,) = whole.run_dir.rglob("progress.csv")
    log = log_path.read_bytes()
    (whole.run_dir / "evaluation.json").unlink()  # as if killed after the training
    assert resume(whole.run_dir) == whole
    assert (whole.run_dir / "evaluation.json").read_bytes() == table
    assert log_path.read_bytes() == log
    with pytest.raises(RunError, match="nothing to resume"):
        resume(whole.run_dir)


def test_as_a_function(place):
    result = imitate(ImitationConfig(**{**SMALL, "demonstrations": "d.npz", "eval_episodes": 0}))
    assert result.comparison is None and result.policy_dir.is_dir()
    shutil.rmtree(result.policy_dir)
    assert resume(result.run_dir).policy_dir == result.policy_dir
