import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import PolicyError
from aprl.policies import ConstantPolicy, Policy, RandomPolicy, ZeroPolicy

from .helpers import action_box, observation_box, observations

OBS = observation_box()


def test_zero_policy_plays_zeros_of_the_box():
    actions, state = ZeroPolicy(OBS, action_box()).predict(observations(5))
    np.testing.assert_array_equal(actions, np.zeros((5, 3)))
    assert actions.dtype == np.float32
    assert state is None


def test_zero_policy_plays_action_0_of_a_discrete_space():
    actions, _ = ZeroPolicy(spaces.Discrete(2), spaces.Discrete(3)).predict(np.zeros(4, np.int64))
    np.testing.assert_array_equal(actions, [0, 0, 0, 0])
    assert actions.dtype == np.int64


def test_zero_outside_the_action_space_is_refused():
    with pytest.raises(PolicyError, match=r"0 is not in the action space Box\(1..2"):
        ZeroPolicy(OBS, spaces.Box(1.0, 2.0, (3,)))


def test_constant_number_fills_the_box_and_a_list_is_taken_as_it_is():
    actions, _ = ConstantPolicy(OBS, action_box(), 0.25).predict(observations(2))
    np.testing.assert_array_equal(actions, np.full((2, 3), 0.25))
    actions, _ = ConstantPolicy(OBS, action_box(), [0.1, -0.2, 0.3]).predict(observations(2))
    np.testing.assert_array_equal(actions, np.float32([[0.1, -0.2, 0.3]] * 2))


def test_constant_rows_do_not_share_memory():
    policy = ConstantPolicy(OBS, action_box(), 0.25)
    actions, _ = policy.predict(observations(2))
    actions[0] = 9
    assert (actions[1] == 0.25).all()
    assert (policy.predict(observations(1))[0] == 0.25).all()


def test_constant_choice():
    actions, _ = ConstantPolicy(OBS, spaces.Discrete(3), 2.0).predict(observations(2))
    np.testing.assert_array_equal(actions, [2, 2])


@pytest.mark.parametrize(
    ("space", "constant"),
    [
        (action_box(), 0.5),
        (action_box(), [0.1, 0.1]),
        (action_box(), np.nan),
        (action_box(), "fast"),
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), -1),
        (spaces.Discrete(3), 1.5),
        (spaces.Discrete(3), [1, 2]),
        (spaces.Discrete(3), np.nan),
        (spaces.MultiBinary(3), 0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_constant_that_is_no_action_is_refused(space, constant):
    with pytest.raises(PolicyError, match="constant"):
        ConstantPolicy(OBS, space, constant)


def test_random_policy_is_uniform_in_the_box():
    space = spaces.Box(np.float32([-1, 0, 10]), np.float32([1, 0.5, 20]))
    actions, _ = RandomPolicy(OBS, space, seed=3).predict(observations(20_000))
    assert actions.dtype == np.float32
    assert (actions >= space.low).all()
    assert (actions <= space.high).all()
    unit = (actions - space.low) / (space.high - space.low)
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.01)
    np.testing.assert_allclose(unit.std(axis=0), 12**-0.5, atol=0.01)
    assert abs(np.corrcoef(unit.T)[0, 1]) < 0.03


def test_random_policy_is_uniform_over_choices():
    policy = RandomPolicy(OBS, spaces.Discrete(3, start=5), seed=3)
    actions, _ = policy.predict(observations(30_000))
    assert actions.dtype == np.int64
    values, counts = np.unique(actions, return_counts=True)
    np.testing.assert_array_equal(values, [5, 6, 7])
    np.testing.assert_allclose(counts, 10_000, rtol=0.05)


def test_random_policy_repeats_with_its_seed_and_its_saved_state():
    policy, other = (RandomPolicy(OBS, action_box(), seed) for seed in (7, 8))
    first, _ = policy.predict(observations(4))
    assert (first != other.predict(observations(4))[0]).any()
    state = policy.state_dict()
    second, _ = policy.predict(observations(4))
    assert (first != second).any()
    policy.load_state_dict(state)
    np.testing.assert_array_equal(policy.predict(observations(4))[0], second)
    policy.seed(7)
    np.testing.assert_array_equal(policy.predict(observations(4))[0], first)


@pytest.mark.parametrize("space", [observation_box(), spaces.MultiBinary(2)])
def test_random_policy_needs_a_bounded_space(space):
    with pytest.raises(PolicyError, match="no uniform random policy"):
        RandomPolicy(OBS, space)


def test_simple_policies_fulfil_the_protocol():
    for policy in (ZeroPolicy(OBS, action_box()), RandomPolicy(OBS, action_box())):
        assert isinstance(policy, Policy)
        assert policy.initial_state(3) is None
