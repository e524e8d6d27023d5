"""Followers: the planner, and the one that PPO learns over random leaders."""

import numpy as np
import pytest

from aprl.errors import ConfigError, PolicyError
from aprl.stackelberg.mal_tabular import TabularMal, TabularMalConfig
from aprl.stackelberg.model import random_model
from aprl.stackelberg.oracle import ExactOracle, LearnedOracle, PretrainConfig, pretrain_oracle
from aprl.stackelberg.planning import best_response, max_return, policy_return
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world


@pytest.fixture(scope="module")
def world():
    return make_world("simple_mdp_2")


@pytest.fixture(scope="module")
def learned(world):
    return pretrain_oracle(world.task, PretrainConfig(steps=60_000), np.random.SeedSequence(0))


def test_planner_responds_to_context_and_model_alike(world):
    oracle = ExactOracle(world.task)
    expected = best_response(world).actions
    assert (oracle.best_response(world) == expected).all()
    assert (oracle.respond(world.transitions.ravel()) == expected).all()


def test_planner_does_not_mistake_one_model_for_another(world):
    oracle = ExactOracle(world.task)
    rng = np.random.default_rng(0)
    for _ in range(5):
        model = random_model(world.task, rng)
        assert (oracle.best_response(model) == best_response(model).actions).all()


def test_learned_follower_deploys_well_with_true_answers(world, learned):
    response = learned.best_response(world)
    assert response.shape == (3,)
    assert policy_return(world, response) >= 0.98 * max_return(world)


def test_learned_follower_reads_its_context(world, learned):
    rng = np.random.default_rng(1)
    models = [random_model(world.task, rng) for _ in range(100)]
    optima = np.array([max_return(model) for model in models])
    own = np.array([policy_return(m, learned.best_response(m)) for m in models])
    blind = np.array([policy_return(m, learned.best_response(world)) for m in models])
    assert (optima - own).mean() < 0.35 * optima.mean()
    assert own.mean() > blind.mean()


def test_tabular_mal_with_the_learned_follower(world, learned):
    method = TabularMal(TabularMalConfig(unseen="posterior"), lambda task: learned)
    runs = [run_method(method, world, 400, seed) for seed in range(10)]
    assert sum(np.isfinite(run.solved_at) for run in runs) >= 8


def test_save_and_load(tmp_path, world, learned):
    learned.save(tmp_path / "oracle", {"world": "simple_mdp_2"})
    again = LearnedOracle.load(world.task, tmp_path / "oracle")
    model = random_model(world.task, np.random.default_rng(3))
    assert (again.best_response(model) == learned.best_response(model)).all()
    with pytest.raises(PolicyError, match="4 states and 2 actions"):
        LearnedOracle.load(make_world("ergodic_mdp_2").task, tmp_path / "oracle")
    with pytest.raises(PolicyError, match="nowhere"):
        LearnedOracle.load(world.task, tmp_path / "nowhere")


def test_pretraining_leaves_global_random_state_alone_and_repeats():
    task = make_world("trap").task
    config = PretrainConfig(steps=64, num_envs=2, ppo={"n_steps": 16, "batch_size": 16})
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, same = (pretrain_oracle(task, config, np.random.SeedSequence(4)) for _ in range(2))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    for ours, theirs in zip(
        one.policy.network.parameters(), same.policy.network.parameters(), strict=True
    ):
        assert (ours == theirs).all()


@pytest.mark.parametrize("values", [{"steps": 0}, {"num_envs": 0}])
def test_pretraining_out_of_range(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        PretrainConfig(**values)
