import numpy as np
import pytest

from aprl.errors import DemonstrationError
from aprl.imitation.trajectories import (
    Trajectory,
    Transitions,
    concatenate,
    flatten,
    require_fixed_horizon,
)


def trajectory(steps=3, first=0.0, terminated=False, truncated=True, **changes):
    values = {
        "obs": first + np.arange(2 * (steps + 1), dtype=np.float32).reshape(steps + 1, 2),
        "actions": np.arange(steps),
        "rewards": np.ones(steps),
        "terminated": terminated,
        "truncated": truncated,
    }
    return Trajectory(**{**values, **changes})


def test_flattened_in_order_with_ends_kept_apart():
    steps = flatten([trajectory(2), trajectory(3, 100.0, terminated=True, truncated=False)])
    assert len(steps) == 5
    np.testing.assert_array_equal(steps.obs[:, 0], [0, 2, 100, 102, 104])
    np.testing.assert_array_equal(steps.next_obs[:, 0], [2, 4, 102, 104, 106])
    np.testing.assert_array_equal(steps.actions, [0, 1, 0, 1, 2])
    assert steps.terminated.tolist() == [False, False, False, False, True]
    assert steps.truncated.tolist() == [False, True, False, False, False]
    joined = concatenate([steps.rows([0]), steps.rows(slice(3, 5))])
    np.testing.assert_array_equal(joined.obs[:, 0], [0, 102, 104])


def test_frozen():
    item = trajectory()
    for array in (item.obs, item.actions, item.rewards, flatten([item]).obs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        item.terminated = True
    own = np.zeros((4, 2), np.float32)
    trajectory(obs=own)
    own[0] = 1.0  # the caller's array stays the caller's to write


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"obs": np.zeros((3, 2))}, "of 3 actions needs one observation more"),
        ({"actions": np.zeros(0), "rewards": None}, "of 0 actions"),
        ({"terminated": True}, "both terminated and truncated"),
        ({"rewards": np.array([0.0, np.nan, 0.0])}, "rewards hold values that are not finite"),
        ({"obs": np.full((4, 2), np.inf)}, "observations hold values that are not finite"),
        ({"actions": np.full(3, np.nan)}, "actions hold values that are not finite"),
        ({"rewards": np.zeros((3, 1))}, r"must have shape \(3,\)"),
    ],
)
def test_what_is_no_trajectory(changes, message):
    with pytest.raises(DemonstrationError, match=message):
        trajectory(**changes)


def test_returns_and_ends():
    assert trajectory().total_reward == 3.0 and trajectory().complete
    fragment = trajectory(truncated=False, rewards=None)
    assert np.isnan(fragment.total_reward) and not fragment.complete


def test_columns_of_different_length_and_nothing_at_all():
    with pytest.raises(DemonstrationError, match="different lengths"):
        Transitions(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(1, bool), np.zeros(2, bool))
    with pytest.raises(DemonstrationError, match="no trajectories"):
        flatten([])


def test_fixed_horizon():
    require_fixed_horizon([5, 5], "the")
    with pytest.raises(DemonstrationError, match=r"the expert's .* from 4 to 5 .*allow_variable"):
        require_fixed_horizon([5, 4], "the expert's")
