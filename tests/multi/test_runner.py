"""Sweeps on a real local Ray: trials complete, are resumed, retried, counted and looked up."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from aprl.errors import ConfigError, RunError
from aprl.highest_win_rate import CACHE_FILE, best_policies
from aprl.multi import SweepConfig, plan, resume_sweep, sweep
from aprl.multi.runner import RESULTS_FILE, SWEEP_FILE, download
from aprl.multi.trials import check_trials, expand
from aprl.train import train
from aprl.training.config import TrainConfig

DATA = Path(__file__).parents[2] / "data"

TINY = {
    "env_name": "aprl/RockPaperScissors-v0",
    "embed_type": "constant",
    "embed_path": "0",
    "num_env": 8,
    "batch_size": 256,
    "total_timesteps": 1024,
    "rew_shape": False,
    "max_episode_steps": 8,
    "checkpoint_interval": 256,
}


def tiny(tmp_path, **entries):
    values = {
        "root_dir": str(tmp_path / "sweeps"),
        "exp_name": "tiny",
        "axes": {"seed": [0, 1]},
        "train": TINY,
        "num_cpus": 2,
        "progress": False,
    }
    return SweepConfig(**values | entries)


@pytest.fixture(scope="module")
def ray_once():
    """One Ray for the tests of this module that do not start it themselves."""
    from aprl.multi.cluster import connected

    with connected(None, 2) as ray:
        yield ray


def test_all_trials_complete_and_the_best_policies_are_cached(tmp_path, ray_once):
    config = tiny(tmp_path, axes={"seed": [0, 1], "embed_path": ["0", "1"]})
    result = sweep(config)
    frame = result.frame
    assert list(frame["state"]) == ["completed"] * 4
    assert list(frame["num_timesteps"]) == [1024] * 4
    assert (frame["games"] == 1024 // 8).all()
    assert ((frame["low"] <= frame["win_rate"]) & (frame["win_rate"] <= frame["high"])).all()
    assert (result.directory / CACHE_FILE).is_file()
    written = pd.read_csv(result.directory / RESULTS_FILE)
    assert list(written["trial"]) == [0, 1, 2, 3]
    best = best_policies(result.directory)
    assert {entry.path for entry in best} == {"constant:0", "constant:1"}
    for row in frame.itertuples():
        run = json.loads((result.directory / row.run_dir / "config.json").read_text())
        assert run["seed"] == row.seed


def test_a_trial_that_fails_does_not_take_the_others_with_it(tmp_path, ray_once):
    config = tiny(tmp_path, max_failures=1, axes={"seed": [0, 1]})
    directory = tmp_path / "sweeps" / "tiny"
    planned = plan(config)
    # The second trial cannot write: a file stands where its directory should be.
    from aprl.multi import runner as module

    made = module._new_directory

    def blocked(*arguments):
        path = made(*arguments)
        (path / "runs").mkdir()
        (path / "runs" / planned.trials[1].name).write_text("in the way")
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_new_directory", blocked)
        result = sweep(config)
    assert list(result.frame["state"]) == ["completed", "failed"]
    assert result.failed == 1
    assert "File exists" in result.frame["error"][1]
    (result.directory / "runs" / planned.trials[1].name).unlink()
    again = resume_sweep(result.directory, progress=False)
    assert list(again.frame["state"]) == ["completed", "completed"]
    assert again.directory == result.directory and directory in result.directory.parents


def test_asha_stops_trials_that_lose(tmp_path, ray_once):
    config = tiny(
        tmp_path,
        scheduler="asha",
        scheduler_params={"grace_period": 256, "reduction_factor": 2},
        max_concurrent=1,
        train=TINY | {"total_timesteps": 4096},
        # With probability one, rock: a learner that cannot learn wins a third of its games.
        axes={"learning_rate": [0.03, 0.0, 0.0, 0.0]},
    )
    frame = sweep(config).frame
    assert frame["state"][0] == "completed"
    assert (frame["state"][1:] == "stopped").any()
    assert frame["num_timesteps"][1:].min() < 4096


def test_optuna_draws_the_axes(tmp_path, ray_once):
    pytest.importorskip("optuna")
    config = tiny(
        tmp_path,
        search_alg="optuna",
        num_samples=3,
        axes={"learning_rate": {"loguniform": [1e-4, 1e-2]}, "embed_path": ["2"]},
    )
    result = sweep(config)
    assert list(result.frame["state"]) == ["completed"] * 3
    assert result.frame["learning_rate"].between(1e-4, 1e-2).all()
    assert result.frame["learning_rate"].nunique() == 3
    assert set(result.frame["embed_path"].astype(str)) == {"2"}


def test_runs_can_travel_through_storage(tmp_path, ray_once):
    store = tmp_path / "store"
    config = tiny(tmp_path, storage_path=store.as_uri())
    result = sweep(config)
    assert list(result.frame["state"]) == ["completed"] * 2
    assert not (result.directory / "runs").exists()
    here = download(f"{store.as_uri()}/{result.directory.name}", tmp_path / "downloaded")
    assert {entry.path for entry in best_policies(here)} == {"constant:0"}


OPPONENT = {"embed_type": "constant", "embed_path": "0"}
ANT = "multicomp/RunToGoalAnts-v1"


def test_a_sweep_of_defences_on_two_games(tmp_path, ray_once):
    """Adversaries are named by the tree that they are in, and looked up by each trial."""
    small = {k: v for k, v in TINY.items() if k not in ("embed_type", "embed_path", "env_name")}
    tree = tmp_path / "adversaries"
    made = {"env_name": TINY["env_name"], "root_dir": str(tmp_path / "victims"), "progress": False}
    victim = train(TrainConfig(**small | made | {**OPPONENT, "embed_index": 1}))
    against = {"embed_index": 0, "embed_type": "ppo", "embed_path": str(victim.run_dir)}
    train(TrainConfig(**small | made | against | {"root_dir": str(tree)}))
    ants = {
        "load_policy": {"type": "ppo", "path": str(DATA / "victims/RunToGoalAnts-v1")},
        "adversaries": str(DATA / "adversaries"),
    }
    joint = [
        [made["env_name"], {"type": "ppo", "path": str(victim.run_dir)}, str(tree)],
        [ANT, ants["load_policy"], ants["adversaries"]],
    ]
    shared = {"defence": "single", "normalize_observations": False, "batch_size": 512}
    config = tiny(
        tmp_path,
        axes={"env_name:load_policy:adversaries": joint, "seed": [0, 1]},
        train=small | shared | {"rew_shape": True, "max_episode_steps": 20},
    )
    result = sweep(config)
    assert list(result.frame["state"]) == ["completed"] * 4
    assert result.frame["games"].min() > 10
    best = best_policies(result.directory)
    # Hardened victims are found by the victim that they were made of.
    assert {(entry.env_name, entry.embed_index) for entry in best} == {
        (TINY["env_name"], 1),
        (ANT, 1),
    }
    looked_up = json.loads(
        (result.directory / result.frame["run_dir"][0] / "config.json").read_text()
    )
    assert str(tree) in looked_up["embed_paths"][0]


def test_a_trial_whose_process_dies_goes_on_from_its_checkpoint(tmp_path, ray_once):
    config = tiny(
        tmp_path,
        axes={"seed": [0]},
        train=TINY | {"total_timesteps": 8192, "checkpoint_interval": 256},
    )
    killed_at = []

    def kill_once():
        end = time.monotonic() + 60
        while time.monotonic() < end and not killed_at:
            for lock in (tmp_path / "sweeps").glob("tiny/*/runs/*/*/.lock"):
                steps = _steps(lock.parent)
                if steps >= 1024:
                    os.kill(int(lock.read_text()), signal.SIGKILL)
                    killed_at.append(steps)
                    return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_once)
    killer.start()
    result = sweep(config)
    killer.join()
    assert killed_at and killed_at[0] < 8192
    assert list(result.frame["state"]) == ["completed"]
    assert len(list(result.directory.glob("runs/*/*/config.json"))) == 1
    rows = pd.read_csv(result.directory / result.frame["run_dir"][0] / "rl" / "progress.csv")
    assert rows["time/total_timesteps"].is_unique and len(rows) == 8192 // 256


COMMAND = """
import sys
from aprl.multi import SweepConfig, sweep
if __name__ == "__main__":
    import json
    sweep(SweepConfig(**json.loads(sys.argv[1])))
"""


@pytest.fixture
def ray_directory():
    """A short path, since sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def test_a_killed_sweep_goes_on_where_it_was(tmp_path, ray_directory):
    config = tiny(
        tmp_path,
        axes={"seed": [0, 1, 2, 3]},
        train=TINY | {"total_timesteps": 8192, "checkpoint_interval": 512},
    )
    script = tmp_path / "run.py"
    script.write_text(COMMAND)
    environment = os.environ | {"RAY_TMPDIR": str(ray_directory)}
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, script, json.dumps(config.to_dict())],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )
        try:
            root = tmp_path / "sweeps" / "tiny"
            found = _wait(lambda: _two_begun(root), process, tmp_path / "log")
        finally:
            process.kill()
            process.wait()
            _kill_ray(ray_directory)
    directory = next(root.iterdir())
    before = {run: _steps(run) for run in found}
    assert all(0 < steps < 8192 for steps in before.values())
    result = resume_sweep(directory, progress=False)
    assert list(result.frame["state"]) == ["completed"] * 4
    assert list(result.frame["num_timesteps"]) == [8192] * 4
    runs = sorted(directory.glob("runs/*/*/config.json"))
    assert len(runs) == 4  # none was begun anew
    for run in found:
        rows = pd.read_csv(run / "rl" / "progress.csv")
        steps = rows["time/total_timesteps"]
        assert steps.is_monotonic_increasing and steps.is_unique
        assert json.loads((run / "status.json").read_text())["status"] == "completed"
        newest = rows[["game_count_win0", "game_count_win1", "game_count_tie"]].sum(axis=1)
        assert newest.min() > 0
    assert {entry.path for entry in best_policies(directory)} == {"constant:0"}


def _two_begun(root):
    runs = [p.parent for p in root.glob("*/runs/*/*/checkpoint")]
    return runs if len(runs) == 2 and all(_steps(run) >= 1024 for run in runs) else None


def _steps(run):
    try:
        return json.loads((run / "status.json").read_text())["num_timesteps"]
    except (OSError, ValueError):
        return 0


def _wait(condition, process, log, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        if process.poll() is not None:
            raise AssertionError(f"ended early: {log.read_text()}")
        time.sleep(0.02)
    raise AssertionError(f"nothing happened: {log.read_text()}")


def _kill_ray(session):
    """Ray's own processes are in sessions of their own; a SIGKILL of a machine takes them too."""
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(session).encode() in status.read_bytes():
                os.kill(int(status.parent.name), signal.SIGKILL)
        except OSError:
            continue


def test_a_sweep_of_another_version_is_refused(tmp_path):
    directory = tmp_path / "sweep"
    directory.mkdir()
    (directory / SWEEP_FILE).write_text(json.dumps({"format": 1, "aprl_version": "0.0.1"}))
    with pytest.raises(RunError, match=r"begun with aprl 0\.0\.1"):
        resume_sweep(directory)


@pytest.mark.parametrize(
    "content, complaint",
    [
        (None, "is no sweep"),
        ("[]", "does not describe a sweep"),
        ("{", "not readable JSON"),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path, content, complaint):
    if content is not None:
        (tmp_path / SWEEP_FILE).write_text(content)
    with pytest.raises(RunError, match=complaint):
        resume_sweep(tmp_path)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(RunError, match="nowhere is no sweep"):
        resume_sweep(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "entries, complaint",
    [
        ({"axes": {}}, "nothing to sweep"),
        ({"grid": "papers"}, "papers"),
        ({"scheduler": "hyperband"}, "hyperband"),
        ({"search_alg": "hyperopt"}, "hyperopt"),
        ({"version": "v7"}, "v7"),
        ({"train": {"num_envs": 3}}, "num_envs"),
        ({"train": {"root_dir": "x"}}, "chosen by the sweep"),
        ({"max_failures": -1}, "max_failures"),
        ({"scheduler_params": {"grace_period": 1}}, "without scheduler"),
        ({"scheduler": "asha", "scheduler_params": {"eta": 1}}, "eta"),
        ({"axes": {"seed": 3}}, "must be a list"),
    ],
)
def test_bad_sweeps_are_refused(tmp_path, entries, complaint):
    with pytest.raises(ConfigError, match=complaint):
        tiny(tmp_path, **entries).check()


def test_trials_that_cannot_be_are_refused_before_any_is_run(tmp_path):
    with pytest.raises(ConfigError, match="learning_rate"):
        plan(tiny(tmp_path, axes={"learning_rate": [1e-3, 7]}))
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.parametrize("on_missing", ["warn", "error"])
def test_trials_that_lack_a_policy(tmp_path, on_missing):
    config = tiny(
        tmp_path,
        on_missing=on_missing,
        axes={"embed_type:embed_path": [["constant", "0"], ["ppo", str(tmp_path / "gone")]]},
    )
    planned = plan(config)
    if on_missing == "error":
        with pytest.raises(RunError, match="gone"):
            planned.require_trials(on_missing)
    else:
        planned.require_trials(on_missing)
        assert [trial.number for trial in planned.trials] == [0]
        assert len(planned.left_out) == 1 and "gone" in planned.left_out[0]


def test_a_plan_is_a_table(tmp_path):
    axes = {
        "embed_type:embed_path": [["constant", "0"], ["ppo", str(tmp_path / "gone")]],
        "seed": [4, 5],
    }
    frame = plan(tiny(tmp_path, axes=axes)).to_frame()
    assert list(frame["trial"]) == [0, 1, 2, 3]
    assert list(frame["seed"]) == [4, 5, 4, 5]
    assert list(frame["embed_type"]) == ["constant"] * 2 + ["ppo"] * 2


def test_nothing_left_to_run_is_an_error(tmp_path):
    config = tiny(tmp_path, axes={"embed_type:embed_path": [["ppo", str(tmp_path / "gone")]]})
    with pytest.raises(RunError, match="gone"):
        sweep(config)
    assert not (tmp_path / "sweeps").exists()


def test_victims_without_adversary_are_named(tmp_path):
    zoo = Path("data/agent_zoo")
    config = SweepConfig(
        grid="finetune_defense", adversaries=str(tmp_path), train={"zoo_dir": str(zoo)}
    )
    usable, unusable = check_trials(expand(config.make_grid(), 0))
    assert not usable and len(unusable) == 55


def test_a_trial_has_as_many_cpus_as_threads(tmp_path):
    from aprl.multi.runner import cpus_per_trial

    assert cpus_per_trial(plan(tiny(tmp_path))) == 1
    env = {"env_name": "multicomp/SumoAnts-v1", "embed_type": "zero", "rew_shape": True}
    assert cpus_per_trial(plan(tiny(tmp_path, train=TINY | env | {"num_threads": 3}))) == 3


def test_more_cpus_than_there_are_is_refused(tmp_path, ray_once):
    with pytest.raises(ConfigError, match="needs 64 CPUs, but Ray offers 2"):
        sweep(tiny(tmp_path, train=TINY | {"num_threads": 64}))
    shutil.rmtree(tmp_path / "sweeps")
