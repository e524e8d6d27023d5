"""Environments follow their tables; the counter counts every step, and nothing else."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from aprl.stackelberg.envs import BudgetSpent, CountedEnv, FiniteMDPEnv
from aprl.stackelberg.worlds import WORLDS, make_world, random_mdp
from tests.stackelberg.helpers import SpyEnv, corridor, counted


def test_gymnasium_accepts_the_environment():
    check_env(FiniteMDPEnv(make_world("simple_mdp_1")), skip_render_check=True)


@pytest.mark.parametrize("name", [*WORLDS, "random_s10_a3"])
def test_every_world_is_registered(name):
    env = gym.make(f"aprl/{name}-v0")
    state, _ = env.reset(seed=1)
    assert state == make_world(name).task.start
    assert env.observation_space.n == make_world(name).task.n_states


def test_transitions_are_drawn_as_often_as_the_table_says():
    world = random_mdp(3, horizon=10**9)
    env = FiniteMDPEnv(world, seed=1)
    counts = np.zeros((30, 10))
    rng = np.random.default_rng(0)
    state, _ = env.reset()
    for action in rng.integers(3, size=60_000).tolist():
        successor, reward, terminated, truncated, _ = env.step(action)
        counts[3 * state + action, successor] += 1
        assert reward == world.task.rewards[3 * state + action, successor]
        assert not terminated and not truncated
        state = successor
    assert (counts[world.transitions == 0] == 0).all()
    visits = counts.sum(axis=1)
    seen = visits > 300
    assert seen.sum() > 10
    error = np.abs(counts[seen] / visits[seen, None] - world.transitions[seen])
    assert (error < 5 * np.sqrt(0.25 / visits[seen, None])).all()


def test_final_states_terminate_and_the_horizon_truncates():
    env = FiniteMDPEnv(corridor(horizon=2))
    env.reset()
    assert env.step(1) == (1, 0.0, False, False, {})
    assert env.step(0) == (2, 1.0, True, False, {})  # at the horizon, but final
    env.reset()
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_same_seed_same_transitions():
    world = make_world("ergodic_mdp_1")

    def states(env):
        env.reset()
        return [env.step(0)[0] for _ in range(40)]

    assert states(FiniteMDPEnv(world, 5)) == states(FiniteMDPEnv(world, 5))
    assert states(FiniteMDPEnv(world, 5)) != states(FiniteMDPEnv(world, 6))
    env = FiniteMDPEnv(world, 5)
    env.reset(seed=9)
    first = [env.step(0)[0] for _ in range(40)]
    env.reset(seed=9)
    assert [env.step(0)[0] for _ in range(40)] == first


def test_counter_counts_steps_and_not_resets():
    world = make_world("simple_mdp_2")
    spy = SpyEnv(world)
    env = CountedEnv(spy, world.task)
    for _ in range(3):
        env.reset(seed=0)
        env.step(1)
        env.step(1)
    assert env.samples == spy.steps == 6 and spy.resets == 3


def test_budget_ends_before_the_step_is_made():
    world = corridor(horizon=10)
    spy = SpyEnv(world)
    env = CountedEnv(spy, world.task, budget=4)
    env.reset()
    for _ in range(4):
        env.step(0)
    with pytest.raises(BudgetSpent):
        env.step(0)
    assert env.samples == spy.steps == 4


def test_the_counter_cannot_be_bypassed():
    world = make_world("simple_mdp_2")
    inner = FiniteMDPEnv(world)
    env = CountedEnv(inner, world.task)
    env.reset()
    assert env.unwrapped is env
    reachable = [env, *vars(env).values()]
    for value in list(reachable):
        reachable += (
            [getattr(value, "__self__", None), *vars(value).values()]
            if hasattr(value, "__dict__")
            else [getattr(value, "__self__", None)]
        )
    for value in reachable:
        assert value is not inner and value is not world
        assert value is not world.transitions
    with pytest.raises(AttributeError):
        env.samples = 0
    with pytest.raises(AttributeError):
        env.env  # noqa: B018


def test_seeds_given_to_reset_do_not_reach_the_world():
    env = counted(make_world("ergodic_mdp_1"), seed=1)
    outcomes = set()
    for _ in range(60):
        env.reset(seed=7)
        outcomes.add(env.step(0)[0])
    assert len(outcomes) > 1
