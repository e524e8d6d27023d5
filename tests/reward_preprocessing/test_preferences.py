"""Learning a reward from comparisons."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.reward_preprocessing.drlhp import DrlhpOptions, compare
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.preferences import (
    fit_reward,
    oracle_preferences,
    sample_fragments,
    true_returns,
)
from aprl.reward_preprocessing.rollouts import RolloutSource, collect
from aprl.rewards import RewardEnsemble, ShapedRewardNet, TabularRewardNet
from aprl.rewards.potentials import TabularPotential

from .helpers import trajectory

RNG = np.random.default_rng


def options(**changes):
    values = {
        "fragment_length": 4,
        "total_comparisons": 100,
        "comparisons_per_iteration": 50,
        "random_frac": 0.5,
        "transition_oversampling": 1.0,
        "temperature": 0.0,
        "gamma": 0.99,
        "reward_epochs": 10,
        "reward_batch_size": 32,
        "reward_lr": 0.05,
        "total_timesteps": 100,
    }
    return DrlhpOptions(**{**values, **changes})


def test_fragments_are_pieces_of_trajectories():
    rng = RNG(0)
    trajectories = [trajectory(n, 2, rng, terminated=n == 5) for n in (5, 3, 9)]
    fragments = sample_fragments(trajectories, 4, 600, RNG(0))
    assert fragments.states.shape == (600, 5, 2) and fragments.actions.shape == (600, 4)
    pieces = {
        (index, begin): trajectories[index].states[begin : begin + 5]
        for index, begin in [(0, 0), (0, 1), *((2, b) for b in range(6))]
    }
    found = []
    for n in range(600):
        matches = [k for k, piece in pieces.items() if np.array_equal(piece, fragments.states[n])]
        found += matches[:1]
        assert fragments.terminated[n] == (matches[0] == (0, 1))
    assert len(found) == 600
    counts = np.unique([2 * i + b for i, b in found], return_counts=True)[1]
    assert len(counts) == 8 and counts.min() > 40  # all starts alike: 75 each


def test_fragments_longer_than_any_episode():
    with pytest.raises(TrajectoryError, match=r"fragments of 10 steps.*longest has 9"):
        sample_fragments([trajectory(9)], 10, 1, RNG(0))


def test_returns_are_discounted_and_may_be_shaped():
    fragments = sample_fragments([trajectory(4, terminated=True)], 4, 1, RNG(0))
    r = fragments.rewards[0]
    plain = r[0] + 0.5 * r[1] + 0.25 * r[2] + 0.125 * r[3]
    assert true_returns(fragments, 0.5) == pytest.approx(plain)
    potential = TabularPotential(5)
    potential.set_coefficients(np.array([1.0, 2, 3, 4, 5]))
    start = fragments.states[0, 0] + 1
    assert true_returns(fragments, 0.5, potential) == pytest.approx(plain - start)
    longer = sample_fragments([trajectory(4)], 4, 1, RNG(0))
    end = longer.states[0, -1] + 1
    expected = true_returns(longer, 0.5)[0] + 0.5**4 * end - (longer.states[0, 0] + 1)
    assert true_returns(longer, 0.5, potential) == pytest.approx(expected)


def test_the_oracle():
    a, b = np.array([2.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])
    assert oracle_preferences(a, b, 0, RNG(0)).tolist() == [1, 0, 0.5]
    many = oracle_preferences(np.full(20000, 1.0), np.zeros(20000), 2.0, RNG(0))
    assert many.mean() == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.015)
    assert oracle_preferences(np.array([1e6]), np.array([-1e6]), 1e-3, RNG(0)).tolist() == [1]
    with pytest.raises(ConfigError, match="temperature"):
        oracle_preferences(a, b, -1, RNG(0))


def comparisons(count=1500, temperature=0.0):
    trajectories = collect(
        RolloutSource(random_prob=1.0),
        EnvConfig(name="aprl/EmptyMaze4-v0", options={"reward": "path"}).make,
        6000,
        np.random.SeedSequence(0),
    )
    return compare(trajectories, count, options(temperature=temperature), np.random.SeedSequence(1))


def fitted(net, data, epochs=30, seed=0):
    return fit_reward(
        net,
        data,
        gamma=0.99,
        epochs=epochs,
        batch_size=64,
        lr=0.05,
        seed=np.random.SeedSequence(seed),
    )


@pytest.fixture(scope="module")
def data():
    return comparisons()


MAZE_SPACES = (spaces.Discrete(16), spaces.Discrete(5))


def test_a_table_learns_what_the_oracle_wants(data):
    net = TabularRewardNet(*MAZE_SPACES, ("state",))
    result = fitted(net, data)
    assert result.accuracy > 0.95 and result.loss < 0.25
    true = Maze(4, False, "path").state_rewards
    assert np.corrcoef(net.table.numpy(), true)[0, 1] > 0.9
    assert not net.table.requires_grad


def test_fitting_repeats_with_its_seed(data):
    nets = [TabularRewardNet(*MAZE_SPACES) for _ in range(2)]
    results = [fitted(net, data, epochs=2) for net in nets]
    assert results[0] == results[1]
    np.testing.assert_array_equal(nets[0].table.numpy(), nets[1].table.numpy())


def test_members_of_an_ensemble_differ(data):
    members = [TabularRewardNet(*MAZE_SPACES, ("state",)) for _ in range(2)]
    result = fitted(RewardEnsemble(members), data, epochs=5)
    assert result.accuracy > 0.85
    assert (members[0].table != members[1].table).any()


def test_a_shaped_table_learns_too(data):
    net = ShapedRewardNet(TabularRewardNet(*MAZE_SPACES, ("state",)), TabularPotential(16), 0.99)
    assert fitted(net, data, epochs=10).accuracy > 0.9
    assert net.potential.values.abs().max() > 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fragment_length": 0}, "fragment_length"),
        ({"random_frac": 1.5}, "random_frac"),
        ({"transition_oversampling": 0.5}, "transition_oversampling"),
        ({"temperature": -1.0}, "temperature"),
        ({"reward_lr": 0.0}, "reward_lr"),
        ({"total_comparisons": 0}, "total_comparisons"),
    ],
)
def test_options_out_of_range(change, message):
    with pytest.raises(ConfigError, match=message):
        options(**change)
