"""PAL: the world model fits, the leader is asked first, the model pays no real samples."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.game import PolicyLeader, StackelbergGame, policy_queries
from aprl.stackelberg.pal import (
    Pal,
    PalConfig,
    PolicyLeaderEnv,
    WorldModel,
    sample_random_policies,
)
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import counted


def test_samples_come_from_one_random_policy_per_episode():
    world = make_world("ergodic_mdp_1")
    env = counted(world)
    contexts, pairs, successors = sample_random_policies(env, 40, np.random.default_rng(0))
    assert len(pairs) == len(successors) == len(contexts) == env.samples == 2000
    for start in range(0, 2000, 50):
        assert (contexts[start : start + 50] == contexts[start]).all()
    assert len(np.unique(contexts, axis=0)) > 4
    states, actions = np.divmod(pairs, 2)
    assert (contexts.reshape(-1, 3, 2)[np.arange(2000), states, actions] == 1).all()
    assert (world.transitions[pairs, successors] > 0).all()


def test_sampling_keeps_what_the_budget_allowed():
    env = counted(make_world("ergodic_mdp_1"), budget=120)
    contexts, pairs, _ = sample_random_policies(env, 40, np.random.default_rng(0))
    assert len(contexts) == len(pairs) == 120


def test_world_model_fits_the_truth_where_it_was():
    world = make_world("ergodic_mdp_1")
    data = sample_random_policies(counted(world), 100, np.random.default_rng(0))
    follower = WorldModel(world.task, PalConfig(epochs=4), np.random.SeedSequence(0))
    first = follower.fit(*data)
    assert follower.fit(*data) < first
    game = StackelbergGame(policy_queries(world.task), follower)
    policy = np.array([1, 1, 0])
    model = game.play(PolicyLeader(policy, 2))
    assert np.abs(model.transitions.sum(axis=1) - 1).max() < 1e-12
    played = 2 * np.arange(2) + policy[:2]
    assert np.abs(model.transitions[played] - world.transitions[played]).max() < 0.2


def test_leader_is_asked_first_and_then_plays_in_the_model():
    task = make_world("simple_mdp_2").task
    follower = WorldModel(task, PalConfig(), np.random.SeedSequence(0))
    env = PolicyLeaderEnv(follower, np.random.SeedSequence(1))
    contexts = []
    respond = follower.respond
    follower.respond = lambda context: contexts.append(context) or respond(context)
    for _ in range(3):
        state, _ = env.reset()
        for query in range(3):
            assert state == query
            state, reward, terminated, truncated, _ = env.step(query % 2)
            assert reward == 0 and not terminated and not truncated
        assert state == task.start
        done = False
        while not done:
            previous = state
            state, reward, terminated, truncated, _ = env.step(1)
            assert reward == task.rewards[2 * previous + 1, state]
            done = terminated or truncated
    assert [c.tolist() for c in contexts] == [[1, 0, 0, 1, 1, 0]] * 3


def test_pal_solves_a_small_world():
    config = PalConfig(
        iterations=10,
        episodes=20,
        epochs=2,
        policy_steps=8_192,
        ppo={"n_steps": 128, "batch_size": 256, "learning_rate": 3e-3},
    )
    run = run_method(Pal(config), make_world("simple_mdp_2"), 3000, 0)
    assert run.near_optimal[-1] and run.result.real_samples == run.used <= 3000
    assert (np.diff(run.samples) > 0).all()


@pytest.mark.parametrize(
    "values",
    [
        {"iterations": 0},
        {"episodes": 0},
        {"learning_rate": 0.0},
        {"num_envs": 0},
        {"hidden": [64, 0]},
        {"hidden": ["a"]},
    ],
)
def test_out_of_range(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        PalConfig(**values)
