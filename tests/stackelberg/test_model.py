"""Pooled counts: exact means for any batch split, rows that sum to one."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.model import (
    TransitionCounts,
    normalised_gamma,
    random_model,
    random_rows,
    uniform_rows,
)
from aprl.stackelberg.worlds import make_world, random_mdp
from tests.stackelberg.helpers import corridor


def samples(n=500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(30, size=n), rng.integers(10, size=n)


@pytest.mark.parametrize("batch", [1, 2, 7, 64, 500])
def test_mean_is_counts_over_visits_for_any_batch_split(batch):
    task = random_mdp(0).task
    pairs, successors = samples()
    counts = TransitionCounts(task)
    for start in range(0, len(pairs), batch):
        counts.add_batch(pairs[start : start + batch], successors[start : start + batch])
    expected = np.zeros((30, 10))
    for pair, successor in zip(pairs, successors, strict=True):
        expected[pair, successor] += 1
    visits = expected.sum(axis=1)
    model = counts.mean_model(uniform_rows(task))
    assert (model.transitions == expected / visits[:, None]).all()
    assert np.abs(model.transitions.sum(axis=1) - 1).max() <= 1e-12
    assert (counts.visits == visits).all()


def test_one_by_one_is_the_same_as_a_batch():
    task = random_mdp(0).task
    one, other = TransitionCounts(task), TransitionCounts(task)
    for pair, successor in zip(*samples(), strict=True):
        one.add(pair, successor)
    other.add_batch(*samples())
    assert (one.counts == other.counts).all() and (one.visits == other.visits).all()


def test_unseen_rows_are_those_given_and_final_states_absorb():
    task = corridor().task
    counts = TransitionCounts(task)
    counts.add(1, 1)
    fill = random_rows(task, np.random.default_rng(0))
    model = counts.mean_model(fill)
    assert model.row(0, 1).tolist() == [0, 1, 0]
    assert np.allclose(model.transitions[[0, 2, 3]], fill[[0, 2, 3]])
    assert model.row(2, 0).tolist() == model.row(2, 1).tolist() == [0, 0, 1]
    assert counts.unseen.tolist() == [True, False, True, True, False, False]


def test_posterior_concentrates_on_the_mean():
    task = make_world("ergodic_mdp_1").task
    counts = TransitionCounts(task)
    counts.counts[:] = np.array([20_000, 30_000, 50_000])
    counts.visits[:] = 100_000
    draw = counts.posterior_draw(1.0, np.random.default_rng(0))
    assert draw.transitions == pytest.approx(np.tile([0.2, 0.3, 0.5], (6, 1)), abs=0.01)
    assert np.abs(draw.transitions.sum(axis=1) - 1).max() <= 1e-12


def test_posterior_without_samples_is_the_prior():
    task = make_world("ergodic_mdp_1").task
    rng = np.random.default_rng(0)
    draws = [TransitionCounts(task).posterior_draw(1.0, rng).transitions for _ in range(2000)]
    assert np.mean(draws, axis=0) == pytest.approx(np.full((6, 3), 1 / 3), abs=0.03)
    assert np.var(draws, axis=0) == pytest.approx(np.full((6, 3), 1 / 18), abs=0.01)


def test_underflow_of_a_gamma_row_gives_a_distribution():
    rows = normalised_gamma(np.array([[0.0, 0.0], [1.0, 3.0]]))
    assert rows.tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_random_models_differ_and_respect_final_states():
    task = corridor().task
    rng = np.random.default_rng(0)
    one, other = random_model(task, rng), random_model(task, rng)
    assert (one.transitions[0] != other.transitions[0]).all()
    assert (one.transitions[4:] == [0, 0, 1]).all()


def test_concentration_per_row():
    rows = random_rows(
        random_mdp(0).task, np.random.default_rng(0), np.r_[np.full(15, 0.01), np.full(15, 100.0)]
    )
    assert rows[:15].max(axis=1).mean() > 0.9 and rows[15:].max(axis=1).max() < 0.2


def test_worlds_too_large_for_tables_are_refused():
    with pytest.raises(ConfigError, match="1000 states and 10 actions is too large"):
        TransitionCounts(make_world("random_s1000_a10").task)
