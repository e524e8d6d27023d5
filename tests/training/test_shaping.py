"""Annealers and shaped rewards, in numbers."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.schedules import ConstantAnnealer, LinearAnnealer
from aprl.training.shaping import RewardShapingVecWrapper, annealer_from_params
from tests.training.fakes import CountingPolicy, ScriptedGame

WEIGHTS = {"dense": {"reward_move": 0.1}, "sparse": {"reward_remaining": 0.01}}


class PayingGame(ScriptedGame):
    """Agent 0 moves for 5 a step; what remains is +-1000 in environments 0 and 1."""

    def terms(self, agent_idx):
        return {
            "reward_move": np.full(self.num_envs, 5.0),
            "reward_remaining": np.array([1000.0, -1000.0, 0.0]),
        }


def shaped(annealer, progress=0.0, weights=WEIGHTS, lengths=(2, 3, 100)):
    game = PayingGame(lengths)
    flat = FlattenSingletonVecEnv(CurryVecEnv(game, CountingPolicy(), 1), 0)
    venv = RewardShapingVecWrapper(flat, weights, annealer, lambda: progress)
    venv.reset()
    return venv


def step(venv):
    return venv.step(np.zeros((3, 2), np.float32))[1]


@pytest.mark.parametrize(
    ("params", "progress", "expected"),
    [
        ({}, 0.0, [5.25, -4.75, 0.25]),  # half and half
        ({}, 1.0, [5.25, -4.75, 0.25]),
        ({"anneal_frac": 0}, 0.0, [10, -10, 0]),  # sparse from the first step
        ({"anneal_frac": 0.5}, 0.0, [0.5, 0.5, 0.5]),
        ({"anneal_frac": 0.5}, 0.25, [5.25, -4.75, 0.25]),
        ({"anneal_frac": 0.5}, 0.75, [10, -10, 0]),
    ],
)
def test_reward_is_the_blend_at_this_progress(params, progress, expected):
    np.testing.assert_allclose(step(shaped(annealer_from_params(params), progress)), expected)


def test_logs_average_finished_episodes_with_their_true_length():
    venv = shaped(ConstantAnnealer(0.5))
    assert venv.log_values() == {"shaping/rew_anneal_c": 0.5}
    for _ in range(6):
        step(venv)
    values = venv.log_values()  # three episodes of 2 steps, two of 3
    assert values["shaping/eplenmean"] == pytest.approx((3 * 2 + 2 * 3) / 5)
    assert values["shaping/epdensemean"] == pytest.approx(0.5 * (3 * 2 + 2 * 3) / 5)
    assert values["shaping/epsparsemean"] == pytest.approx((3 * 20 - 2 * 30) / 5)
    state = venv.state_dict()
    again = shaped(ConstantAnnealer(0.5))
    again.load_state_dict(state)
    assert again.log_values() == values


def test_missing_terms_fail_and_say_what_there_is():
    weights = {"dense": {"reward_speed": 1.0}, "sparse": {}}
    with pytest.raises(ConfigError, match=r"reward_speed.*reward_move"):
        step(shaped(ConstantAnnealer(1.0), weights=weights))


@pytest.mark.parametrize(
    "weights",
    [
        {"dense": {}},
        {"dense": {"a": 1}, "sparse": {"a": 1}},
        {"dense": {"a": "much"}, "sparse": {}},
        {"dense": {"a": float("nan")}, "sparse": {}},
    ],
)
def test_malformed_weights_are_refused(weights):
    with pytest.raises(ConfigError):
        shaped(ConstantAnnealer(0.5), weights=weights)


def test_linear_annealer_edges():
    assert LinearAnnealer(1, 0, 0)(0.0) == 0
    whole = LinearAnnealer(2, 4, 1)
    assert [whole(p) for p in (0, 0.5, 1)] == [2, 3, 4]
    assert LinearAnnealer(1, 0, 0.5)(0.9) == 0
    with pytest.raises(ConfigError, match=r"1\.5"):
        LinearAnnealer(1, 0, 1.5)
    with pytest.raises(ConfigError, match="rew_shape_params"):
        annealer_from_params({"aneal_frac": 0})
