"""Runs in their directories: what they leave behind, resumption, interruption, bad input."""

import json
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from aprl.errors import DemonstrationError, RunError
from aprl.files import read_json
from aprl.imitation.config import ImitationConfig
from aprl.imitation.demonstrations import load_demonstrations, save_demonstrations
from aprl.imitation.run import resume_run, start_run
from aprl.policies import load_saved
from aprl.rewards import load_reward_net
from aprl.score_agent import ScoreConfig, score
from aprl.training.interruption import Interrupted
from tests.imitation.helpers import demonstrations, same, weights

SMALL = {
    "horizon": 20,
    "num_env": 2,
    "batch_size": 40,
    "total_timesteps": 320,
    "rl_args": {"n_epochs": 2, "nminibatches": 2},
    "disc_batch_size": 32,
    "disc_updates": 3,
    "bc_epochs": 3,
    "bc_batch_size": 16,
    "checkpoint_interval": 80,
    "eval_episodes": 3,
    "progress": False,
}


@pytest.fixture(scope="module")
def expert(tmp_path_factory):
    return str(save_demonstrations(demonstrations(), tmp_path_factory.mktemp("d") / "d.npz"))


def config(root, expert, **changes):
    return ImitationConfig(**{**SMALL, "root_dir": str(root), "demonstrations": expert, **changes})


@pytest.mark.parametrize("algorithm", ["gail", "airl", "bc"])
def test_what_a_run_leaves_behind(tmp_path, expert, algorithm):
    run = start_run(config(tmp_path, expert, algorithm=algorithm))
    final = run.train()
    comparison = run.evaluate()
    assert comparison.learned.count == 3 and comparison.expert.mean == 20.0
    policy = load_saved(final)
    actions, _ = policy.predict(np.zeros((2, 4), np.float32))
    assert set(actions) <= {0, 1}
    provenance = read_json(final / "policy.json")["provenance"]
    assert provenance["algorithm"] == algorithm and provenance["env_name"] == "CartPole-v1"
    assert read_json(run.run_dir / "status.json")["status"] == "completed"
    assert read_json(run.run_dir / "evaluation.json")["learned"]["episodes"] == 3
    rows = (run.run_dir / "rl" / "progress.csv").read_text().splitlines()
    assert len(rows) == 1 + (3 if algorithm == "bc" else 8)
    if algorithm != "bc":
        net = load_reward_net(run.run_dir / "reward_net.safetensors")
        assert same(weights(net), weights(run.trainer.reward.net))
        assert len(list((run.run_dir / "rl" / "tb").glob("events*"))) == 1
        assert len(list((run.run_dir / "checkpoint").iterdir())) == 3


def test_resumed_equals_uninterrupted(tmp_path, expert):
    whole = start_run(config(tmp_path, expert))
    final = whole.train()
    stopped = tmp_path / "stopped"
    shutil.copytree(whole.run_dir, stopped)
    shutil.rmtree(stopped / "final_model")
    for later in ("000000000240", "000000000320"):
        shutil.rmtree(stopped / "checkpoint" / later)
    resumed = resume_run(stopped)
    assert resumed.num_timesteps == 160
    again = resumed.train()
    for name in ("policy.safetensors",):
        assert (again / name).read_bytes() == (final / name).read_bytes()
    nets = [load_reward_net(directory) for directory in (stopped, whole.run_dir)]
    assert same(*map(weights, nets))
    columns = []
    for directory in (whole.run_dir, stopped):
        lines = (directory / "rl" / "progress.csv").read_text().splitlines()
        clock = [i for i, name in enumerate(lines[0].split(",")) if name.startswith("time/")]
        columns.append(
            [[c for i, c in enumerate(line.split(",")) if i not in clock] for line in lines]
        )
    assert columns[0] == columns[1]
    with pytest.raises(RunError, match="is complete"):
        resume_run(stopped)


def test_stopped_by_a_signal_and_resumed(tmp_path, expert):
    run = start_run(config(tmp_path, expert, checkpoint_interval=10**6))
    train = run.trainer.train_discriminator

    def interrupted():
        if run.num_timesteps == 120:
            signal.raise_signal(signal.SIGTERM)
        return train()

    run.trainer.train_discriminator = interrupted
    with pytest.raises(Interrupted, match=r"at 120 steps.*aprl\.imitation\.train with resume="):
        run.train()
    assert read_json(run.run_dir / "status.json")["status"] == "interrupted"
    resumed = resume_run(run.run_dir)
    assert resumed.num_timesteps == 120
    reference = start_run(config(tmp_path, expert, checkpoint_interval=10**6))
    ends = [(r.train() / "policy.safetensors").read_bytes() for r in (resumed, reference)]
    assert ends[0] == ends[1]


def test_warm_start_begins_with_the_clone(tmp_path, expert):
    run = start_run(config(tmp_path, expert, warm_start=True, learning_rate=0.0))
    cloned = start_run(config(tmp_path, expert, algorithm="bc"))
    ends = [weights(load_saved(r.train()).network) for r in (run, cloned)]
    assert same(*ends)


def test_a_game_against_an_opponent(tmp_path):
    recorded = tmp_path / "line.npz"
    score(
        ScoreConfig(
            env_name="aprl/RockPaperScissors-v0",
            agent_a_type="constant",
            agent_a_path="2",
            agent_b_type="random",
            episodes=4,
            num_env=2,
            max_episode_steps=20,
            record=str(recorded),
        )
    )
    episodes = load_demonstrations(recorded)
    assert [len(t) for t in episodes.trajectories] == [20] * 4
    assert all((t.actions == 2).all() for t in episodes.trajectories)
    run = start_run(
        config(
            tmp_path,
            str(recorded),
            env_name="aprl/RockPaperScissors-v0",
            env_options={"max_episode_steps": 20},
            horizon=None,
            opponent_type="random",
            total_timesteps=1600,
            batch_size=80,
            learning_rate=1e-2,
        )
    )
    policy = load_saved(run.train())
    actions, _ = policy.predict(np.zeros(100, dtype=np.int64))
    assert (actions == 2).mean() > 0.8
    shutil.rmtree(run.run_dir / "final_model")
    assert resume_run(run.run_dir).num_timesteps == 1600


def test_bad_input_leaves_no_run_behind(tmp_path, expert):
    for changes, message in (
        ({"demonstrations": "nowhere.npz"}, r"nowhere\.npz: the file does not exist"),
        ({"n_demonstrations": 5}, "5 demonstrations are asked for, the file has 4"),
        ({"env_name": "Pendulum-v1"}, r"do not fit Pendulum-v1: their observations"),
        ({"disc_batch_size": 100}, "80 demonstrated transitions are fewer"),
    ):
        root = tmp_path / "runs"
        with pytest.raises(DemonstrationError, match=message):
            start_run(config(root, expert, **changes))
        assert not root.exists() or not list(root.iterdir())


def test_a_failure_is_recorded(tmp_path, expert):
    run = start_run(config(tmp_path, expert))
    with torch.no_grad():
        run.trainer.reward.net.mlp.layers[0].weight.fill_(torch.nan)
    with pytest.raises(Exception, match="not finite"):
        run.train()
    assert read_json(run.run_dir / "status.json")["status"] == "failed"
    # It made no checkpoint: it starts anew, and is as if it had never failed.
    again = resume_run(run.run_dir)
    assert again.num_timesteps == 0
    ends = [r.train() / "policy.safetensors" for r in (again, start_run(config(tmp_path, expert)))]
    assert ends[0].read_bytes() == ends[1].read_bytes()


def test_one_process_at_a_time(tmp_path, expert):
    run = start_run(config(tmp_path, expert, checkpoint_interval=80))
    busy = []

    def try_to_join():
        with pytest.raises(RunError, match="in use by another process"):
            resume_run(run.run_dir)
        busy.append(run.num_timesteps)
        return train()

    train, run.trainer.train_discriminator = run.trainer.train_discriminator, try_to_join
    run.train()
    assert busy
    with pytest.raises(RunError, match="is complete"):
        resume_run(run.run_dir)


def test_changed_demonstrations_are_refused(tmp_path, expert):
    changing = tmp_path / "d.npz"
    shutil.copy(expert, changing)
    run = start_run(config(tmp_path, str(changing), checkpoint_interval=80))
    run.train()
    shutil.rmtree(run.run_dir / "final_model")
    save_demonstrations(load_demonstrations(expert).first(2), changing)
    with pytest.raises(RunError, match="has changed since"):
        resume_run(run.run_dir)


@pytest.mark.parametrize("text", ["[]", '{"algoritm": "gail"}', "{"])
def test_a_damaged_config_is_named(tmp_path, expert, text):
    run = start_run(config(tmp_path, expert))
    (run.run_dir / "config.json").write_text(text)
    with pytest.raises(RunError, match=r"config\.json"):
        resume_run(run.run_dir)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, expert):
    run = start_run(config(tmp_path, expert))
    run.train()
    shutil.rmtree(run.run_dir / "final_model")
    newest = run.run_dir / "checkpoint" / "000000000320" / "state.json"
    newest.write_text(json.dumps({})[:-1])
    assert resume_run(run.run_dir, progress=False).num_timesteps == 240
    assert replace(run.config).check() == run.config
