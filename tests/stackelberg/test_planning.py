"""Exact tools against brute force and simulation."""

import time

import numpy as np
import pytest
from scipy import sparse

from aprl.errors import ConfigError
from aprl.stackelberg.envs import FiniteMDPEnv
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.planning import (
    action_probabilities,
    backward_induction,
    best_response,
    discounted_plan,
    expected_episode_mean,
    max_return,
    occupancy,
    policy_return,
    policy_values,
    stationary_policies,
    visit_probabilities,
)
from aprl.stackelberg.worlds import make_world, random_mdp
from tests.stackelberg.helpers import corridor


def as_sparse(world):
    task = world.task
    twin = Task(
        task.n_states,
        task.n_actions,
        sparse.csr_array(task.rewards),
        task.start,
        task.horizon,
        task.final,
    )
    return FiniteMDP(twin, sparse.csr_array(world.transitions))


def test_no_policy_beats_the_plan():
    world = random_mdp(1, n_states=3, n_actions=2, reward_density=0.8, horizon=6)
    plan = best_response(world)
    optimum = plan.values[0, 0]
    assert policy_return(world, plan.actions) == pytest.approx(optimum)
    rng = np.random.default_rng(0)
    for _ in range(300):
        policy = rng.integers(2, size=(6, 3))
        assert policy_return(world, policy) <= optimum + 1e-12


def test_plan_of_a_corridor():
    plan = best_response(corridor(horizon=4))
    assert plan.actions[:2, 0].tolist() == [0, 0] or plan.values[0, 0] == 1.0
    assert plan.values[:, 0].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert plan.values.shape == (5, 3) and plan.actions.shape == (4, 3)


def test_ties_go_to_the_least_action():
    plan = backward_induction(np.eye(2)[[0, 0, 1, 1]], np.zeros(4), 3)
    assert (plan.actions == 0).all()


def test_upper_bound_caps_values():
    bound = np.array([0.0, 0.5, 0.7])
    plan = backward_induction(np.ones((2, 1)), np.array([1.0, 2.0]), 2, bound)
    assert plan.values[:, 0].tolist() == [0.7, 0.5, 0.0]


def test_sparse_and_dense_agree():
    world = random_mdp(5)
    twin = as_sparse(world)
    plan, same = best_response(world), best_response(twin)
    assert np.allclose(plan.values, same.values) and (plan.actions == same.actions).all()
    assert policy_return(twin, plan.actions[0]) == pytest.approx(
        policy_return(world, plan.actions[0])
    )
    assert np.allclose(occupancy(twin, plan.actions), occupancy(world, plan.actions))
    assert np.allclose(discounted_plan(world, 0.9).values, discounted_plan(twin, 0.9).values)


def test_all_forms_of_a_policy_have_the_same_value():
    world = random_mdp(2)
    actions = np.random.default_rng(0).integers(3, size=10)
    one_hot = np.eye(3)[actions]
    values = policy_values(world, actions)
    for same in (np.tile(actions, (50, 1)), one_hot, np.tile(one_hot, (50, 1, 1))):
        assert np.allclose(policy_values(world, same), values)
    with pytest.raises(ConfigError, match=r"cannot have shape \(7,\)"):
        action_probabilities(world.task, np.zeros(7, dtype=int))


def test_value_is_the_mean_of_simulated_returns():
    world = make_world("simple_mdp_2")
    policy = np.array([0, 1, 0])
    env = FiniteMDPEnv(world, seed=3)
    returns, means, steps = [], [], np.zeros((3, 2))
    cost = np.arange(18.0).reshape(6, 3)
    for _ in range(4000):
        state, _ = env.reset()
        total, spent, length, done = 0.0, 0.0, 0, False
        while not done:
            action = policy[state]
            steps[state, action] += 1
            successor, reward, terminated, truncated, _ = env.step(action)
            spent += cost[2 * state + action, successor]
            state, total, length = successor, total + reward, length + 1
            done = terminated or truncated
        returns.append(total)
        means.append(spent / length)
    error = 4 * np.std(returns) / np.sqrt(len(returns))
    assert policy_return(world, policy) == pytest.approx(np.mean(returns), abs=error)
    error = 4 * np.std(means) / np.sqrt(len(means))
    assert expected_episode_mean(world, policy, cost) == pytest.approx(np.mean(means), abs=error)
    assert occupancy(world, policy) == pytest.approx(steps / steps.sum(), abs=0.02)


def test_occupancy_and_rewards_give_the_return():
    world = random_mdp(7)
    policy = best_response(world).actions
    visits = visit_probabilities(world, policy)
    assert visits.sum() == pytest.approx(50)
    total = visits.sum(axis=0).ravel() @ world.expected_rewards
    assert total == pytest.approx(max_return(world))
    assert occupancy(world, policy).sum() == pytest.approx(1)


def test_visits_stop_at_the_end_of_an_episode():
    world = corridor()
    visits = visit_probabilities(world, np.array([1, 0, 0]))
    assert visits.sum() == 2 and visits[0, 0, 1] == 1 and visits[1, 1, 0] == 1


def test_discounted_plan_solves_the_bellman_equation():
    world = random_mdp(4)
    plan = discounted_plan(world, 0.95)
    q = world.expected_rewards + 0.95 * world.transitions @ plan.values
    assert np.allclose(q.reshape(10, 3).max(axis=1), plan.values)
    assert np.allclose(q.reshape(10, 3)[np.arange(10), plan.actions], plan.values)
    with pytest.raises(ConfigError, match="gamma"):
        discounted_plan(world, 1.0)


def test_stationary_policies():
    assert stationary_policies(corridor().task).tolist() == [
        [0, 0, 0],
        [0, 1, 0],
        [1, 0, 0],
        [1, 1, 0],
    ]
    with pytest.raises(ConfigError, match="too many"):
        stationary_policies(random_mdp(0, n_states=20).task)


def test_best_response_in_a_large_sparse_world_takes_less_than_a_second():
    world = make_world("random_s1000_a10", seed=1)
    started = time.process_time()
    plan = best_response(world)
    assert time.process_time() - started < 1
    assert policy_return(world, plan.actions) == pytest.approx(plan.values[0, 0])
