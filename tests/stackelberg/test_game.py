"""Queries, answers and the oracle."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.game import (
    ModelLeader,
    PolicyLeader,
    Query,
    StackelbergGame,
    model_from_context,
    model_queries,
    policy_queries,
)
from aprl.stackelberg.model import random_model
from aprl.stackelberg.oracle import ExactOracle
from aprl.stackelberg.planning import best_response
from aprl.stackelberg.worlds import make_world


def test_query_sets_and_context_lengths():
    world = make_world("simple_mdp_2")
    assert model_queries(world.task) == tuple(Query(s, a) for s in range(3) for a in range(2))
    assert policy_queries(world.task) == (Query(0), Query(1), Query(2))
    game = StackelbergGame(model_queries(world.task), ExactOracle(world.task))
    assert game.ask(ModelLeader(world)).shape == (3 * 2 * 3,)
    answers = game.ask(ModelLeader(world)).reshape(6, 3)
    assert (answers == world.transitions).all()


def test_policy_answers_are_one_hot():
    task = make_world("simple_mdp_2").task
    game = StackelbergGame(policy_queries(task), ExactOracle(task))
    assert game.ask(PolicyLeader(np.array([1, 0, 1]), 2)).tolist() == [0, 1, 1, 0, 0, 1]


def test_oracle_best_responds_to_what_the_leader_commits_to():
    world = make_world("simple_mdp_2")
    game = StackelbergGame(model_queries(world.task), ExactOracle(world.task))
    rng = np.random.default_rng(0)
    for model in [world, *(random_model(world.task, rng) for _ in range(5))]:
        assert (game.play(ModelLeader(model)) == best_response(model).actions).all()


def test_context_becomes_the_model_again():
    world = make_world("simple_mdp_2")
    model = model_from_context(world.task, world.transitions.ravel())
    assert (model.transitions == world.transitions).all()
    lie = np.full(18, 1 / 3)
    assert model_from_context(world.task, lie).row(2, 0).tolist() == [0, 0, 1]
    with pytest.raises(ConfigError, match="18 entries, got 17"):
        model_from_context(world.task, lie[:17])


def test_a_model_has_no_actions_to_tell():
    with pytest.raises(ConfigError, match="state 1"):
        ModelLeader(make_world("trap")).answer(Query(1))
