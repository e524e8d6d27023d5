"""A session of many steps is the run that a single learn() would have been."""

import copy
import time
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import ARS, QRDQN, TQC, TRPO, CrossQ, MaskablePPO, RecurrentPPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise

from aprl.errors import ConfigError
from aprl.training import ppo
from aprl.training.incremental import fit, incremental, varying_schedules

ROLLOUT = {"n_steps": 8, "policy_kwargs": {"net_arch": [8]}}
MINIBATCHES = {"batch_size": 16, "n_epochs": 2}
REPLAY = {
    "learning_starts": 20,
    "batch_size": 8,
    "buffer_size": 500,
    "policy_kwargs": {"net_arch": [8]},
}
NOISE = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.3))

# Algorithm, policy, environment, arguments.
CASES = {
    "PPO": (PPO, "MlpPolicy", "CartPole-v1", {**ROLLOUT, **MINIBATCHES}),
    "our PPO": (ppo.PPO, "MlpPolicy", "Pendulum-v1", {**ROLLOUT, **MINIBATCHES}),
    "A2C": (A2C, "MlpPolicy", "CartPole-v1", ROLLOUT),
    "TRPO": (TRPO, "MlpPolicy", "CartPole-v1", {**ROLLOUT, "batch_size": 16}),
    "RecurrentPPO": (
        RecurrentPPO,
        "MlpLstmPolicy",
        "CartPole-v1",
        {**ROLLOUT, **MINIBATCHES, "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 8}},
    ),
    "MaskablePPO": (MaskablePPO, "MlpPolicy", "masked", {**ROLLOUT, **MINIBATCHES}),
    "SAC": (SAC, "MlpPolicy", "Pendulum-v1", REPLAY),
    "TD3": (TD3, "MlpPolicy", "Pendulum-v1", {**REPLAY, "action_noise": NOISE}),
    "TQC": (TQC, "MlpPolicy", "Pendulum-v1", REPLAY),
    "CrossQ": (CrossQ, "MlpPolicy", "Pendulum-v1", REPLAY),
    "DQN": (DQN, "MlpPolicy", "CartPole-v1", {**REPLAY, "exploration_fraction": 0.5}),
    "QR-DQN": (QRDQN, "MlpPolicy", "CartPole-v1", {**REPLAY, "exploration_fraction": 0.5}),
    "ARS": (ARS, "LinearPolicy", "CartPole-v1", {"n_delta": 2, "n_eval_episodes": 1}),
}
TOTAL = 320


class Watcher(BaseCallback):
    """Records what a callback sees, and every rate that the optimisers and exploration use."""

    def __init__(self):
        super().__init__()
        self.starts, self.ends, self.steps, self.progress = [], 0, [], []

    def _on_training_start(self):
        self.starts.append((self.model.num_timesteps, self.locals["total_timesteps"]))

    def _on_training_end(self):
        self.ends += 1

    def _on_step(self):
        self.steps.append((self.num_timesteps, getattr(self.model, "exploration_rate", None)))
        self.progress.append(self.model._current_progress_remaining)
        return True


class Rows(KVWriter):
    def __init__(self):
        self.rows = []

    def write(self, key_values, key_excluded, step=0):
        clock = ("time/fps", "time/time_elapsed")
        self.rows.append((step, {k: v for k, v in key_values.items() if k not in clock}))

    def close(self):
        pass


def linear(progress_remaining):
    return 1e-2 * progress_remaining


def make(name, seed=3, **changes):
    algorithm, policy, env_id, arguments = copy.deepcopy(CASES[name])  # SB3 writes into some
    envs = 1 if algorithm in (ARS, CrossQ) else 2
    if env_id == "masked":
        venv = make_vec_env(
            lambda: ActionMasker(gym.make("CartPole-v1"), lambda env: np.array([True, True])),
            n_envs=envs,
            seed=seed,
        )
    else:
        venv = make_vec_env(env_id, n_envs=envs, seed=seed)
    if "n_epochs" in arguments:
        changes.setdefault("clip_range", linear)
    model = algorithm(
        policy, venv, seed=seed, device="cpu", **{"learning_rate": linear, **arguments, **changes}
    )
    rows = Rows()
    model.set_logger(Logger(None, [rows]))
    return model, rows


def weights(model):
    return {k: v.clone() for k, v in model.policy.state_dict().items()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("name", CASES)
def test_ten_steps_are_one_learn(name):
    whole, whole_rows = make(name)
    seen_whole = Watcher()
    whole.learn(TOTAL, callback=seen_whole)

    parts, parts_rows = make(name)
    seen_parts = Watcher()
    before = weights(parts)
    calls = 0
    with incremental(parts, TOTAL, seen_parts) as session:
        while session.step(TOTAL // 10):
            calls += 1
    assert calls == 9 or name == "ARS"  # its rollouts are whole episodes
    assert_same(weights(whole), weights(parts))
    assert any(not torch.equal(v, before[k]) for k, v in weights(parts).items())
    assert whole_rows.rows == parts_rows.rows  # losses, learning rate, clip range, iterations
    assert seen_whole.steps == seen_parts.steps  # and exploration
    assert seen_whole.starts == seen_parts.starts == [(0, TOTAL)]
    assert seen_whole.ends == seen_parts.ends == 1
    assert type(parts) is type(whole)


def test_chunks_that_divide_nothing_make_as_many_steps():
    whole, whole_rows = make("PPO")
    whole.learn(300)
    parts, parts_rows = make("PPO")
    with incremental(parts, 300) as session:
        for _ in range(43):
            session.step(7)
    assert not session.running
    assert parts.num_timesteps == whole.num_timesteps == 304
    rates = [[r.get("train/learning_rate") for _, r in x.rows] for x in (whole_rows, parts_rows)]
    assert rates[0] == rates[1]


def test_progress_stays_within_bounds_where_sb3_overshoots():
    rates = []
    for train in (lambda m: m.learn(100), lambda m: fit(m, 100)):
        model, _ = make("PPO", n_steps=64, batch_size=128)
        train(model)
        rates.append(model.policy.optimizer.param_groups[0]["lr"])
    assert rates[0] < 0  # SB3 climbs: 128 steps of 100
    assert rates[1] == 0


def test_bare_chunks_learn_nothing_where_a_session_does():
    bare, _ = make("PPO")
    start = weights(bare)
    with pytest.warns(UserWarning, match="lr_schedule") as caught:
        ours, _ = make("our PPO")
        for _ in range(3):
            ours.learn(16, reset_num_timesteps=False)
    assert len([w for w in caught if "learn()" in str(w.message)]) == 1
    for _ in range(3):
        bare.learn(16, reset_num_timesteps=False)
    assert_same(start, weights(bare))


def test_no_warning_for_constant_rates_or_the_same_total():
    constant, _ = make("our PPO", learning_rate=1e-3, clip_range=0.2)
    assert varying_schedules(constant) == []
    scheduled, _ = make("our PPO")
    assert varying_schedules(scheduled) == ["lr_schedule", "clip_range"]
    assert varying_schedules(make("DQN", learning_rate=1e-3)[0]) == ["exploration_schedule"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for _ in range(2):
            constant.learn(16, reset_num_timesteps=False)
        scheduled.learn(32)
        scheduled._total_timesteps = 64
        scheduled.learn(32, reset_num_timesteps=False)  # resumed towards its own total


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_stop_ends_the_run_at_the_same_step(name):
    def stopper():
        return StopTrainingOnMaxEpisodes(max_episodes=3)

    whole, _ = make(name)
    whole.learn(TOTAL, callback=stopper())
    parts, _ = make(name)
    watcher = Watcher()
    with incremental(parts, TOTAL, [stopper(), watcher]) as session:
        answers = [session.step(16) for _ in range(20)]
    assert session.stopped and not session.running and answers[-1] is False
    assert 0 < parts.num_timesteps == whole.num_timesteps < TOTAL
    assert watcher.ends == 1


def test_callbacks_that_count_go_on_counting():
    model, _ = make("PPO")
    evaluation = EvalCallback(
        make_vec_env("CartPole-v1"), eval_freq=40, n_eval_episodes=1, verbose=0, warn=False
    )
    with incremental(model, TOTAL, evaluation) as session:
        while session.step(32):
            pass
    assert evaluation.n_calls == 160 and evaluation.last_mean_reward > 0


def test_one_event_file_and_continuous_iterations(tmp_path):
    model = PPO(
        "MlpPolicy", "CartPole-v1", tensorboard_log=str(tmp_path), n_steps=16, batch_size=16
    )
    with incremental(model, 160, log_interval=3, tb_log_name="x") as session:
        while session.step(16):
            pass
    assert len(list(tmp_path.glob("x_1/events*"))) == 1
    logged, rows = make("PPO")
    with incremental(logged, 160, log_interval=3) as session:
        while session.step(16):
            pass
    assert [r["time/iterations"] for _, r in rows.rows] == [3, 6, 9]
    silent, rows = make("DQN")
    with incremental(silent, 160, log_interval=None) as session:
        session.step()
    assert rows.rows == []


def test_steps_per_second_counts_time_between_steps():
    model, _ = make("PPO")
    fps = []
    started = time.perf_counter()
    with incremental(model, 160) as session:
        while session.step(16):
            time.sleep(0.05)
            fps.append((session.steps_per_second, session.num_timesteps))
        true = 160 / (time.perf_counter() - started)
        assert session.steps_per_second == pytest.approx(true, rel=0.05)
        assert session.seconds > 0.45
    for rate, steps in fps:
        assert rate < steps / 0.05


def test_saved_within_a_session_and_resumed(tmp_path):
    model, _ = make("PPO")
    with incremental(model, TOTAL) as session:
        for _ in range(5):
            session.step(32)
        model.save(tmp_path / "half")
    for total in (TOTAL, 2 * TOTAL):
        loaded = PPO.load(tmp_path / "half", env=model.get_env())
        rows = Rows()
        loaded.set_logger(Logger(None, [rows]))
        if total != TOTAL:
            with (
                pytest.raises(ConfigError, match=r"stands at 160 of 320 steps.*change_total"),
                incremental(loaded, total, resume=True),
            ):
                raise AssertionError("not reached")
            with incremental(loaded, total, resume=True, change_total=True) as session:
                session.step(16)
            assert loaded.policy.optimizer.param_groups[0]["lr"] == linear(1 - 176 / total)
            continue
        watcher = Watcher()
        with incremental(loaded, total, watcher, resume=True) as session:
            assert session.num_timesteps == 160 and session.progress == 0.5
            while session.step(32):
                pass
        assert watcher.starts == [(160, TOTAL)] and watcher.steps[0][0] == 162
        assert loaded.num_timesteps == TOTAL
        rates = [r["train/learning_rate"] for _, r in rows.rows if "train/learning_rate" in r]
        # The log is written before each update: it shows the rate of the one before.
        assert rates == [linear(1 - steps / TOTAL) for steps in range(176, TOTAL, 16)]


def test_a_finished_run_has_nothing_left(tmp_path):
    model, _ = make("PPO")
    assert fit(model, 32) is model
    with incremental(model, 32, resume=True) as session:
        assert not session.running and session.step(100) is False
    with incremental(model, 32) as session:  # from the start again
        assert session.running and session.num_timesteps == 0
        session.step()
    assert model.num_timesteps == 32


def test_misuse_is_refused():
    model, _ = make("PPO")
    with (
        pytest.raises(ConfigError, match="total_timesteps must be at least 1, got 0"),
        incremental(model, 0),
    ):
        pass
    with incremental(model, 32) as session:
        with pytest.raises(ConfigError, match="in a session already"), incremental(model, 32):
            pass
        with pytest.raises(ConfigError, match="timesteps must be at least 1, got 0"):
            session.step(0)
        with pytest.raises(ConfigError, match=r"session\.step"):
            model.learn(16)
    model.learn(16)  # an ordinary model again
    watcher = Watcher()
    with pytest.raises(ZeroDivisionError), incremental(model, 32, watcher) as session:
        session.step(16)
        raise ZeroDivisionError
    assert watcher.ends == 0 and type(model) is PPO
