"""The main job on a tiny game: find the adversary late, defend, compare before and after."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from aprl.configs.train import NAMED_CONFIGS
from aprl.envs import make_vec
from aprl.envs.description import describe_game
from aprl.errors import ConfigError, RunError
from aprl.experiment import command_line
from aprl.files import read_json
from aprl.locks import DirectoryLock
from aprl.policies import ActorCriticMlp, MlpPolicy, save_policy
from aprl.policies.zoo import zoo_directory
from aprl.stats import disjoint
from aprl.train import choose_opponents, newest_unfinished, resume, train, train_experiment
from aprl.training.config import TrainConfig
from aprl.training.evaluate import opponent_wins

SMALL = {
    "env_name": "aprl/RockPaperScissors-v0",
    "num_env": 8,
    "batch_size": 512,
    "learning_rate": 1e-2,
    "total_timesteps": 8192,
    "progress": False,
}


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    """A victim that plays rock, and a tree of runs with an adversary trained against it."""
    root = tmp_path_factory.mktemp("arena")
    space = make_vec("aprl/RockPaperScissors-v0", 1).action_spaces[0]
    network = ActorCriticMlp(3, 3, discrete=True)
    network.policy_tower[-1].bias.data[:] = network.policy_tower[-1].bias.new_tensor([4.0, 0, 0])
    victim = save_policy(MlpPolicy(network, space, space), root / "victim", {})
    train(
        TrainConfig(**SMALL, root_dir=str(root / "tree"), embed_type="ppo", embed_path=str(victim))
    )
    return root


def defence(root, arena, **changes):
    return TrainConfig(
        **{
            **SMALL,
            "root_dir": str(root / "hardened"),
            "load_policy": {"type": "ppo", "path": str(arena / "victim")},
            "normalize_observations": False,
            "adversaries": str(arena / "tree"),
            "normal_opponent": {"type": "constant", "path": "2"},
            "eval_episodes": 64,
            **changes,
        }
    )


def test_defence_finds_the_adversary_and_lowers_its_win_rate(arena, tmp_path):
    config = defence(tmp_path, arena)
    result = train(config)
    assert result.before is not None
    assert set(result.before) == set(result.after) == {"adversary", "normal opponent"}
    resolved = TrainConfig.from_dict(
        {k: v for k, v in read_json(result.run_dir / "config.json").items() if k != "fingerprints"}
    )
    assert resolved.embed_index == 1 and resolved.agent_idx == 0
    early, late = (opponent_wins(resolved, s["adversary"]) for s in (result.before, result.after))
    assert early.games == late.games == 64
    assert early.rate > 0.9 and late.rate < 0.1 and disjoint(early, late)
    saved = read_json(result.run_dir / "evaluation.json")
    assert saved["before"]["adversary"]["win1"] == early.wins
    assert saved["after"]["adversary"]["interval1"] == list(late.interval)


def test_adversary_is_found_after_tree_and_victim_moved(arena, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(arena, moved)
    result = train(defence(tmp_path, moved, total_timesteps=512, eval_episodes=0))
    embedded = read_json(result.run_dir / "config.json")["embed_paths"]
    assert embedded[0].startswith(str(moved))
    assert result.before is None and result.after == {}


def test_victim_without_an_adversary(arena, tmp_path):
    space = make_vec("aprl/RockPaperScissors-v0", 1).action_spaces[0]
    other = MlpPolicy(ActorCriticMlp(3, 3, discrete=True), space, space)
    path = save_policy(other, tmp_path / "stranger", {})
    with pytest.raises(RunError, match="stranger"):
        train(defence(tmp_path, arena, load_policy={"type": "ppo", "path": str(path)}))
    with pytest.raises(ConfigError, match="load_policy"):
        train(defence(tmp_path, arena, load_policy={}))
    assert not (tmp_path / "hardened").exists()


def test_fine_tuning_with_learning_rate_zero_changes_nothing(arena, tmp_path):
    result = train(defence(tmp_path, arena, learning_rate=0.0, total_timesteps=512))
    assert result.before == result.after


def test_resumed_defence_gives_the_same_table(arena, tmp_path):
    changes = {"total_timesteps": 1536, "checkpoint_interval": 512}
    whole = train(defence(tmp_path, arena, **changes))
    stopped = tmp_path / "stopped"
    shutil.copytree(whole.run_dir, stopped)
    shutil.rmtree(stopped / "final_model")
    shutil.rmtree(stopped / "checkpoint" / f"{1024:012d}")
    table = read_json(stopped / "evaluation.json")
    (stopped / "evaluation.json").write_text(json.dumps({"before": table["before"]}))
    assert resume(stopped).after == whole.after
    assert read_json(stopped / "evaluation.json") == table


def test_command_line_stops_on_sigterm_and_goes_on_with_resume(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    settings = {**SMALL, "embed_type": "zero", "batch_size": 64, "checkpoint_interval": 64}
    entries = [f"{k}={v}" for k, v in {**settings, "exp_name": "job"}.items()]
    command = [sys.executable, "-m", "aprl.train", "with", *entries, "total_timesteps=1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("data/baselines/*-job/checkpoint/[0-9]*/state.json")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM and out == ""
    (run,) = tmp_path.glob("data/baselines/*-job")
    assert err.count("\n") == 1 and f"stopped by SIGTERM at {_steps(run):,} steps" in err
    assert f"resume=data/baselines/{run.name}" in err
    status = read_json(run / "status.json")
    assert status["status"] == "interrupted" and status["num_timesteps"] == _steps(run) > 0

    config = read_json(run / "config.json")
    (run / "config.json").write_text(json.dumps({**config, "total_timesteps": _steps(run) + 64}))
    with pytest.raises(SystemExit) as end:
        command_line(train_experiment, "data/baselines", ["train", "with", "resume=True"])
    assert end.value.code == 0
    assert f"policy: data/baselines/{run.name}/final_model" in capfd.readouterr().out
    assert read_json(run / "status.json")["status"] == "completed"


def _steps(run):
    """Steps of the newest checkpoint."""
    return max(int(path.name) for path in (run / "checkpoint").iterdir())


def test_newest_unfinished_run(tmp_path):
    def make(name, finished=False):
        (tmp_path / name / "checkpoint").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
        if finished:
            (tmp_path / name / "final_model").mkdir()
        return tmp_path / name

    with pytest.raises(RunError, match="no unfinished run in"):
        newest_unfinished(str(tmp_path))
    older = make("20260101_000000-x")
    make("20260103_000000-x", finished=True)
    assert newest_unfinished(str(tmp_path)) == older
    newer = make("20260102_000000-another-experiment")
    (tmp_path / "sacred" / "checkpoint").mkdir(parents=True)  # no run
    assert newest_unfinished(str(tmp_path)) == newer
    lock = DirectoryLock(newer)
    lock.acquire()
    assert newest_unfinished(str(tmp_path)) == older  # a process is at work on the newer one
    lock.release()
    assert newest_unfinished(str(tmp_path)) == newer


@pytest.fixture(scope="module")
def stand_in_zoo(tmp_path_factory):
    """Untrained players under the names of the published ones of You Shall Not Pass."""
    zoo = tmp_path_factory.mktemp("zoo")
    game = describe_game("multicomp/YouShallNotPassHumans-v1")
    players = zip(game.observation_spaces, game.action_spaces, strict=True)
    for index, (observations, actions) in enumerate(players):
        network = ActorCriticMlp(observations.shape[0], actions.shape[0])
        policy = MlpPolicy(network, observations, actions)
        save_policy(policy, zoo_directory(zoo, "YouShallNotPassHumans", index, "1"), {})
    return str(zoo)


@pytest.mark.parametrize("name", NAMED_CONFIGS)
def test_named_configs_are_complete(name, stand_in_zoo):
    named = replace(TrainConfig(), zoo_dir=stand_in_zoo, **NAMED_CONFIGS[name])
    config = choose_opponents(named).resolve()
    assert config == config.resolve()
    if name == "finetune_defence_walker":
        assert any("YouShallNotPassHumans-v1-zoo1" in path for path in config.embed_paths)


def test_both_spellings_are_one_config():
    assert NAMED_CONFIGS["finetune_defence"] == NAMED_CONFIGS["finetune_defense"]
