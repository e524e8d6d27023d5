import numpy as np
import pytest

from aprl.imitation.environments import GymVecEnv
from aprl.imitation.evaluate import Comparison, compare_returns
from aprl.stats import MeanEstimate
from tests.imitation.helpers import HORIZON, LeaningPolicy, demonstrations


def test_expert_and_random_are_the_ends_of_the_scale():
    venv = GymVecEnv("CartPole-v1", 4, seed=1, horizon=60)
    expert = demonstrations(horizon=60).trajectories
    policy = LeaningPolicy(venv.observation_space, venv.action_space)
    seed = np.random.SeedSequence(0)
    comparison = compare_returns(venv, policy, expert, 12, seed)
    assert comparison.learned.count == comparison.random.count == 12
    assert comparison.expert.count == len(expert) and comparison.expert.mean == 60.0
    assert comparison.normalised == pytest.approx(1.0)
    assert comparison.random.mean < 40
    low, high = comparison.random.interval
    assert low < comparison.random.mean < high
    assert comparison.to_dict()["random"]["interval"] == [low, high]
    assert comparison.table("x").row_count == 4
    assert HORIZON < 60


def test_rewards_that_nobody_observed_are_none_in_json():
    one = MeanEstimate.of([1.0])
    comparison = Comparison(one, MeanEstimate.of([]), one)
    record = comparison.to_dict()
    assert record["expert"] == {"mean": None, "interval": [None, None], "episodes": 0}
    assert record["normalised"] is None and record["learned"]["interval"] == [None, None]
