"""Sources of trajectories, alone and mixed."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from torch import nn

from aprl.errors import ConfigError, PolicyError
from aprl.policies import ActorCriticMlp, MlpPolicy, save_policy
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.rollouts import (
    EpsilonPolicy,
    RolloutSource,
    collect,
    collect_mixture,
    parse_sources,
    play_episodes,
)
from aprl.reward_preprocessing.trajectories import save_trajectories

from .helpers import trajectory

MAZE = EnvConfig(name="aprl/EmptyMaze4-v0").make  # episodes of 8 steps
SEED = np.random.SeedSequence


def always(action, num_states=16):
    """A policy that always takes one of the maze's actions."""
    network = ActorCriticMlp(num_states, 5, policy_layers=[], discrete=True)
    with torch.no_grad():
        network.policy_tower[-1].weight.zero_()
        network.policy_tower[-1].bias.copy_(20.0 * (torch.arange(5) == action))
    return MlpPolicy(network, spaces.Discrete(num_states), spaces.Discrete(5))


@pytest.fixture
def stayer(tmp_path):
    return str(save_policy(always(0), tmp_path / "stayer", {}))


def test_named_fields_and_the_older_tuple_mean_the_same(stayer):
    assert RolloutSource.parse((0.3, stayer, "mix")) == RolloutSource(0.3, stayer, "mix")
    named = {"random_prob": 0.3, "agent_path": stayer, "name": "mix"}
    assert RolloutSource.parse(named) == RolloutSource.parse([0.3, stayer, "mix"])
    static = RolloutSource.parse([0, None, "x", "file.npz", 2])
    assert (static.rollout_path, static.weight) == ("file.npz", 2)
    assert RolloutSource.parse((1.0,)) == RolloutSource(random_prob=1.0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"agent_path": "a", "rollout_path": "b"}, "leave out agent_path"),
        ({"random_prob": 0.5, "rollout_path": "b"}, "leave out agent_path and random_prob"),
        ({"random_prob": 0.5}, "needs agent_path"),
        ({}, "needs agent_path"),
        ({"random_prob": 1.1}, r"random_prob .* in \[0, 1\]"),
        ({"random_prob": "x"}, "must be a number"),
        ({"random_prob": 1, "weight": 0}, "weight .* positive"),
        ({"random_prob": 1, "weight": float("inf")}, "weight"),
        ({"random_probability": 1}, "did you mean random_prob"),
        ((0, None, "x", "f", 1, 2), "at most 5 entries"),
        (0.5, "named fields or a list"),
    ],
)
def test_sources_that_cannot_be(value, message):
    with pytest.raises(ConfigError, match=message):
        RolloutSource.parse(value)


def test_no_sources():
    for nothing in (None, []):
        with pytest.raises(ConfigError, match="no rollouts"):
            parse_sources(nothing)


def test_whole_episodes_of_a_policy(stayer):
    trajectories = collect(RolloutSource(agent_path=stayer), MAZE, 20, SEED(0), n_envs=2)
    assert [len(t) for t in trajectories] == [8] * len(trajectories) and len(trajectories) in (3, 4)
    for t in trajectories:
        assert (t.states == t.states[0]).all() and (t.actions == 0).all() and not t.terminated


def test_coins_are_tossed_for_each_environment_and_step(stayer):
    policy = EpsilonPolicy(always(0), spaces.Discrete(5), 0.5, SEED(0))
    actions = np.stack([policy(np.zeros(4, int)) for _ in range(2000)])
    moved = actions != 0
    assert moved.mean() == pytest.approx(0.5 * 4 / 5, abs=0.02)
    both = (moved[:, 0] & moved[:, 1]).mean()
    assert both == pytest.approx(0.16, abs=0.03)  # independent; one coin for all would give 0.32
    assert np.corrcoef(moved.T)[0, 1:].max() < 0.1


@pytest.mark.parametrize(("random_prob", "share"), [(0.0, 0.0), (0.25, 0.2), (1.0, 0.8)])
def test_share_of_random_actions(stayer, random_prob, share):
    source = RolloutSource(random_prob=random_prob, agent_path=stayer)
    t = collect(source, MAZE, 4000, SEED(1), n_envs=3)
    moved = np.concatenate([x.actions for x in t]) != 0
    assert moved.mean() == pytest.approx(share, abs=0.03)


def test_same_seed_same_rollouts(stayer):
    source = RolloutSource(random_prob=0.5, agent_path=stayer)
    first, again, other = (
        np.concatenate([t.states for t in collect(source, MAZE, 50, SEED(seed), 2)])
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


@pytest.mark.parametrize("steps", [1, 10, 33, 100])
def test_mixtures_have_exact_shares(stayer, tmp_path, steps):
    saved = [trajectory(7) for _ in range(20)]
    path = str(save_trajectories(tmp_path / "saved.npz", saved))
    sources = [
        RolloutSource(rollout_path=path, weight=1),
        RolloutSource(agent_path=stayer, weight=2),
        RolloutSource(random_prob=1.0, weight=7),
    ]
    trajectories = collect_mixture(sources, MAZE, steps, SEED(0))
    assert sum(len(t) for t in trajectories) == steps
    from_file = min(steps, int(np.ceil(steps / 10)))
    states = np.concatenate([t.states for t in trajectories])
    expected = np.concatenate([t.states for t in saved])
    np.testing.assert_array_equal(states[: from_file + 1][:7], expected[: from_file + 1][:7])


def test_shares_that_only_rounding_makes_larger():
    sources = [RolloutSource(random_prob=1.0, weight=w) for w in (0.1, 0.2, 0.7)]
    trajectories = collect_mixture(sources, MAZE, 10, SEED(0))
    assert [len(t) for t in trajectories] == [1, 2, 7]


def test_sources_of_a_mixture_have_their_own_seeds():
    sources = [RolloutSource(random_prob=1.0)] * 2
    first, second = collect_mixture(sources, MAZE, 16, SEED(0))
    assert (first.actions != second.actions).any()


def test_a_single_file_may_be_taken_whole(tmp_path):
    path = save_trajectories(tmp_path / "x.npz", [trajectory(7), trajectory(3)])
    whole = collect_mixture([RolloutSource(rollout_path=str(path))], MAZE, None, SEED(0))
    assert [len(t) for t in whole] == [7, 3]
    with pytest.raises(ConfigError, match="single file"):
        collect_mixture([RolloutSource(random_prob=1.0)], MAZE, None, SEED(0))
    with pytest.raises(TrajectoryError, match="holds 10 steps, 11 were asked for"):
        collect_mixture([RolloutSource(rollout_path=str(path))], MAZE, 11, SEED(0))
    for steps in (0, -1, 2.5):
        with pytest.raises(ConfigError, match="steps"):
            collect_mixture([RolloutSource(random_prob=1.0)], MAZE, steps, SEED(0))


def test_a_policy_of_another_environment(tmp_path):
    path = save_policy(always(0, num_states=100), tmp_path / "other", {})
    with pytest.raises(PolicyError, match="another environment"):
        collect(RolloutSource(agent_path=str(path)), MAZE, 5, SEED(0))


def test_a_stable_baselines_zip_acts_with_a_warning(tmp_path):
    env = gymnasium.make("aprl/EmptyMaze4-v0")
    learner = PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu", seed=0)
    learner.save(tmp_path / "ppo.zip")
    source = RolloutSource(agent_path=str(tmp_path / "ppo.zip"))
    with pytest.warns(UserWarning, match="can run code"):
        (t, *_) = collect(source, MAZE, 5, SEED(0))
    expected = [int(learner.predict(s, deterministic=True)[0]) for s in t.states[:-1]]
    assert t.actions.tolist() == expected
    relu = PPO("MlpPolicy", env, n_steps=8, batch_size=8, policy_kwargs={"activation_fn": nn.ReLU})
    relu.save(tmp_path / "relu.zip")
    with pytest.warns(UserWarning), pytest.raises(PolicyError, match="ReLU"):
        collect(RolloutSource(agent_path=str(tmp_path / "relu.zip")), MAZE, 5, SEED(0))
    (tmp_path / "bad.zip").write_bytes(b"x")
    with pytest.warns(UserWarning), pytest.raises(PolicyError, match=r"bad\.zip"):
        collect(RolloutSource(agent_path=str(tmp_path / "bad.zip")), MAZE, 5, SEED(0))


class Counting(gymnasium.Env):
    """Terminates after `length` steps; pays `reward`."""

    observation_space, action_space = spaces.Box(-1, 100, (1,)), spaces.Discrete(2)

    def __init__(self, length, reward=1.0):
        self.length, self.reward = length, reward

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        state = np.full(1, self.t, np.float32)
        return state, self.reward, self.t == self.length, False, {}


def test_long_episodes_are_not_left_out():
    envs = [Counting(3), Counting(50)]
    trajectories = play_episodes(envs, lambda s: np.zeros(len(s), int), 12, SEED(0).spawn(2))
    lengths = [len(t) for t in trajectories]
    assert 50 in lengths and sum(lengths) >= 12
    assert all(t.terminated and t.states[-1] == len(t) for t in trajectories)


def test_rewards_that_are_not_finite():
    with pytest.raises(TrajectoryError, match="step 0 is nan"):
        play_episodes([Counting(3, np.nan)], lambda s: np.zeros(len(s), int), 1, SEED(0).spawn(1))
