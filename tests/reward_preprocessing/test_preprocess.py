"""The command that preprocesses: its files, and that they say the truth."""

import json
import math

import numpy as np
import pytest

from aprl.errors import AprlError, ConfigError, RewardError
from aprl.reward_preprocessing.configs import RolloutsConfig
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.envs.mountain_car import mountain_car_reward_net
from aprl.reward_preprocessing.errors import CertificateError, TrajectoryError
from aprl.reward_preprocessing.objectives import OBJECTIVES
from aprl.reward_preprocessing.preprocess import PreprocessConfig, preprocess_model
from aprl.reward_preprocessing.trajectories import save_trajectories
from aprl.rewards import (
    ShapedRewardNet,
    TabularRewardNet,
    load_reward_net,
    save_reward_net,
)

from .helpers import trajectory

MAZE = Maze(4, False, "path", "dense")


@pytest.fixture
def model(tmp_path):
    return str(save_reward_net(MAZE.reward_net(), tmp_path / "in" / "model.pt"))


def config(tmp_path, model, **changes):
    values = {
        "env": EnvConfig(name="aprl/EmptyMaze4-v0"),
        "model_path": model,
        "save_path": str(tmp_path / "out" / "maze"),
        "epochs": 100,
        "progress": False,
    }
    return PreprocessConfig(**{**values, **changes})


@pytest.mark.parametrize("model_format", ["pt", "safetensors"])
def test_files(tmp_path, model, model_format):
    told = []
    files = preprocess_model(config(tmp_path, model, model_format=model_format), told.append)
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    expected = [f"maze.unmodified.{model_format}"]
    for name in OBJECTIVES:
        ends = (model_format, "certificate.json", "potential.pdf")
        expected += [f"maze.{name}.{end}" for end in ends]
    assert names == sorted(expected)
    table, original = MAZE.mdp().table, MAZE.reward_net().rewards(MAZE.mdp().table)
    loaded = {name: load_reward_net(path) for name, path in files.models.items()}
    np.testing.assert_array_equal(loaded["unmodified"].rewards(table), original)
    assert [c.objective for c in told] == list(OBJECTIVES)
    for certificate in told:
        objective, net = OBJECTIVES[certificate.objective], loaded[certificate.objective]
        rewards = net.rewards(table)
        assert objective.value(rewards, table) == certificate.objective_after
        assert objective.value(original, table) == certificate.objective_before
        phi = net.potential.of
        expected_rewards = original + 0.99 * phi(table.next_states) - phi(table.states)
        np.testing.assert_allclose(rewards, expected_rewards, atol=1e-12)
        file = tmp_path / "out" / f"maze.{objective.name}.certificate.json"
        record = json.loads(file.read_text())
        assert record["passed"] and record["objective_after"] == certificate.objective_after
    assert told[0].optimum_gap < 1e-9 and told[0].objective_after == pytest.approx(
        0.210501, abs=1e-6
    )


def test_samples_and_test_samples(tmp_path):
    path = save_reward_net(mountain_car_reward_net("dense"), tmp_path / "car.safetensors")
    files = preprocess_model(
        config(
            tmp_path,
            str(path),
            env=EnvConfig(name="aprl/MountainCar-v0"),
            rollouts=RolloutsConfig([(1.0,)], steps=400, test_steps=200),
            objectives=["sparse_l1", "smooth_l1"],
        )
    )
    certificate = files.certificates["sparse_l1"]
    assert certificate.transitions == 400 and certificate.method == "exact"
    before, after = files.test_objectives["sparse_l1"]
    assert before > 0.3 and after < 1e-6
    record = json.loads((tmp_path / "out" / "maze.sparse_l1.certificate.json").read_text())
    assert record["test"] == [before, after]
    net = load_reward_net(files.models["sparse_l1"])
    assert net.potential.slopes[0] == pytest.approx(-100, rel=0.02)


def test_train_and_test_rollouts_differ(tmp_path):
    path = save_reward_net(mountain_car_reward_net("random"), tmp_path / "car.pt")
    rollouts = RolloutsConfig([(1.0,)], steps=100, test_steps=100)
    car = EnvConfig(name="aprl/MountainCar-v0")
    values = [
        preprocess_model(
            config(
                tmp_path, str(path), env=car, rollouts=rollouts, objectives=["sparse_l1"], seed=s
            )
        )
        for s in (0, 0, 1)
    ]
    first, again, other = (v.test_objectives["sparse_l1"] for v in values)
    assert first == again != other
    assert first[0] != values[0].certificates["sparse_l1"].objective_before


def test_rollouts_in_a_maze(tmp_path, model):
    rollouts = RolloutsConfig([(1.0,)], steps=300)
    files = preprocess_model(config(tmp_path, model, rollouts=rollouts, objectives=["smooth_l1"]))
    certificate = files.certificates["smooth_l1"]
    names = [check.name for check in certificate.checks]
    assert certificate.transitions == 300 and "optimal actions are the same" in names


def refused(tmp_path, error, message, **changes):
    with pytest.raises(error, match=message):
        preprocess_model(config(tmp_path, changes.pop("model", None), **changes))
    out = tmp_path / "out"
    assert not out.exists() or not list(out.iterdir()), "something was left behind"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"save_path": None}, "save_path is missing"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\]"),
        ({"gamma": 1.01}, r"gamma must be in \(0, 1\]"),
        ({"objectives": []}, "objectives is empty"),
        ({"objectives": ["sparse"]}, "unknown objective 'sparse'"),
        ({"method": "lp"}, "unknown method"),
        ({"method": "exact"}, "method=exact needs"),
        ({"model_format": "pkl"}, "model_format"),
        ({"potential": "linear"}, "states that are vectors"),
        ({"epochs": 0}, "epochs"),
        ({"lr": -1.0}, "lr"),
        ({"lr": math.nan}, "lr must be positive"),
        ({"env": EnvConfig()}, "no environment"),
        ({"env": EnvConfig(name="aprl/EmptyMaze5-v0")}, "unknown environment"),
        ({"rollouts": RolloutsConfig([{"random_prob": 2}], steps=3)}, "random_prob"),
        ({"rollouts": RolloutsConfig([(1.0,)])}, "single file"),
    ],
)
def test_bad_configs(tmp_path, model, changes, message):
    refused(tmp_path, ConfigError, message, model=model, **changes)


def test_a_model_that_is_missing_or_of_another_environment(tmp_path, model):
    refused(tmp_path, ConfigError, "model_path is missing")
    refused(tmp_path, RewardError, "does not exist", model=str(tmp_path / "none.pt"))
    other = EnvConfig(name="aprl/EmptyMaze10-v0")
    refused(tmp_path, RewardError, r"another environment.*Discrete\(16\)", model=model, env=other)


def test_environments_without_exact_dynamics_need_rollouts(tmp_path):
    path = save_reward_net(mountain_car_reward_net(), tmp_path / "car.pt")
    car = EnvConfig(name="aprl/MountainCar-v0")
    refused(tmp_path, ConfigError, "no rollouts", model=str(path), env=car)


def test_rollouts_that_are_empty_missing_or_of_another_environment(tmp_path, model):
    def from_file(path):
        return RolloutsConfig([{"rollout_path": str(path)}])

    np.savez(tmp_path / "empty.npz")
    refused(
        tmp_path,
        TrajectoryError,
        "no trajectories",
        model=model,
        rollouts=from_file(tmp_path / "empty.npz"),
    )
    refused(
        tmp_path,
        TrajectoryError,
        "do not exist",
        model=model,
        rollouts=from_file(tmp_path / "no.npz"),
    )
    vectors = save_trajectories(tmp_path / "vectors.npz", [trajectory(5, 2)])
    refused(
        tmp_path, ConfigError, "their states have shape", model=model, rollouts=from_file(vectors)
    )
    far = trajectory(5)
    far.states[:] = 99
    path = save_trajectories(tmp_path / "far.npz", [far])
    refused(tmp_path, ConfigError, "visit state 99", model=model, rollouts=from_file(path))


def test_rewards_that_are_not_numbers(tmp_path, model, monkeypatch):
    forward = TabularRewardNet.forward
    monkeypatch.setattr(TabularRewardNet, "forward", lambda *a: forward(*a) * float("nan"))
    refused(tmp_path, RewardError, "must be finite", model=model)


def test_a_certificate_that_fails_leaves_nothing(tmp_path, model, monkeypatch):
    forward = ShapedRewardNet.forward

    def broken(self, *columns):
        # Only the outer of the two shapings: what was preprocessed.
        return forward(self, *columns) + (0.1 if isinstance(self.base, ShapedRewardNet) else 0)

    monkeypatch.setattr(ShapedRewardNet, "forward", broken)
    refused(tmp_path, CertificateError, "not certified", model=model)


def test_a_failure_keeps_what_was_there(tmp_path, model):
    preprocess_model(config(tmp_path, model, objectives=["sparse_l1"]))
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    with pytest.raises(AprlError):
        preprocess_model(config(tmp_path, model, method="exact"))
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before
