"""What each handling of unseen pairs believes, and where it goes."""

import numpy as np
import pytest

from aprl.stackelberg.exploration import (
    CountBonus,
    FixedRows,
    OptimisticRows,
    PosteriorSampling,
    RedrawnRows,
    ValueBonus,
)
from aprl.stackelberg.model import TransitionCounts, uniform_rows
from aprl.stackelberg.oracle import ExactOracle
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import coin


@pytest.fixture
def counts():
    return TransitionCounts(make_world("ergodic_mdp_1").task)


def explore(rule, counts, rng=None):
    rng = rng or np.random.default_rng(0)
    oracle = ExactOracle(counts.task)
    model = rule.leader_model(counts, rng)
    return rule.exploring_policy(counts, model, oracle.best_response(model), oracle, rng)


def test_fixed_rows_stay_and_redrawn_rows_change(counts):
    rng = np.random.default_rng(0)
    counts.add(0, 1)
    for rule, changes in ((FixedRows(), False), (RedrawnRows(), True)):
        one, other = (rule.leader_model(counts, rng).transitions for _ in range(2))
        assert one[0].tolist() == other[0].tolist() == [0, 1, 0]
        assert (one[1:] != other[1:]).any() == changes


@pytest.mark.parametrize("rule", [FixedRows(), RedrawnRows()])
def test_they_explore_with_the_response_itself(rule, counts):
    rng = np.random.default_rng(0)
    model = rule.leader_model(counts, rng)
    oracle = ExactOracle(counts.task)
    response = oracle.best_response(model)
    assert rule.exploring_policy(counts, model, response, oracle, rng) is response


@pytest.mark.parametrize("rule", [OptimisticRows(), CountBonus(), ValueBonus()])
def test_optimists_try_what_they_never_tried(rule):
    counts = TransitionCounts(coin().task)
    for pair in (1, 3):  # action 1, seen to pay always: nothing known can be better
        counts.counts[pair, 1] = counts.visits[pair] = 1000
    assert (explore(rule, counts)[:-1] == 0).all()
    assert (rule.leader_model(counts, np.random.default_rng(0)).row(0, 0) == 0.5).all()


def test_optimistic_rows_trust_a_single_sample_and_bonuses_do_not():
    counts = TransitionCounts(coin().task)
    for pair in (0, 2):  # action 0: one unlucky sample
        counts.counts[pair, 0] = counts.visits[pair] = 1
    for pair in (1, 3):
        counts.counts[pair] = [50_000, 50_000]
        counts.visits[pair] = 100_000
    assert (explore(OptimisticRows(), counts)[0] == 1).all()
    for rule in (CountBonus(), ValueBonus()):
        assert (explore(rule, counts)[0] == 0).all()


def test_count_bonus_formula(counts):
    counts.visits[:] = [1, 4, 9, 16, 0, 25]
    counts.counts[:, 0] = counts.visits
    oracle = ExactOracle(counts.task)
    model = counts.mean_model(uniform_rows(counts.task))
    bonus = CountBonus(0.5).bonuses(counts, model, oracle)
    assert bonus == pytest.approx(0.5 * 1.05 / np.array([1, 2, 3, 4, 1, 5]))


def test_value_bonus_is_zero_where_the_outcome_does_not_matter():
    world = make_world("mdp_erg_det_3").with_horizon(1)  # all pay 1 at once, but two triples
    counts = TransitionCounts(world.task)
    counts.counts[:, 0] = counts.visits[:] = 10
    model = counts.mean_model(uniform_rows(world.task))
    bonus = ValueBonus().bonuses(counts, model, ExactOracle(world.task))
    assert (bonus[[0, 1, 3, 4]] == 0).all() and (bonus[[2, 5]] > 0).all()


def test_value_bonus_shrinks_with_visits_and_grows_with_what_is_at_stake(counts):
    oracle = ExactOracle(counts.task)
    counts.counts[:] = [2, 2, 4]
    counts.visits[:] = 8
    few = ValueBonus().bonuses(counts, counts.mean_model(uniform_rows(counts.task)), oracle)
    counts.counts *= 100
    counts.visits *= 100
    many = ValueBonus().bonuses(counts, counts.mean_model(uniform_rows(counts.task)), oracle)
    assert (many < few / 9).all()
    longer = TransitionCounts(counts.task.with_horizon(500))
    longer.counts, longer.visits = counts.counts, counts.visits
    model = longer.mean_model(uniform_rows(longer.task))
    assert np.allclose(
        ValueBonus(4.0).bonuses(longer, model, oracle),
        2 * ValueBonus(2.0).bonuses(longer, model, oracle),
    )


def test_posterior_sampling_spreads_its_choices():
    counts = TransitionCounts(coin().task)
    rng = np.random.default_rng(0)
    rule = PosteriorSampling()
    choices = [explore(rule, counts, rng)[0, 0] for _ in range(200)]
    assert 60 < sum(choices) < 140
    for pair, pays in ((0, 250), (2, 250), (1, 750), (3, 750)):
        counts.counts[pair] = [1000 - pays, pays]
        counts.visits[pair] = 1000
    assert all(explore(rule, counts, rng)[0, 0] == 1 for _ in range(50))
