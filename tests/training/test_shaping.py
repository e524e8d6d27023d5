"""Shaped rewards, in numbers."""

import copy

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy
from aprl.training.config import default_weights
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.schedules import ConstantAnnealer, EpisodeStatistics, LinearAnnealer
from aprl.training.shaping import RewardShapingVecWrapper, annealer_from_params, check_weights
from tests.training.fakes import CountingPolicy, ScriptedGame


class PayingGame(ScriptedGame):
    """Agent 0 moves for 5 a step, agent 1 for 7; what remains is +-1000 in environments 0, 1."""

    def terms(self, agent_idx):
        return {
            "reward_move": np.full(self.num_envs, 5.0 + 2 * agent_idx),
            "reward_remaining": np.array([1000.0, -1000.0, 0.0]) * (1 - 2 * agent_idx),
        }


WEIGHTS = default_weights()


def shaped(annealer, progress=0.0, weights=WEIGHTS, lengths=(2, 3, 100), seat=0):
    game = PayingGame(lengths)
    flat = FlattenSingletonVecEnv(CurryVecEnv(game, CountingPolicy(), 1 - seat), seat)
    tell = progress if callable(progress) else lambda: progress
    venv = RewardShapingVecWrapper(flat, weights, annealer, tell)
    venv.reset()
    return venv


def step(venv):
    return venv.step(np.zeros((3, 2), np.float32))[1]


@pytest.mark.parametrize(
    ("params", "progress", "expected"),
    [
        ({}, 0.0, [5.25, -4.75, 0.25]),  # half and half
        ({}, 1.0, [5.25, -4.75, 0.25]),
        ({"anneal_frac": None}, 0.3, [5.25, -4.75, 0.25]),
        ({"anneal_frac": 0}, 0.0, [10, -10, 0]),  # sparse from the first step
        ({"anneal_frac": 0.0}, 1.0, [10, -10, 0]),
        ({"anneal_frac": 0.5}, 0.0, [0.5, 0.5, 0.5]),  # dense alone
        ({"anneal_frac": 0.5}, 0.25, [5.25, -4.75, 0.25]),
        ({"anneal_frac": 0.5}, 0.75, [10, -10, 0]),
        ({"anneal_frac": 1}, 0.5, [5.25, -4.75, 0.25]),
    ],
)
def test_reward_is_the_blend_at_this_progress(params, progress, expected):
    np.testing.assert_allclose(
        step(shaped(annealer_from_params(params, EpisodeStatistics(1)), progress)), expected
    )


def test_the_other_seat_is_paid_by_its_own_terms():
    venv = shaped(ConstantAnnealer(0.5), seat=1)
    np.testing.assert_allclose(step(venv), [-5 + 0.35, 5 + 0.35, 0.35])


def test_several_terms_of_a_kind_add_up_and_the_games_own_reward_is_replaced():
    weights = {"dense": {}, "sparse": {"reward_move": 2.0, "reward_remaining": -0.1}}
    np.testing.assert_allclose(step(shaped(ConstantAnnealer(0), weights=weights)), [-90, 110, 10])
    nothing = {"dense": {}, "sparse": {}}
    with pytest.raises(ConfigError, match="no reward term has a weight"):
        shaped(ConstantAnnealer(0.5), weights=nothing)


def test_progress_is_asked_at_every_step():
    moments = iter([0.0, 0.5, 1.0])
    venv = shaped(LinearAnnealer(1, 0, 1), lambda: next(moments))
    assert [step(venv)[0] for _ in range(3)] == pytest.approx([0.5, 5.25, 10])


def test_matrix_games_can_be_shaped():
    game = make_vec("aprl/RockPaperScissors-v0", 3)
    space = game.action_spaces[0]
    flat = FlattenSingletonVecEnv(CurryVecEnv(game, ConstantPolicy(space, space, 2), 1), 0)
    venv = RewardShapingVecWrapper(flat, default_weights(), ConstantAnnealer(0), lambda: 0.0)
    venv.reset()
    np.testing.assert_allclose(venv.step(np.array([0, 1, 2]))[1], [0.01, -0.01, 0])


def test_logs_average_finished_episodes_with_their_true_length():
    venv = shaped(ConstantAnnealer(0.25))
    assert venv.log_values() == {"shaping/rew_anneal_c": 0.25}
    for _ in range(6):
        step(venv)
    values = venv.log_values()  # three episodes of 2 steps, two of 3; the third goes on
    dense, sparse = 0.5 * (3 * 2 + 2 * 3) / 5, (3 * 20 - 2 * 30) / 5
    assert values == pytest.approx(
        {
            "shaping/rew_anneal_c": 0.25,
            "shaping/eplenmean": (3 * 2 + 2 * 3) / 5,  # not 3, the number of environments
            "shaping/epdensemean": dense,
            "shaping/epsparsemean": sparse,
            "shaping/eprewmean_true": 0.75 * sparse + 0.25 * dense,
        }
    )
    venv.clear()
    assert venv.log_values() == {"shaping/rew_anneal_c": 0.25}
    for _ in range(2):
        step(venv)
    assert venv.log_values()["shaping/eplenmean"] == 2  # clearing did not cut episodes short


def test_explicit_reset_forgets_the_episode_in_progress():
    venv = shaped(ConstantAnnealer(0.5), lengths=(3, 100, 100))
    for _ in range(2):
        step(venv)
    venv.reset()
    for _ in range(3):
        step(venv)
    values = venv.log_values()
    assert values["shaping/eplenmean"] == 3 and values["shaping/epsparsemean"] == 30


def test_state_is_restored_in_the_middle_of_episodes():
    venv = shaped(ConstantAnnealer(0.5), lengths=(2, 3, 4))
    for _ in range(3):
        step(venv)
    state, t = venv.state_dict(), venv.venv.game.venv.t.copy()
    before, kept = venv.log_values(), copy.deepcopy(state)
    for _ in range(5):
        step(venv)
    expected = venv.log_values()
    for _ in range(2):  # the state that was loaded is not used up by going on
        again = shaped(ConstantAnnealer(0.5), lengths=(2, 3, 4))
        again.venv.game.venv.t[:] = t
        again.load_state_dict(state)
        assert again.log_values() == before
        for _ in range(5):
            step(again)
        assert again.log_values() == expected
    np.testing.assert_equal(state, kept)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_missing_terms_fail_and_say_what_there_is(kind):
    weights = {"dense": {}, "sparse": {}, kind: {"reward_speed": 1.0}}
    message = r"no reward term 'reward_speed'.*\['reward_move', 'reward_remaining'\]"
    with pytest.raises(ConfigError, match=message):
        step(shaped(ConstantAnnealer(1.0), weights=weights))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_the_unit_interval_fails(share):
    with pytest.raises(ConfigError, match=str(share)):
        step(shaped(ConstantAnnealer(share)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (3, "got 3"),
        ({"dense": {}}, "sparse"),
        ({"dense": {}, "sparse": {}, "other": {}}, "other"),
        ({"dense": {"a": 1}, "sparse": {"a": 1}}, "'a'.*both"),
        ({"dense": 1, "sparse": {}}, "dense"),
        ({"dense": {"a": "much"}, "sparse": {}}, "'a'.*'much'"),
        ({"dense": {}, "sparse": {"a": float("nan")}}, "'a'.*nan"),
    ],
)
def test_malformed_weights_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        check_weights(weights)
    with pytest.raises(ConfigError, match=message):
        shaped(ConstantAnnealer(0.5), weights=weights)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"aneal_frac": 0}, "aneal_frac"),
        ({"anneal_frac": "x"}, "'x'"),
        ({"anneal_frac": 2}, "2"),
        ({"anneal_frac": -1}, "-1"),
    ],
)
def test_malformed_parameters_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        annealer_from_params(params, EpisodeStatistics(1))
