"""Environments from their configs."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError, RunError
from aprl.reward_preprocessing.environments import EnvConfig


def test_options_reach_the_environment():
    env = EnvConfig(
        name="aprl/EmptyMaze4-v0", options={"reward": "path", "shaping": "dense"}
    ).make()
    assert env.unwrapped.maze.reward == "path" and env.unwrapped.maze.shaping == "dense"


def test_wrappers_go_on_from_the_inside_out():
    wrappers = ["gymnasium.wrappers.RecordEpisodeStatistics", "gymnasium.wrappers.NormalizeReward"]
    env = EnvConfig(name="aprl/EmptyMaze4-v0", wrappers=wrappers).make()
    assert [type(env).__name__, type(env.env).__name__] == [
        "NormalizeReward",
        "RecordEpisodeStatistics",
    ]


def test_observations_are_standardised_by_saved_statistics(tmp_path):
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"mean": [-0.5, 0.01], "std": [0.25, 0.02]}))
    plain = EnvConfig(name="aprl/MountainCar-v0").make()
    env = EnvConfig(name="aprl/MountainCar-v0", normalize=True, stats_path=str(path)).make()
    raw, standard = plain.reset(seed=3)[0], env.reset(seed=3)[0]
    np.testing.assert_allclose(standard, (raw - [-0.5, 0.01]) / [0.25, 0.02], rtol=1e-5)
    assert env.observation_space.contains(standard)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "no environment"),
        ({"name": "aprl/EmptyMaze11-v0"}, "unknown environment"),
        ({"name": "aprl/EmptyMaze4-v0", "options": {"colour": 1}}, "colour"),
        ({"name": "aprl/EmptyMaze4-v0", "options": {"shaping": "x"}}, "shaping 'x'"),
        ({"name": "aprl/EmptyMaze4-v0", "n_envs": 0}, "n_envs"),
        ({"name": "aprl/EmptyMaze4-v0", "wrappers": ["no.such.thing"]}, r"no\.such\.thing"),
        ({"name": "aprl/EmptyMaze4-v0", "wrappers": ["json.dumps"]}, "not a gymnasium.Wrapper"),
        (
            {"name": "aprl/EmptyMaze4-v0", "wrappers": ["gymnasium.wrappers.ClipReward"]},
            "ClipReward cannot wrap",
        ),
        ({"name": "aprl/MountainCar-v0", "normalize": True}, "stats_path"),
    ],
)
def test_what_cannot_be_built(config, message):
    with pytest.raises(ConfigError, match=message):
        EnvConfig(**config).make()


def test_statistics_that_do_not_fit(tmp_path):
    path = tmp_path / "stats.json"
    config = EnvConfig(name="aprl/MountainCar-v0", normalize=True, stats_path=str(path))
    with pytest.raises(RunError, match=r"stats\.json does not exist"):
        config.make()
    for stats in ({"mean": [0]}, {"mean": [0], "std": [1]}, {"mean": [0, 0], "std": [1, 0]}):
        path.write_text(json.dumps(stats))
        with pytest.raises(RunError, match=r"stats\.json"):
            config.make()
    maze = EnvConfig(name="aprl/EmptyMaze4-v0", normalize=True, stats_path=str(path))
    with pytest.raises(ConfigError, match="vectors"):
        maze.make()
    assert isinstance(
        EnvConfig(name="aprl/EmptyMaze4-v0").make().observation_space, spaces.Discrete
    )
