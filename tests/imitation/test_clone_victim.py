"""A victim that plays scissors is cloned from what it was seen to do, and beaten by proxy."""

from dataclasses import replace

import numpy as np
import pytest

from aprl.errors import ConfigError, DemonstrationError, PolicyError
from aprl.experiment import command_line
from aprl.files import read_json
from aprl.imitation.clone_victim import CloneConfig, clone_experiment, clone_victim
from aprl.imitation.demonstrations import load_demonstrations
from aprl.policies import load_saved
from aprl.score_agent import ScoreConfig, score
from aprl.train import train
from aprl.training.config import TrainConfig

RPS = "aprl/RockPaperScissors-v0"


@pytest.fixture
def config(tmp_path):
    return CloneConfig(
        out=str(tmp_path / "clone"),
        env_name=RPS,
        victim_type="constant",
        victim_path="2",
        opponent_type="random",
        opponent_path="none",
        episodes=8,
        num_env=8,
        epochs=40,
        learning_rate=1e-2,
        eval_episodes=40,
        progress=False,
    )


def test_attack_through_the_clone(config, tmp_path):
    result = clone_victim(config)
    assert result.observed == 8 * 200 and result.action_error == 0.0
    assert result.clone_wins.games == result.victim_wins.games == 40
    assert abs(result.clone_wins.rate - result.victim_wins.rate) < 0.35
    actions, _ = load_saved(result.directory).predict(np.zeros(200, dtype=np.int64))
    assert (actions == 2).mean() > 0.95
    record = read_json(tmp_path / "clone.clone.json")
    assert record["wins"]["clone"]["wins"] == result.clone_wins.wins

    adversary = train(
        TrainConfig(
            root_dir=str(tmp_path / "runs"),
            env_name=RPS,
            num_env=8,
            batch_size=512,
            total_timesteps=8192,
            learning_rate=1e-2,
            embed_type="ppo",
            embed_path=str(result.directory),
            progress=False,
        )
    )
    transfer = score(
        ScoreConfig(
            env_name=RPS,
            agent_a_type="constant",  # the victim itself
            agent_a_path="2",
            agent_b_type="ppo",
            agent_b_path=str(adversary.policy_dir),
            episodes=20,
        )
    )
    assert transfer.win_rate(1).rate > 0.9  # rock beats scissors


def test_from_recorded_play_alone(config, tmp_path):
    clone_victim(replace(config, eval_episodes=0))
    recorded = tmp_path / "clone.npz"
    assert load_demonstrations(recorded).provenance["agent_index"] == 0
    blind = replace(
        config,
        out=str(tmp_path / "blind"),
        demonstrations=str(recorded),
        victim_path=None,
        eval_episodes=0,
    )
    result = clone_victim(blind)
    assert result.clone_wins is None and result.victim_wins is None
    one, two = (load_saved(tmp_path / name).network.state_dict() for name in ("clone", "blind"))
    assert all((one[k] == two[k]).all() for k in one)
    with pytest.raises(DemonstrationError, match=r"recorded from agent 0 .* not from agent 1"):
        clone_victim(replace(blind, agent_idx=1))
    with pytest.raises(DemonstrationError, match="does not exist"):
        clone_victim(replace(blind, demonstrations="nowhere.npz"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"env_name": "aprl/RockPaperScissor-v0"}, ConfigError, "did you mean"),
        ({"victim_path": None}, ConfigError, "give victim_path"),
        ({"victim_type": "ppo", "victim_path": "nowhere"}, PolicyError, "nowhere"),
        ({"agent_idx": 3}, ConfigError, "agent_idx must be 0 or 1"),
        ({"episodes": 0}, ConfigError, "episodes must be"),
        ({"epochs": 0}, ConfigError, "epochs must be"),
    ],
)
def test_what_cannot_work(config, changes, error, message):
    with pytest.raises(error, match=message):
        clone_victim(replace(config, **changes))


def test_command(config, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    observers = list(clone_experiment.observers)
    given = {"victim_type": "constant", "victim_path": 1, "opponent_type": "zero", "epochs": 3}
    given |= {"env_name": RPS, "episodes": 4, "eval_episodes": 4, "progress": False}
    try:
        with pytest.raises(SystemExit) as end:
            updates = [f"{name}={value}" for name, value in given.items()]
            command_line(clone_experiment, "data/clones", ["clone", "with", *updates])
    finally:
        clone_experiment.observers[:] = observers
    assert end.value.code == 0
    out = capfd.readouterr().out
    assert "clone of 800 observed steps" in out and "victim" in out
    assert load_saved("data/clones/RockPaperScissors-v0").network.discrete
