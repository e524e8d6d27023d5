"""Runs: the same twice, the same after a stop, and nothing lost on the way."""

import csv
import errno
import os
import shutil
import signal

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import AprlError, ConfigError, PolicyError, RunError
from aprl.files import read_json
from aprl.policies import ActorCriticMlp, MlpPolicy, load_policy, load_saved, save_policy
from aprl.runs import CHECKPOINT_DIR, PROGRESS_FILE, STATUS_FILE, new_run_dir
from aprl.training import run as run_module
from aprl.training.config import TrainConfig
from aprl.training.interruption import Interrupted
from aprl.training.run import resume_run, start_run

RPS = {
    "env_name": "aprl/RockPaperScissors-v0",
    "embed_type": "constant",
    "embed_path": "0",
    "num_env": 4,
    "batch_size": 64,
    "total_timesteps": 192,
    "checkpoint_interval": 64,
    "rl_args": {"nminibatches": 2},
    "progress": False,
}
ANTS = {
    **RPS,
    "env_name": "multicomp/RunToGoalAnts-v1",
    "embed_type": "random",
    "embed_path": "none",
    "max_episode_steps": 7,
    "num_threads": 1,
}


@pytest.fixture
def ant(tmp_path):
    """A saved policy with a normaliser, for either seat of the ants' game."""
    venv = make_vec("multicomp/RunToGoalAnts-v1", 1, num_threads=1)
    policy = MlpPolicy(
        ActorCriticMlp(122, 8, policy_layers=[16], value_layers=[16]),
        venv.observation_spaces[0],
        venv.action_spaces[0],
    )
    policy.network.obs_std.fill_(2.0)
    return str(save_policy(policy, tmp_path / "ant", {}))


def config(tmp_path, base, **changes):
    return TrainConfig(**{**base, "root_dir": str(tmp_path / "runs"), **changes})


def metrics(run_dir):
    """Rows of the metrics file, as text, without what depends on the clock."""
    with open(run_dir / PROGRESS_FILE, newline="") as file:
        rows = list(csv.DictReader(file))
    clock = ("time/fps", "time/time_elapsed", "time/iterations")
    return [{k: v for k, v in row.items() if k not in clock} for row in rows]


def weights(run_dir):
    network = load_saved(run_dir / "final_model").network
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def kinds(ant):
    fine_tuned = {
        "embed_type": "ppo",
        "embed_path": ant,
        "load_policy": {"type": "ppo", "path": ant},
        "normalize_observations": False,
    }
    return {
        "rps": RPS,
        "rps, linear rate": {**RPS, "learning_rate_schedule": "linear"},
        "ants": ANTS,
        "fine-tuned ants": {**ANTS, **fine_tuned},
    }


@pytest.mark.parametrize("kind", ["rps", "ants", "fine-tuned ants"])
def test_same_seed_gives_identical_metrics(tmp_path, ant, kind):
    runs = [start_run(config(tmp_path, kinds(ant)[kind], seed=3)) for _ in range(2)]
    for run in runs:
        run.train()
    first, second = (metrics(run.run_dir) for run in runs)
    assert first == second
    assert len(first) == 3
    assert float(first[-1]["train/value_loss"]) > 0
    other = start_run(config(tmp_path, kinds(ant)[kind], seed=4))
    other.train()
    assert metrics(other.run_dir) != first


def test_linear_rate_falls_over_the_whole_run(tmp_path):
    run = start_run(config(tmp_path, RPS, learning_rate=0.01, learning_rate_schedule="linear"))
    run.train()
    rates = [row["train/learning_rate"] for row in metrics(run.run_dir)]
    assert rates[0] == ""  # a row is written before the update that it leads to
    np.testing.assert_allclose([float(rate) for rate in rates[1:]], [0.01 * 2 / 3, 0.01 / 3])
    assert run.learner.policy.optimizer.param_groups[0]["lr"] == 0


@pytest.mark.parametrize("kind", ["rps", "rps, linear rate", "ants", "fine-tuned ants"])
def test_resumed_equals_uninterrupted(tmp_path, ant, kind):
    whole = start_run(config(tmp_path, kinds(ant)[kind], seed=3))
    whole.train()
    stopped = tmp_path / "stopped"
    shutil.copytree(whole.run_dir, stopped)
    shutil.rmtree(stopped / "final_model")
    shutil.rmtree(stopped / CHECKPOINT_DIR / f"{128:012d}")
    resumed = resume_run(stopped)
    assert resumed.learner.num_timesteps == 64
    assert len(metrics(stopped)) == 1  # rows beyond the checkpoint are dropped
    resumed.train()
    assert metrics(stopped) == metrics(whole.run_dir)
    for name, expected in weights(whole.run_dir).items():
        np.testing.assert_array_equal(weights(stopped)[name], expected, err_msg=name)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_cleanly_in_the_middle_of_a_rollout(tmp_path, monkeypatch, signum):
    whole = start_run(config(tmp_path, RPS))
    whole.train()
    stopped = start_run(config(tmp_path, RPS, checkpoint_interval=10**6))
    step = stopped.stack.game.unwrapped.step
    calls = []

    def step_then_signal(actions):
        calls.append(1)
        if len(calls) == 16 + 5:  # 16 steps of 4 environments are a rollout
            os.kill(os.getpid(), signum)
        return step(actions)

    monkeypatch.setattr(stopped.stack.game.unwrapped, "step", step_then_signal)
    with pytest.raises(Interrupted, match="resume=") as caught:
        stopped.train()
    assert caught.value.signum == signum
    assert len(calls) < 16 * 2
    assert read_json(stopped.run_dir / STATUS_FILE)["status"] == "interrupted"
    assert read_json(stopped.run_dir / STATUS_FILE)["num_timesteps"] == 64
    assert not (stopped.run_dir / "final_model").exists()
    resume_run(stopped.run_dir).train()
    assert metrics(stopped.run_dir) == metrics(whole.run_dir)
    assert read_json(stopped.run_dir / STATUS_FILE)["status"] == "completed"


def test_full_disk_leaves_the_last_checkpoint_intact(tmp_path, monkeypatch):
    run = start_run(config(tmp_path, RPS))
    save = run_module.save_state

    def save_until_full(directory, state):
        if state["num_timesteps"] > 64:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(directory, state)

    monkeypatch.setattr(run_module, "save_state", save_until_full)
    with pytest.raises(RunError, match=r"No space left on device.*at 64 steps"):
        run.train()
    monkeypatch.undo()
    resumed = resume_run(run.run_dir)
    assert resumed.learner.num_timesteps == 64
    resumed.train()


@pytest.mark.parametrize("stage", ["final policy", "checkpoint after a signal"])
def test_full_disk_at_the_end(tmp_path, monkeypatch, stage):
    run = start_run(config(tmp_path, RPS))

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    save = run_module.save_policy
    if stage == "final policy":
        monkeypatch.setattr(
            run_module,
            "save_policy",
            lambda policy, directory, *rest: (
                full() if directory.name == "final_model" else save(policy, directory, *rest)
            ),
        )
    else:
        log_values = run.stack.monitor.outcomes.log_values

        def log_values_then_signal():
            if run.learner.num_timesteps == 128:  # at the end of the second rollout
                run.directory.signals.received = signal.SIGTERM
                monkeypatch.setattr(run_module, "save_state", full)
            return log_values()

        monkeypatch.setattr(run.stack.monitor.outcomes, "log_values", log_values_then_signal)
    kept = 128 if stage == "final policy" else 64
    with pytest.raises(RunError, match=rf"No space left on device.*at {kept} steps"):
        run.train()
    monkeypatch.undo()
    assert read_json(run.run_dir / STATUS_FILE)["status"] == "failed"
    assert read_json(run.run_dir / STATUS_FILE)["num_timesteps"] == kept
    assert not (run.run_dir / "final_model").exists()
    resumed = resume_run(run.run_dir)
    assert resumed.learner.num_timesteps == kept
    resumed.train()
    assert read_json(run.run_dir / STATUS_FILE)["status"] == "completed"


def test_what_cannot_start_leaves_no_run_behind(tmp_path):
    with pytest.raises(AprlError, match="constant"):
        start_run(config(tmp_path, RPS, embed_path="7"))
    assert not (tmp_path / "runs").exists()


def test_a_missing_normal_opponent_is_found_before_training_not_after(tmp_path):
    opponent = {"type": "ppo", "path": str(tmp_path / "nobody")}
    with pytest.raises(PolicyError, match="nobody"):
        start_run(config(tmp_path, RPS, normal_opponent=opponent, eval_episodes=5))
    assert not (tmp_path / "runs").exists()


def test_error_in_the_game_marks_the_run_as_failed(tmp_path, monkeypatch):
    run = start_run(config(tmp_path, RPS))

    def broken(actions):
        raise AprlError("the game is broken")

    monkeypatch.setattr(run.stack.game.unwrapped, "step", broken)
    with pytest.raises(AprlError, match="broken"):
        run.train()
    assert read_json(run.run_dir / STATUS_FILE)["status"] == "failed"


def test_unknown_reward_terms_are_found_before_anything_is_written(tmp_path):
    weights = {"dense": {"reward_foo": 1.0}, "sparse": {"reward_remaining": 1.0}}
    with pytest.raises(ConfigError, match=r"reward_foo.*it reports \['reward_move'"):
        start_run(config(tmp_path, RPS, rew_shape_params={"weights": weights}))
    assert not (tmp_path / "runs").exists()


def test_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    run = start_run(config(tmp_path, RPS))
    run.train()
    shutil.rmtree(run.run_dir / "final_model")
    newest = run.run_dir / CHECKPOINT_DIR / f"{128:012d}" / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    assert resume_run(run.run_dir).learner.num_timesteps == 64


def test_what_cannot_be_resumed_says_why(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        resume_run(tmp_path / "nowhere")
    run = start_run(config(tmp_path, RPS, total_timesteps=64))
    with pytest.raises(RunError, match="no usable checkpoint"):
        resume_run(run.run_dir)
    run.train()
    with pytest.raises(RunError, match="is complete"):
        resume_run(run.run_dir)


def test_runs_of_the_same_second_get_their_own_directories(tmp_path):
    paths = {new_run_dir(str(tmp_path), "a/b") for _ in range(3)}
    assert len(paths) == 3
    assert all("a_b" in path.name for path in paths)


def test_learns_the_best_response_to_rock(tmp_path):
    run = start_run(
        config(tmp_path, RPS, batch_size=512, num_env=8, total_timesteps=8192, learning_rate=1e-2)
    )
    run.train()
    policy = load_saved(run.run_dir / "final_model")
    actions, _ = policy.predict(np.zeros(1000, dtype=np.int64))
    assert (actions == 1).mean() > 0.9  # paper
    assert run.outcomes.rate > 0.9


def test_final_policy_tells_where_it_comes_from(tmp_path, ant):
    run = start_run(config(tmp_path, kinds(ant)["fine-tuned ants"], seed=5, total_timesteps=64))
    final = run.train()
    provenance = read_json(final / "policy.json")["provenance"]
    assert provenance["env_name"] == "multicomp/RunToGoalAnts-v1"
    assert (provenance["agent_index"], provenance["seed"], provenance["steps"]) == (1, 5, 64)
    assert {p["role"] for p in provenance["parents"]} == {"embedded", "loaded"}
    recorded = read_json(run.run_dir / "config.json")["fingerprints"]
    assert recorded["loaded"] == recorded["embedded"][0] is not None


def test_policies_of_a_run_load_and_play(tmp_path):
    run = start_run(config(tmp_path, ANTS))
    run.train()
    venv = make_vec("multicomp/RunToGoalAnts-v1", 3, num_threads=1)
    obs = venv.reset()
    actions = {}
    for place in (run.run_dir, run.run_dir / CHECKPOINT_DIR / f"{64:012d}" / "policy"):
        policy = load_policy(
            "ppo",
            str(place),
            observation_space=venv.observation_spaces[1],
            action_space=venv.action_spaces[1],
            env_name="multicomp/RunToGoalAnts-v1",
            index=1,
        )
        actions[place.name], _ = policy.predict(obs[1], deterministic=True)
        venv.step([np.zeros((3, 8), np.float32), actions[place.name]])
    final, early = actions.values()
    assert (final != early).any(), "the checkpoint's policy is not the final one"
    # The learner itself, which normalises outside its network, means the same actions.
    normalised = run.stack.normaliser.normalize_obs(obs[1])
    own, _ = run.learner.predict(normalised, deterministic=True)
    np.testing.assert_allclose(final, own, atol=1e-5)
