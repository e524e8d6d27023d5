"""Self-play: both sides learn, opponents come from the past, and a stopped run goes on exactly."""

import json
import os
import signal

import pandas as pd
import pytest

from aprl.errors import ConfigError, RunError
from aprl.policies.store import fingerprint, load_saved
from aprl.self_play import SelfPlayParams, params_of, resume_self_play, self_play
from aprl.train import resume, train
from aprl.training.config import TrainConfig
from aprl.training.interruption import Interrupted

# Both pay for where one stands, so that progress does not depend on who the opponent is.
LINE = {
    "env_name": "aprl/CrowdedLinePair-v0",
    "self_play": True,
    "self_play_params": {"round_timesteps": 512, "members": 2},
    "num_env": 8,
    "batch_size": 128,
    "total_timesteps": 2048,
    "checkpoint_interval": 100_000,
    "rew_shape_params": {"anneal_frac": 0.5},
    "progress": False,
    "eval_episodes": 20,
}


def config(tmp_path, **entries):
    return TrainConfig(**LINE | {"root_dir": str(tmp_path)} | entries)


def test_both_sides_learn_in_rounds_and_leave_their_policies(tmp_path):
    result = train(config(tmp_path))
    run = result.run_dir
    for side in (0, 1):
        rows = pd.read_csv(run / f"side{side}" / "rl" / "progress.csv")
        assert rows["time/total_timesteps"].iloc[-1] == 2048
        snapshots = sorted(p.name for p in (run / f"side{side}" / "snapshots").iterdir())
        assert snapshots == [f"{n:05d}" for n in range(4)]
    victim, opponent = (fingerprint(run / name) for name in ("final_model", "opponent_model"))
    assert victim == fingerprint(run / "side0" / "final_model")
    assert opponent == fingerprint(run / "side1" / "final_model")
    assert victim != opponent
    assert result.after["opponent"].games == 20
    status = json.loads((run / "status.json").read_text())
    assert status["status"] == "completed" and status["num_timesteps"] == 2 * 2048
    with pytest.raises(RunError, match="complete"):
        resume(run)


def test_opponents_are_snapshots_of_the_other_side_from_the_window(tmp_path):
    result = train(
        config(tmp_path, self_play_params={"round_timesteps": 256, "members": 3, "window": 0.5})
    )
    run = result.run_dir
    seen = {}
    for checkpoint in sorted((run / "side1" / "checkpoint").iterdir()):
        from aprl.training.checkpoints import load_state

        met = load_state(checkpoint)["config"]
        number = (int(checkpoint.name) - 1) // 256
        seen[number] = {p.rsplit("/", 1)[1] for p in met["embed_paths"]}
        assert all("/side0/snapshots/" in p for p in met["embed_paths"])
    newest = seen[7]
    assert newest <= {"00004", "00005", "00006", "00007"}
    assert all(kind != "random" for kind in met["embed_types"])


def final_state(run):
    rows = {
        side: pd.read_csv(run / f"side{side}" / "rl" / "progress.csv").drop(
            columns=["time/fps", "time/time_elapsed", "time/iterations"], errors="ignore"
        )
        for side in (0, 1)
    }
    weights = [fingerprint(run / name) for name in ("final_model", "opponent_model")]
    return rows, weights


@pytest.mark.parametrize("stop_at", [(0, 1), (1, 3), (0, 9), (1, 12)])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, stop_at):
    straight = final_state(train(config(tmp_path / "straight")).run_dir)
    side, rollouts = stop_at
    count = 0

    def stop(callback_side):
        nonlocal count
        count += callback_side == side
        if count == rollouts and callback_side == side:
            os.kill(os.getpid(), signal.SIGTERM)

    from aprl.training.run import RunCallback

    original = RunCallback._on_rollout_end

    def on_end(self):
        original(self)
        stop(self._run.config.agent_idx)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunCallback, "_on_rollout_end", on_end)
        with pytest.raises(Interrupted) as stopped:
            train(config(tmp_path / "stopped"))
    run = stopped.value.run_dir
    resumed = final_state(resume(run).run_dir)
    assert resumed[1] == straight[1]
    for number in (0, 1):
        pd.testing.assert_frame_equal(resumed[0][number], straight[0][number])


def test_the_same_seed_twice_is_the_same_and_another_is_not(tmp_path):
    first = final_state(train(config(tmp_path / "a")).run_dir)
    again = final_state(train(config(tmp_path / "b")).run_dir)
    other = final_state(train(config(tmp_path / "c", seed=1)).run_dir)
    assert first[1] == again[1] != other[1]


def test_recurrent_learners_can_play_themselves(tmp_path):
    result = train(config(tmp_path, rl_algo="recurrent_ppo", total_timesteps=512, eval_episodes=0))
    assert load_saved(result.policy_dir).initial_state(2) is not None


@pytest.mark.parametrize(
    "entries, complaint",
    [
        ({"embed_type": "zero"}, "embed_type does not go with self_play"),
        ({"defence": "single"}, "defence does not go"),
        ({"attack": "baseline"}, "attack does not go"),
        ({"load_policy": {"type": "ppo", "path": "x"}}, "load_policy does not go"),
        ({"self_play_params": {"members": 1}}, "members"),
        ({"self_play_params": {"window": 0}}, "window"),
        ({"self_play_params": {"rounds": 3}}, "rounds"),
        ({"rl_algo": "sac"}, "ppo and recurrent_ppo"),
        ({"learning_rate": 3}, "learning_rate"),
    ],
)
def test_what_does_not_go_with_self_play_is_refused(tmp_path, entries, complaint):
    with pytest.raises(ConfigError, match=complaint):
        self_play(config(tmp_path, **entries))
    assert not list(tmp_path.iterdir())


def test_parameters_without_self_play_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="without self_play"):
        config(tmp_path, self_play=False, embed_type="zero").resolve()


def test_defaults():
    assert params_of(TrainConfig(self_play=True)) == SelfPlayParams(131_072, 0.5, 4)


def test_a_damaged_config_is_named(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text('{"env": 1}')
    with pytest.raises(RunError, match=r"config\.json"):
        resume_self_play(run)
