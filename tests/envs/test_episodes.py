import numpy as np
import pytest

from aprl.envs.episodes import (
    TIE,
    EpisodeTracker,
    require_positive,
    saved_array,
    terminal_infos,
)
from aprl.errors import ConfigError


def tracker_after_two_steps() -> EpisodeTracker:
    tracker = EpisodeTracker(num_agents=2, num_envs=3)
    tracker.add(np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 3.0]]))
    tracker.add(np.array([[0.25, 0.0, 1.0], [4.0, 0.5, 1.0]]))
    return tracker


def test_tracker_starts_empty_with_the_documented_layout():
    tracker = EpisodeTracker(num_agents=3, num_envs=5)
    assert tracker.returns.shape == (3, 5) and tracker.returns.dtype == np.float64
    assert tracker.lengths.shape == (5,) and tracker.lengths.dtype == np.int64
    assert not tracker.returns.any() and not tracker.lengths.any()


def test_add_sums_rewards_and_counts_steps():
    tracker = tracker_after_two_steps()
    np.testing.assert_array_equal(tracker.returns, [[1.25, 2.0, 4.0], [3.0, 1.0, 4.0]])
    np.testing.assert_array_equal(tracker.lengths, [2, 2, 2])


def test_add_refuses_to_broadcast():
    tracker = EpisodeTracker(2, 2)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        tracker.add(np.array([1.0, 2.0]))
    assert not tracker.lengths.any()


def test_winner_has_the_strictly_greatest_return():
    np.testing.assert_array_equal(tracker_after_two_steps().winners(), [1, 0, TIE])


def test_three_agents_tie_only_at_the_top():
    tracker = EpisodeTracker(3, 3)
    tracker.add(np.array([[1.0, 5.0, 0.0], [1.0, 2.0, 0.0], [3.0, 5.0, 0.0]]))
    np.testing.assert_array_equal(tracker.winners(), [2, TIE, TIE])


def test_finish_reports_and_zeroes_only_the_masked_environments():
    tracker = tracker_after_two_steps()
    episodes = tracker.finish(np.array([True, False, True]))
    assert episodes == [{"r0": 1.25, "r1": 3.0, "l": 2}, {"r0": 4.0, "r1": 4.0, "l": 2}]
    assert type(episodes[0]["l"]) is int and type(episodes[0]["r0"]) is float
    np.testing.assert_array_equal(tracker.returns, [[0.0, 2.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(tracker.lengths, [0, 2, 0])


def test_finish_of_nothing_changes_nothing():
    tracker = tracker_after_two_steps()
    assert tracker.finish(np.zeros(3, dtype=bool)) == []
    np.testing.assert_array_equal(tracker.lengths, [2, 2, 2])


def test_restart_forgets_everything():
    tracker = tracker_after_two_steps()
    tracker.restart()
    assert not tracker.returns.any() and not tracker.lengths.any()


def test_state_round_trip_is_a_copy():
    tracker = tracker_after_two_steps()
    state = tracker.state_dict()
    tracker.add(np.ones((2, 3)))
    np.testing.assert_array_equal(state["lengths"], [2, 2, 2])
    restored = EpisodeTracker(2, 3)
    restored.load_state_dict(state)
    restored.add(np.ones((2, 3)))
    np.testing.assert_array_equal(restored.returns, tracker.returns)
    np.testing.assert_array_equal(restored.lengths, tracker.lengths)
    np.testing.assert_array_equal(state["lengths"], [2, 2, 2])


def test_state_of_another_size_is_refused_and_changes_nothing():
    tracker = tracker_after_two_steps()
    with pytest.raises(ConfigError, match=r"\(2, 4\).*\(2, 3\)"):
        tracker.load_state_dict(EpisodeTracker(2, 4).state_dict())
    np.testing.assert_array_equal(tracker.lengths, [2, 2, 2])


def test_saved_array_copies():
    state = {"x": np.zeros(2)}
    array = saved_array(state, "x", (2,), np.float64)
    array[0] = 1.0
    assert state["x"][0] == 0.0


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", None, True])
def test_require_positive_names_the_value(value):
    with pytest.raises(ConfigError, match=f"width.*{value!r}"):
        require_positive(width=value)


def test_require_positive_accepts_numpy_integers():
    require_positive(width=np.int64(1), height=2)


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_tracker_of_nothing_is_refused(sizes):
    with pytest.raises(ConfigError):
        EpisodeTracker(*sizes)


def infos_of_three(episodes: list[dict]) -> list[dict]:
    return terminal_infos(
        done=np.array([True, False, True]),
        truncated=np.array([False, False, True]),
        observations=(np.arange(6, dtype=np.float32).reshape(3, 2), np.array([7, 8, 9])),
        terms=[{"reward_move": np.array([0.5, 1.5, 2.5])}, {"reward_move": np.zeros(3)}],
        winners=np.array([1, 0, TIE]),
        episodes=episodes,
    )


def test_terminal_infos_layout():
    won, running, tied = infos_of_three([{"r0": 1.0, "l": 4}, {"r0": 2.0, "l": 9}])
    assert running == {}
    assert won[0] == {"reward_move": 0.5}
    assert won[1] == {"reward_move": 0.0, "winner": True}
    assert tied[0] == {"reward_move": 2.5} and tied[1] == {"reward_move": 0.0}
    assert won["TimeLimit.truncated"] is False and tied["TimeLimit.truncated"] is True
    assert won["episode"] == {"r0": 1.0, "l": 4} and tied["episode"] == {"r0": 2.0, "l": 9}
    np.testing.assert_array_equal(tied["terminal_observation"][0], [4.0, 5.0])
    assert tied["terminal_observation"][1] == 9


def test_terminal_infos_need_one_episode_per_ending():
    with pytest.raises(ValueError):
        infos_of_three([{"r0": 1.0, "l": 4}])


def test_terminal_observations_are_copies():
    rows = np.zeros((1, 2), dtype=np.float32)
    yes = np.array([True])
    info = terminal_infos(yes, yes, (rows,), [{}], np.array([TIE]), [{"l": 1}])[0]
    rows[:] = 1.0
    assert not info["terminal_observation"][0].any()
