"""The two approaches that let PPO handle a follower's answers in the true world."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.answers import (
    AnswerSearch,
    AnswerSearchConfig,
    AnswerVectorEnv,
    SampledAnswersConfig,
    SampledAnswersEnv,
    answers_from_logits,
)
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.oracle import ExactOracle
from aprl.stackelberg.planning import best_response
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, corridor, counted


def test_one_step_is_an_episode_of_the_follower():
    world = make_world("simple_mdp_2")
    spy = SpyEnv(world)
    env = AnswerVectorEnv(
        CountedEnv(spy, world.task), ExactOracle(world.task), 0.0, np.random.SeedSequence(0)
    )
    env.reset()
    logits = np.log(np.maximum(world.transitions, 1e-4)).ravel()
    _, reward, terminated, _, _ = env.step(logits)
    assert terminated and spy.steps == 50
    plan = best_response(world).actions
    assert sum(plan[h, s] != a for h, (s, a, _) in enumerate(spy.played)) <= 2
    assert reward == pytest.approx(sum(world.task.rewards[2 * s + a, t] for s, a, t in spy.played))


def test_answers_are_distributions():
    task = make_world("simple_mdp_2").task
    answers = answers_from_logits(task, np.linspace(-10, 10, 18)).reshape(6, 3)
    assert answers.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-12)


def test_search_finds_answers_that_make_the_follower_go_on():
    config = AnswerSearchConfig(ppo={"n_steps": 16, "batch_size": 16, "learning_rate": 1e-2})
    run = run_method(AnswerSearch(config), corridor(horizon=4), 3000, 1)
    assert run.near_optimal[-1]


def test_noise_of_the_search_plays_random_policies():
    world = make_world("ergodic_mdp_1")
    spy = SpyEnv(world)
    oracle = ExactOracle(world.task)
    env = AnswerVectorEnv(CountedEnv(spy, world.task), oracle, 1.0, np.random.SeedSequence(0))
    for _ in range(10):
        env.step(np.zeros(18))
    assert np.mean([a for _, a, _ in spy.played]) == pytest.approx(0.5, abs=0.1)


def test_sampled_answers_are_the_means_so_far():
    world = make_world("ergodic_mdp_1")
    config = SampledAnswersConfig(unseen="uniform")
    env = SampledAnswersEnv(counted(world), config, np.random.SeedSequence(0))
    obs, _ = env.reset()
    assert np.allclose(obs[:18], 1 / 3)
    seen = np.zeros((6, 3))
    rng = np.random.default_rng(0)
    for _ in range(3):
        obs, _ = env.reset()
        answers, done = obs[:18], False
        while not done:
            state, action = obs[18:].argmax(), int(rng.integers(2))
            obs, reward, terminated, truncated, _ = env.step(action)
            successor = obs[18:].argmax()
            seen[2 * state + action, successor] += 1
            assert reward == world.task.rewards[2 * state + action, successor]
            assert (obs[:18] == answers).all()  # the same throughout an episode
            done = terminated or truncated
    assert (env.counts.counts == seen).all()
    visits = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    expected = np.where(seen.sum(axis=1, keepdims=True) > 0, seen / visits, 1 / 3)
    assert env.reset()[0][:18] == pytest.approx(expected.ravel())


def test_redrawn_answers_differ_between_episodes():
    env = SampledAnswersEnv(
        counted(corridor()), SampledAnswersConfig(unseen="redraw"), np.random.SeedSequence(0)
    )
    assert (env.reset()[0][:6] != env.reset()[0][:6]).any()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (AnswerSearchConfig, {"noise": 2}),
        (SampledAnswersConfig, {"noise": -1}),
        (SampledAnswersConfig, {"unseen": "fixed"}),
    ],
)
def test_out_of_range(kind, values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        kind(**values)
