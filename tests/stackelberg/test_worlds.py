"""The worlds' tables give the published optima."""

import numpy as np
import pytest
from scipy import sparse

from aprl.errors import ConfigError
from aprl.stackelberg.mdp import WorldError
from aprl.stackelberg.planning import best_stationary, max_return, policy_return
from aprl.stackelberg.worlds import (
    ELEVEN_WORLDS,
    WORLDS,
    is_random_family,
    make_world,
    random_mdp,
    riverswim,
)

OPTIMA = {
    "simple_mdp_1": 35.94,
    "simple_mdp_1_variant_1": 35.94,
    "simple_mdp_2": 36.45,
    "simple_mdp_2_endless": 36.45,
    "simple_mdp_2_variant_1": 36.45,
    "simple_mdp_2_variant_2": 37.05,
    "ergodic_mdp_1": 36.45,
    "ergodic_mdp_2": 436.59,
    "deterministic_mdp_1": 485.1,
    "mdp_erg_det_2": 246.0,
    "mdp_erg_det_3": 246.0,
}


def test_the_eleven_are_all_there():
    assert set(ELEVEN_WORLDS) == set(OPTIMA)


@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_exact_optimum_and_stationary_best(name, optimum):
    world = make_world(name)
    assert max_return(world) == pytest.approx(optimum, abs=1e-6)
    assert best_stationary(world)[1] == pytest.approx(optimum, abs=1e-6)


@pytest.mark.parametrize(("name", "optimum"), [("riverswim6", 9.643), ("trap", 203.0)])
def test_other_optima(name, optimum):
    assert max_return(make_world(name)) == pytest.approx(optimum, abs=5e-4)


def test_leaving_at_once():
    world = make_world("simple_mdp_2")
    assert policy_return(world, np.array([1, 0, 0])) == pytest.approx(0.9875)


def test_riverswim_rows():
    world = riverswim(4)
    assert world.row(1, 1).tolist() == [0.05, 0.6, 0.35, 0.0]
    assert world.row(3, 1).tolist() == [0.0, 0.0, 0.4, 0.6]
    assert world.row(0, 0).tolist() == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(WorldError, match="at least 2"):
        riverswim(1)


def test_random_world_is_that_of_its_seed():
    one, same, other = random_mdp(3), random_mdp(3), random_mdp(4)
    assert (one.transitions == same.transitions).all()
    assert (one.task.rewards == same.task.rewards).all()
    assert (one.transitions != other.transitions).any()
    assert ((one.transitions > 0).sum(axis=1) == 3).all()
    share = (np.stack([random_mdp(k).task.rewards for k in range(20)]) > 0).mean()
    assert share == pytest.approx(0.15, abs=0.02)


def test_large_random_world_is_sparse():
    world = make_world("random_s1000_a10", seed=2)
    assert sparse.issparse(world.transitions) and world.transitions.nnz == 100_000
    assert world.task.n_pairs == 10_000


def test_names():
    assert is_random_family("random_s10_a3") and not is_random_family("random_s10_a3_7")
    assert not is_random_family("trap")
    fixed = make_world("random_s5_a2_7", seed=1)
    assert (fixed.transitions == make_world("random_s5_a2", seed=7).transitions).all()
    assert make_world("trap", horizon=7).task.horizon == 7
    assert set(ELEVEN_WORLDS) < set(WORLDS)


def test_unknown_world_names_near_ones():
    with pytest.raises(ConfigError, match=r"'simple_mdp3'; did you mean 'simple_mdp_"):
        make_world("simple_mdp3")


@pytest.mark.parametrize("values", [{"n_successors": 11}, {"reward_density": 1.5}])
def test_random_world_out_of_range(values):
    with pytest.raises(WorldError, match=next(iter(values))):
        random_mdp(0, **values)


def test_random_world_without_states():
    with pytest.raises(WorldError, match="random_s0_a3"):
        make_world("random_s0_a3")
