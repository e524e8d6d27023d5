"""What a trial of the commands found to end in a stack trace, or to be swallowed in silence."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aprl.errors import PolicyError
from aprl.experiment import command_line
from aprl.files import read_json
from aprl.locks import DirectoryLock, is_locked
from aprl.policies import import_zoo
from aprl.score_agent import score_experiment as SCORE
from aprl.train import train_experiment as TRAIN
from tests.test_cli_errors import ANTS, RPS, fails  # noqa: F401 - a fixture

SMALL = [
    *(RPS, "embed_type=zero", "num_env=8", "batch_size=256", "rl_args.net_arch=[8]"),
    *("progress=False", "total_timesteps=768", "checkpoint_interval=256"),
]


def run(experiment, *arguments):
    """Exit code of a command line."""
    with pytest.raises(SystemExit) as end:
        command_line(experiment, "data/out", ["prog", *arguments])
    return end.value.code or 0


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A finished run in `data/baselines`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    assert run(TRAIN, "with", *SMALL) == 0
    (path,) = Path("data/baselines").glob("*-default")
    return path


@pytest.fixture
def unfinished(finished):
    """The same without its final policy, as if stopped after the last checkpoint."""
    for name in ("policy.json", "policy.safetensors"):
        (finished / "final_model" / name).unlink()
    (finished / "final_model").rmdir()
    return finished


@pytest.mark.parametrize("experiment", [TRAIN, SCORE], ids=["train", "score"])
@pytest.mark.parametrize("argument", ["--help", "-h", "help"])
def test_help(experiment, argument, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(experiment, argument) == 0
    out = capfd.readouterr().out
    assert "usage: python -m" in out and "num_env = 64  # environments in the batch" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["finetune_defence"], "did you mean: with finetune_defence?"),
        (["num_env=3"], "did you mean: with num_env=3?"),
        (["trane"], "unknown command 'trane'"),
        (["with"], "nothing follows 'with'"),
        (["with", "--bogus"], "unknown option '--bogus'"),
        (["with", "README.md"], "config file 'README.md' is not supported"),
        (["with", "data"], "'data' after 'with' is a directory"),
        (["with", "damaged.json"], "damaged.json is not readable JSON"),
        (["with", "list.json"], "list.json' does not hold entries"),
        (["with", "code.json"], "holds Python objects"),
        (["with", "seed.json"], "seed must be a whole number of at least 0, got -1"),
        (["with", "seed=4294967296"], "seed must be a whole number of at most 4294967295"),
        (["with", "seed=-1"], "seed must be a whole number of at least 0"),
        (["with", "resume="], "resume"),
        (["with", "resume=False"], "resume is empty"),
        (["with", "resume=x", "num_env=3"], "num_env cannot be given too"),
        (["with", "root_dir="], "root_dir is empty"),
        (["with", "root_dir=None"], "root_dir must be"),
        (["with", "adversaries="], "adversaries is empty"),
        (["with", "load_policy.type=[1]", "load_policy.path=x"], "policy type"),
        (["with", "load_policy.type=5"], "load_policy"),
        (["with", "load_policy.type=zoo"], "load_policy.path is missing"),
        (["with", "batch_size=100000000000", RPS, "embed_type=zero"], "memory"),
        (["with", "num_env=10000000000000000000", RPS], "num_env must be"),
        (["with", RPS, "embed_type=zero", "rl_args.nminibatches=True"], "nminibatches"),
        (["with", RPS, "embed_type=zero", "rl_args.n_epochs=2", "rl_args.noptepochs=2"], "noptep"),
        (["with", RPS, "embed_type=zero", "rl_args.vf_coef=-1"], "vf_coef"),
        (["with", RPS, "embed_type=zero", "rl_args.log_std_init=-1"], "log_std_init"),
        (["with", ANTS, "embed_type=zero", "rl_args.log_std_init=50"], "log_std_init"),
        (["with", RPS, "embed_type=zero", "rew_shape_params.anneal_frac=True"], "anneal_frac"),
        (
            ["with", RPS, "embed_type=zero", "rew_shape_params.weights={'dense':{},'sparse':{}}"],
            "no reward term has a weight",
        ),
        (["with", "embed_path=٣"], "٣"),
    ],
)
def test_training_says_in_one_line_what_is_wrong(tmp_path, monkeypatch, capfd, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text("# not a config\n")
    Path("data").mkdir()
    Path("damaged.json").write_text('{"seed": ')
    Path("list.json").write_text("[1]")
    Path("code.json").write_text('{"exp_name": {"py/object": "os.system"}}')
    Path("seed.json").write_text('{"seed": -1}')
    before = sorted(tmp_path.rglob("*"))
    if "with" in arguments and RPS in arguments:  # quick, should it be taken after all
        small = ["total_timesteps=64", "num_env=8", "batch_size=64", "progress=False"]
        arguments = ["with", *small, *arguments[1:]]
    code = run(TRAIN, *arguments)
    out, err = capfd.readouterr()
    assert code == 1 and err.startswith("error: ") and err.count("\n") == 1, err
    assert message in err and out == ""
    left = [p for p in tmp_path.rglob("*") if p not in before and "sacred" not in str(p)]
    assert not [p for p in left if p.is_file()]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("num_threads=100000000000000000000", "num_threads"),
        ("num_env=99999999999999999999", "num_env"),
        ("episodes=1000000000000000000000000000000", "episodes"),
        ("seed=4294967296", "seed"),
        ("agent_a_path=", "agent_a_path"),
    ],
)
def test_scoring_says_in_one_line_what_is_wrong(fails, entry, message):  # noqa: F811
    policies = ["agent_a_type=random", "agent_b_type=random", "progress=False"]
    assert message in fails(SCORE, ANTS, *policies, entry)


def test_no_finished_game_is_no_score(fails):  # noqa: F811
    line = fails(SCORE, RPS, "agent_a_type=zero", "agent_b_type=zero", "episodes=8", "timesteps=8")
    assert "no game finished within 8 time steps" in line


def test_constants_of_several_components(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    constant = ",".join(["0.1"] * 8)
    entries = ["agent_a_type=constant", f"agent_a_path={constant}", "agent_b_type=zero"]
    bounds = ["max_episode_steps=3", "episodes=2", "num_threads=1", "progress=False"]
    assert run(SCORE, "with", ANTS, *entries, *bounds) == 0, capfd.readouterr().err


def test_old_names_are_announced_once(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run(TRAIN, "with", *SMALL, "rl_algo=ppo2", "total_timesteps=256") == 0
    err = capfd.readouterr().err
    assert err == "warning: rl_algo 'ppo2' is deprecated; use 'ppo'\n"


def test_import_of_a_zoo_at_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, code in (([], 1), (["x", "y"], 1), (["nowhere"], 1), (["--help"], 0)):
        process = subprocess.run(
            [sys.executable, "-m", "aprl.policies.import_zoo", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == code
        assert process.stderr.count("\n") == code
    (tmp_path / "empty").mkdir()
    with pytest.raises(PolicyError, match="no zoo policy in empty"):
        import_zoo.main(["empty"])


# Run directories.


def test_only_the_newest_checkpoints_are_kept(finished):
    assert [p.name for p in sorted((finished / "checkpoint").iterdir())] == [
        f"{256:012d}",
        f"{512:012d}",
    ]
    assert run(TRAIN, "with", *SMALL, "keep_checkpoints=1", "exp_name=one") == 0
    (path,) = Path("data/baselines").glob("*-one")
    assert [p.name for p in (path / "checkpoint").iterdir()] == [f"{512:012d}"]


def test_two_processes_do_not_work_in_one_directory(unfinished, capfd):
    lock = DirectoryLock(unfinished)
    lock.acquire()
    assert is_locked(unfinished)
    capfd.readouterr()
    before = (unfinished / "rl/progress.csv").read_bytes()
    assert run(TRAIN, "with", f"resume={unfinished}") == 1
    assert "is in use by another process" in capfd.readouterr().err
    assert run(TRAIN, "with", "resume=True") == 1
    assert "no unfinished run" in capfd.readouterr().err
    assert (unfinished / "rl/progress.csv").read_bytes() == before
    lock.release()
    assert not is_locked(unfinished)
    assert run(TRAIN, "with", f"resume={unfinished}") == 0


def test_a_lock_ends_with_its_process(tmp_path):
    code = (
        "import sys, time\nfrom aprl.locks import DirectoryLock\n"
        "lock = DirectoryLock(sys.argv[1])\nlock.acquire()\nprint('held', flush=True)\n"
        "time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    assert is_locked(tmp_path)
    process.kill()
    process.wait()
    assert not is_locked(tmp_path)
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "[]", "config.json holds no settings"),
        ("config.json", "null", "config.json holds no settings"),
        ("config.json", '{"env_name": "x", "what": 1}', "config.json"),
        ("config.json", {"rl_args": {"net_arch": [9]}}, "rl_args"),
        ("config.json", {"normalize": False}, "normalize"),
        ("rl/progress.csv", b"\xff\xfe", "progress.csv is damaged"),
        ("rl/progress.csv", "time/total_timesteps,a\nabc,1\n", "progress.csv is damaged"),
        ("status.json", "[]", None),
    ],
)
def test_damaged_run_directories(unfinished, capfd, file, content, message):
    path = unfinished / file
    if isinstance(content, dict):
        content = json.dumps({**read_json(path), **content})
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    capfd.readouterr()
    code = run(TRAIN, "with", f"resume={unfinished}")
    err = capfd.readouterr().err
    if message is None:
        assert code == 0, err
    else:
        assert code == 1 and err.startswith("error: ") and err.count("\n") == 1, err
        assert message in err


@pytest.mark.parametrize("content", ["[]", "{}", "null", '{"num_timesteps": 512}', "{"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(unfinished, capfd, content):
    newest = max((unfinished / "checkpoint").iterdir())
    (newest / "state.json").write_text(content)
    assert run(TRAIN, "with", f"resume={unfinished}") == 0, capfd.readouterr().err
    for checkpoint in (unfinished / "checkpoint").iterdir():
        (checkpoint / "state.json").write_text(content)
    for name in ("policy.json", "policy.safetensors"):
        (unfinished / "final_model" / name).unlink()
    (unfinished / "final_model").rmdir()
    capfd.readouterr()
    assert run(TRAIN, "with", f"resume={unfinished}") == 1
    err = capfd.readouterr().err
    assert "no usable checkpoint" in err and err.count("\n") == 1


def test_policies_that_changed_since_the_run_began(tmp_path, monkeypatch, rps_policy, capfd):
    monkeypatch.chdir(tmp_path)
    entries = [entry for entry in SMALL if entry != "embed_type=zero"]
    embedded = ["embed_type=ppo", f"embed_path={rps_policy}"]
    assert run(TRAIN, "with", *entries, *embedded) == 0
    (path,) = Path("data/baselines").glob("*-default")
    trained = path / "final_model"
    for name in ("policy.json", "policy.safetensors"):
        (trained / name).replace(rps_policy / name)  # another policy at the embedded one's place
    trained.rmdir()
    capfd.readouterr()
    assert run(TRAIN, "with", f"resume={path}") == 1
    err = capfd.readouterr().err
    assert "was begun with another embedded policy" in err and err.count("\n") == 1


def test_a_policy_of_another_game_is_announced(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run(TRAIN, "with", *SMALL) == 0
    (path,) = Path("data/baselines").glob("*-default")
    capfd.readouterr()
    entries = ["agent_a_type=ppo", f"agent_a_path={path}", "agent_b_type=zero", "episodes=2"]
    assert run(SCORE, "with", RPS, *entries, "progress=False") == 0
    err = capfd.readouterr().err
    assert err.count("\n") == 1 and "was trained as agent 1" in err and "plays agent 0" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_resume_from_a_folder_that_cannot_be_written(unfinished, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o555)
    monkeypatch.chdir(elsewhere)
    assert run(TRAIN, "with", f"resume={tmp_path / unfinished}") == 0


def test_records_of_a_resumed_run_lie_beside_it(unfinished, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run(TRAIN, "with", f"resume={tmp_path / unfinished}") == 0
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_signal_during_the_evaluation(tmp_path, monkeypatch, rps_policy, stage):
    """The run stops cleanly, says how to go on, and makes up for the missing games."""
    monkeypatch.chdir(tmp_path)
    entries = [e for e in SMALL if not e.startswith(("rl_args", "progress"))]
    command = [
        *(sys.executable, "-m", "aprl.train", "with", *entries, "normalize_observations=False"),
        *("load_policy.type=ppo", f"load_policy.path={rps_policy}", "embed_type=random"),
    ]
    games = 4_000 if stage == "before" else 2_000
    process = subprocess.Popen(
        [*command, f"eval_episodes={games}", "progress=False"], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    wanted = "status.json" if stage == "before" else "final_model/policy.json"
    while not (found := list(tmp_path.glob(f"data/baselines/*-default/{wanted}"))):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    (path,) = tmp_path.glob("data/baselines/*-default")
    assert process.returncode == 128 + signal.SIGTERM, err
    assert err.count("\n") == 1 and f"resume=data/baselines/{path.name}" in err
    assert read_json(path / "status.json")["status"] == "interrupted" and found
    assert run(TRAIN, "with", f"resume={path}") == 0
    scores = read_json(path / "evaluation.json")
    assert {when: scores[when]["embedded"]["games"] for when in scores} == {
        "before": games,
        "after": games,
    }
    assert read_json(path / "status.json")["status"] == "completed"
