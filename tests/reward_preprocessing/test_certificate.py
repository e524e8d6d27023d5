"""Certificates: they hold for what preprocessing does, and fail for what it must not do."""

import json

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.reward_preprocessing.certificate import certify
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.errors import CertificateError
from aprl.reward_preprocessing.mdp import optimal_actions
from aprl.reward_preprocessing.objectives import OBJECTIVES, get_objective
from aprl.reward_preprocessing.preprocessing import GradientOptions, preprocess
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import (
    MlpRewardNet,
    ShapedRewardNet,
    TabularRewardNet,
)
from aprl.rewards.potentials import LinearPotential, TabularPotential

from .helpers import GAMMA, random_mdp, random_table_net, trajectory

SPARSE = get_objective("sparse_l1")


@pytest.mark.parametrize("seed", range(20))
def test_optimal_actions_of_random_processes_are_kept(seed):
    rng = np.random.default_rng(seed)
    num_states = int(rng.integers(3, 21))
    mdp = random_mdp(rng, num_states, terminating=0.1 * (seed % 2))
    net = random_table_net(rng, num_states)
    objective = list(OBJECTIVES.values())[seed % 4]
    result = preprocess(
        net,
        mdp.table,
        objective,
        TabularPotential(num_states),
        0.9,
        options=GradientOptions(100, 1, 0.1),
    )
    certificate = certify(net, result.reward, mdp.table, objective, method=result.method, mdp=mdp)
    assert certificate.passed
    q, shaped = (mdp.solve(n.rewards(mdp.table), 0.9) for n in (net, result.reward))
    assert (optimal_actions(q, 1e-7) == optimal_actions(shaped, 1e-7)).all()
    phi = result.reward.potential.of(np.arange(num_states))
    assert np.abs(shaped - (q - phi[:, None])).max() <= 1e-9
    assert np.abs(phi).max() > 0.01


def shaped_maze(gamma=GAMMA, **options):
    maze = Maze(6, True, "path", "random", **options)
    net = maze.reward_net()
    result = preprocess(net, maze.mdp().table, SPARSE, TabularPotential(maze.num_states), gamma)
    return maze, net, result.reward


def test_certificate_of_a_maze():
    maze, net, shaped = shaped_maze()
    mdp = maze.mdp()
    certificate = certify(net, shaped, mdp.table, SPARSE, method="exact", lower_bound=0.1, mdp=mdp)
    certificate.require()
    names = [check.name for check in certificate.checks]
    assert "optimal actions are the same" in names and "Q' is Q - phi" in names
    record = json.loads(json.dumps(certificate.to_json(), allow_nan=False))
    assert record["passed"] and record["transitions"] == 355
    assert record["objective_after"] < record["objective_before"]
    assert record["optimum_gap"] == pytest.approx(certificate.objective_after - 0.1)
    assert certificate.table().row_count == 7


def failing(certificate):
    with pytest.raises(CertificateError) as error:
        certificate.require()
    assert not certificate.passed and not certificate.to_json()["passed"]
    return str(error.value)


class Offset(ShapedRewardNet):
    """Adds a little to one transition."""

    kind = "test-offset"

    def forward(self, state, action, next_state, terminated):
        shaped = super().forward(state, action, next_state, terminated)
        return shaped + 1e-3 * (state == 8)


class NotZeroAtTheEnd(ShapedRewardNet):
    """Counts the potential of terminal states."""

    kind = "test-not-zero"

    def forward(self, state, action, next_state, terminated):
        return super().forward(state, action, next_state, torch.zeros_like(terminated))


def test_a_reward_that_is_not_shaped_fails():
    maze, net, shaped = shaped_maze()
    mdp = maze.mdp()
    broken = Offset(net, shaped.potential, GAMMA)
    assert "r + gamma" in failing(certify(net, broken, mdp.table, SPARSE, method="x", mdp=mdp))


def test_a_potential_at_terminal_states_fails():
    maze, net, shaped = shaped_maze()
    mdp = maze.mdp()
    broken = NotZeroAtTheEnd(net, shaped.potential, GAMMA)
    assert "terminal" in failing(certify(net, broken, mdp.table, SPARSE, method="x", mdp=mdp))


def test_a_base_that_changed_fails():
    maze, _, shaped = shaped_maze()
    other = Maze(6, True, "goal").reward_net()
    mdp = maze.mdp()
    certificate = certify(other, shaped, mdp.table, SPARSE, method="x", mdp=mdp)
    failed = {check.name for check in certificate.checks if not check.passed}
    assert "optimal actions are the same" in failed and "Q' is Q - phi" in failed


def test_a_worse_objective_fails():
    maze = Maze(4)
    potential = TabularPotential(16)
    potential.set_coefficients(np.arange(16.0))
    worse = ShapedRewardNet(maze.reward_net(), potential, GAMMA)
    mdp = maze.mdp()
    certificate = certify(maze.reward_net(), worse, mdp.table, SPARSE, method="x", mdp=mdp)
    assert "not worse" in failing(certificate)


def test_samples_compare_returns():
    rng = np.random.default_rng(0)
    box = spaces.Box(-np.inf, np.inf, (3,))
    net = MlpRewardNet(box, spaces.Discrete(3))
    t = Transitions.from_trajectories(
        [trajectory(int(rng.integers(1, 30)), 3, rng, terminated=i % 3 == 0) for i in range(50)]
    )
    result = preprocess(net, t, SPARSE, LinearPotential(3), 0.95)
    certificate = certify(net, result.reward, t, SPARSE, method="exact")
    certificate.require()
    assert any("50 trajectories" in check.name for check in certificate.checks)

    class Late(ShapedRewardNet):
        kind = "test-late"

        def forward(self, state, action, next_state, terminated):
            return super().forward(state, action, next_state, terminated) + 1e-4 * terminated

    broken = Late(net, result.reward.potential, 0.95)
    certificate = certify(net, broken, t, SPARSE, method="exact")
    failed = [check.name for check in certificate.checks if not check.passed]
    assert any("returns" in name for name in failed)


def test_discounted_returns_of_random_trajectories_differ_by_the_potential_alone():
    maze, net, shaped = shaped_maze()
    walks = maze.mdp().walks(count=1000, steps=30, seed=3)
    difference = shaped.rewards(walks) - net.rewards(walks)
    phi = shaped.potential.of
    for number in range(1000):
        rows = np.flatnonzero(walks.trajectory == number)
        gained = GAMMA ** np.arange(len(rows)) @ difference[rows]
        end = GAMMA ** len(rows) * phi(walks.next_states[rows[-1:]])[0]
        assert gained == pytest.approx(end - phi(walks.states[rows[:1]])[0], abs=1e-9)


def test_without_discount_returns_along_walks_are_compared():
    maze, net, shaped = shaped_maze(gamma=1.0)
    mdp = maze.mdp()
    certificate = certify(net, shaped, mdp.table, SPARSE, method="exact", mdp=mdp)
    certificate.require()
    assert any("1000 trajectories" in check.name for check in certificate.checks)


def test_policies_are_really_compared():
    """D1, D2: the older code's tables change what is optimal, and the check sees it."""
    maze = Maze(10, shaping="random")
    mdp, phi = maze.mdp(), maze.potential
    rewards = np.add.outer(maze.state_rewards, np.zeros(100))
    defective = rewards - (1 - GAMMA) * phi[:, None]  # both terms in the row of s
    defective[maze.goal_cell] = 1
    table = mdp.table
    q_true, q_old = (
        mdp.solve(r[table.states, table.next_states], GAMMA) for r in (rewards, defective)
    )
    changed = (optimal_actions(q_true, 1e-6) != optimal_actions(q_old, 1e-6)).any(axis=1)
    assert changed.sum() == 81
    net = TabularRewardNet(spaces.Discrete(100), spaces.Discrete(5), table=defective)
    shaped = ShapedRewardNet(net, TabularPotential(100), GAMMA)
    certificate = certify(maze.reward_net(), shaped, table, SPARSE, method="x", mdp=mdp)
    (check,) = (c for c in certificate.checks if c.name == "optimal actions are the same")
    assert check.error == 81 and not check.passed
