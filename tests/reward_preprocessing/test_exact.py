"""Exact optima: the published gridworlds' numbers, and random problems solved another way."""

import numpy as np
import pytest
import scipy.sparse as sp
from gymnasium import spaces
from scipy.optimize import linprog

from aprl.errors import ConfigError
from aprl.reward_preprocessing.envs.mazes import SHAPINGS, Maze
from aprl.reward_preprocessing.exact import (
    exact_applies,
    shaping_matrix,
    solve_exactly,
    solve_reweighted,
)
from aprl.reward_preprocessing.objectives import OBJECTIVES, get_objective
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards.potentials import LinearPotential, MlpPotential, TabularPotential

from .helpers import GAMMA, maze_rewards, random_mdp, trajectory

OPTIMA = [
    (10, "goal", "sparse_l1", 0.009900),
    (10, "path", "sparse_l1", 0.085140),
    (10, "goal", "smooth_l1", 0.008099),
    (10, "path", "smooth_l1", 0.039354),
    (4, "goal", "sparse_l1", 0.061875),
    (4, "path", "sparse_l1", 0.210501),
    (4, "goal", "smooth_l1", 0.054413),
    (4, "path", "smooth_l1", 0.114413),
]


def solve(maze, objective, gamma=GAMMA):
    table, rewards = maze_rewards(maze)
    return solve_exactly(
        rewards, table, get_objective(objective), TabularPotential(maze.num_states), gamma
    )


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize(("size", "reward", "objective", "optimum"), OPTIMA)
def test_optima_of_the_gridworlds(size, reward, objective, optimum, shaping):
    solution = solve(Maze(size, False, reward, shaping), objective)
    assert solution.objective == pytest.approx(optimum, abs=1e-6)
    assert solution.objective - solution.lower_bound == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("gamma", "optimum"), [(1.0, 0.01), (0.9, 0.009), (0.5, 0.005)])
def test_the_optimum_is_gamma_times_the_sparse_reward(gamma, optimum):
    assert solve(Maze(10), "sparse_l1", gamma).objective == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize("shaping", SHAPINGS)
def test_the_optimum_pays_for_entering_the_goal(shaping):
    maze = Maze(10, shaping=shaping)
    table, rewards = maze_rewards(maze)
    solution = solve(maze, "sparse_l1")
    change = shaping_matrix(table, TabularPotential(100), GAMMA)
    shaped = rewards + change @ solution.coefficients
    paying = np.abs(shaped) > 1e-6
    assert (paying == (table.next_states == maze.goal_cell)).all() and paying.sum() == 5
    np.testing.assert_allclose(shaped[paying], 0.99, atol=1e-8)


WRONG_DISCOUNT = [
    ("dense", {1.0: 0.0840, 0.97: 0.0664, 0.95: 0.1191, 0.9: 0.2346}),
    ("random", {1.0: 0.0141, 0.97: 0.0176, 0.95: 0.0253, 0.9: 0.0446}),
]


@pytest.mark.parametrize(
    ("shaping", "gamma", "optimum"),
    [
        (shaping, gamma, value)
        for shaping, values in WRONG_DISCOUNT
        for gamma, value in values.items()
    ],
)
def test_a_wrong_discount_does_not_recover(shaping, gamma, optimum):
    found = solve(Maze(10, shaping=shaping), "sparse_l1", gamma).objective
    assert found == pytest.approx(optimum, abs=6e-5)


def test_negative_control():
    assert solve(Maze(10, shaping="dense"), "sparse_l1", 0.95).objective > 10 * 0.0099


def primal_optimum(change, terms, weights):
    """The same minimum from the problem as it is stated, with a variable per |term|."""
    rows, columns = change.shape
    identity = sp.identity(rows)
    result = linprog(
        np.concatenate([np.zeros(columns), weights]),
        A_ub=sp.vstack([sp.hstack([change, -identity]), sp.hstack([-change, -identity])]),
        b_ub=np.concatenate([-terms, terms]),
        bounds=[(None, None)] * columns + [(0, None)] * rows,
    )
    return result.fun


@pytest.mark.parametrize("objective", ["sparse_l1", "smooth_l1"])
def test_random_problems_have_the_primal_optimum(objective):
    rng = np.random.default_rng(0)
    for _ in range(5):
        mdp = random_mdp(rng, terminating=0.1)
        rewards, potential = 100 * rng.normal(size=len(mdp.table)), TabularPotential(12)
        o = get_objective(objective)
        found = solve_exactly(rewards, mdp.table, o, potential, 0.9)
        change = shaping_matrix(mdp.table, potential, 0.9)
        terms, (weights, pairs) = rewards, o.weights(mdp.table)
        if pairs is not None:
            change, terms = (
                change[pairs.first] - change[pairs.second],
                rewards[pairs.first] - rewards[pairs.second],
            )
        assert found.objective == pytest.approx(primal_optimum(change, terms, weights), rel=1e-7)
        assert found.lower_bound <= found.objective * (1 + 1e-9)


def test_nothing_nearby_is_better():
    rng = np.random.default_rng(0)
    maze = Maze(6, True, "path", "random")
    table, rewards = maze_rewards(maze)
    change = shaping_matrix(table, TabularPotential(maze.num_states), GAMMA)
    solution = solve(maze, "sparse_l1")
    for size in (1e-6, 1e-3, 1e-1):
        other = solution.coefficients + rng.normal(scale=size, size=maze.num_states)
        assert np.abs(rewards + change @ other).mean() > solution.objective


def test_matrix_is_what_the_potential_adds():
    t = Transitions.from_trajectories([trajectory(20, 3, terminated=True), trajectory(10, 3)])
    potential = LinearPotential(3)
    potential.fit_scale(t.states, 1.0)
    change = shaping_matrix(t, potential, 0.9)
    potential.set_coefficients(np.array([1.0, -2.0, 0.5, 3.0]))
    expected = 0.9 * np.where(t.terminated, 0, potential.of(t.next_states)) - potential.of(t.states)
    np.testing.assert_allclose(change @ potential.coefficients(), expected, atol=1e-12)


def test_a_potential_that_cannot_help_stays_zero():
    t = Transitions.from_trajectories([trajectory(20)])
    potential = TabularPotential(5)
    solution = solve_exactly(np.zeros(20), t, get_objective("sparse_l1"), potential, 0.9)
    assert solution.objective == solution.lower_bound == 0
    np.testing.assert_allclose(solution.coefficients, 0)


def test_where_it_applies():
    l1, log = get_objective("sparse_l1"), get_objective("smooth_log")
    assert exact_applies(l1, TabularPotential(3)) and exact_applies(l1, LinearPotential(3))
    mlp = MlpPotential(spaces.Box(-1, 1, (3,)))
    assert not exact_applies(log, TabularPotential(3)) and not exact_applies(l1, mlp)
    table, rewards = maze_rewards(Maze(4))
    with pytest.raises(ConfigError, match="not convex"):
        solve_exactly(rewards, table, log, TabularPotential(16), GAMMA)


@pytest.mark.parametrize("name", ["sparse_log", "smooth_log"])
def test_reweighting_never_makes_it_worse(name):
    rng = np.random.default_rng(0)
    objective = OBJECTIVES[name]
    table, rewards = maze_rewards(Maze(6, True, "path", "random"))
    potential = TabularPotential(72)
    change = shaping_matrix(table, potential, GAMMA)
    for _ in range(3):
        start = rng.normal(size=72)
        found = solve_reweighted(rewards, table, objective, potential, GAMMA, start)
        before, after = (objective.value(rewards + change @ c, table) for c in (start, found))
        assert after < before
        again = solve_reweighted(rewards, table, objective, potential, GAMMA, found)
        value = objective.value(rewards + change @ again, table)
        assert after * (1 - 1e-5) <= value <= after
