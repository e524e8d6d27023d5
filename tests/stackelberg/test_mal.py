"""MAL with PPO: queries before samples, truthful bookkeeping, rewards as configured."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.mal import Mal, MalConfig, ModelLeaderEnv, pair_observations, softmax
from aprl.stackelberg.oracle import ExactOracle
from aprl.stackelberg.planning import best_response
from aprl.stackelberg.runner import run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, counted


def logits_of(world):
    return np.log(np.maximum(world.transitions, 1e-4)).clip(-10, 10)


def leader_env(config, spy_seed=0, oracle=None):
    world = make_world("simple_mdp_2")
    spy = SpyEnv(world, spy_seed)
    env = CountedEnv(spy, world.task)
    oracle = oracle or ExactOracle(world.task)
    return ModelLeaderEnv(env, oracle, config, np.random.SeedSequence(0)), spy, world


def play(env, world, spy):
    """One episode of a leader that tells the truth; its rewards, and the pairs it was shown."""
    rewards, shown, done = [], [], False
    obs, _ = env.reset()
    while not done:
        shown.append(2 * obs[:3].argmax() + obs[3:].argmax())
        obs, reward, terminated, truncated, _ = env.step(logits_of(world)[shown[-1]])
        rewards.append(reward)
        done = terminated
        assert not truncated
    return rewards, shown


def test_queries_come_first_cost_nothing_and_pay_nothing():
    env, spy, world = leader_env(MalConfig())
    obs, _ = env.reset()
    for query in range(6):
        assert (obs == pair_observations(world.task)[query]).all()
        assert spy.steps == 0
        obs, reward, terminated, truncated, _ = env.step(np.zeros(3))
        assert reward == 0 and not terminated and not truncated
    env.step(np.zeros(3))
    assert spy.steps == 1


def test_follower_plays_the_best_response_to_the_answers():
    env, spy, world = leader_env(MalConfig())
    _, shown = play(env, world, spy)
    told = softmax(logits_of(world)).ravel()
    plan = ExactOracle(world.task).respond(told)
    assert len(spy.played) == 50
    assert all(plan[h, s] == a for h, (s, a, _) in enumerate(spy.played))
    assert shown[6:] == [2 * s + a for s, a, _ in spy.played]
    assert (plan == best_response(world).actions)[:45, :2].all()


def test_loss_is_paid_at_the_end_as_a_mean():
    env, spy, world = leader_env(MalConfig())
    rewards, _ = play(env, world, spy)
    told = softmax(logits_of(world))
    losses = [((told[2 * s + a] - np.eye(3)[t]) ** 2).sum() for s, a, t in spy.played]
    assert rewards[:-1] == [0] * (len(rewards) - 1)
    assert rewards[-1] == pytest.approx(-np.mean(losses))


def test_reward_weight_mixes_in_the_followers_reward():
    env, spy, world = leader_env(MalConfig(reward_weight=1.0))
    rewards, _ = play(env, world, spy)
    earned = [world.task.rewards[2 * s + a, t] for s, a, t in spy.played]
    assert rewards[6:] == pytest.approx(earned)
    half, spy, world = leader_env(MalConfig(reward_weight=0.5))
    rewards, _ = play(half, world, spy)
    earned = [world.task.rewards[2 * s + a, t] for s, a, t in spy.played]
    assert rewards[6:-1] == pytest.approx([0.5 * r for r in earned[:-1]])


def test_noise_replaces_the_follower_by_random_policies():
    class Forbidden(ExactOracle):
        def respond(self, context):
            raise AssertionError("the follower was asked")

    world = make_world("simple_mdp_2")
    env, spy, world = leader_env(MalConfig(noise=1.0), oracle=Forbidden(world.task))
    for _ in range(12):
        play(env, world, spy)
    assert len({a for s, a, _ in spy.played if s == 1}) == 2


def test_committed_answers_are_judged_whatever_is_said_later():
    for judged, changes in (("fresh", True), ("committed", False)):
        losses = []
        for later in (0.0, 5.0):
            env, _, world = leader_env(MalConfig(judged=judged), spy_seed=3)
            env.reset()
            for query in range(6):
                env.step(logits_of(world)[query])
            done = False
            while not done:
                _, reward, terminated, truncated, _ = env.step(np.array([later, 0.0, 0.0]))
                done = terminated or truncated
            losses.append(reward)
        assert (losses[0] != losses[1]) == changes


def test_real_samples_are_those_counted_and_the_model_is_the_answers():
    world = make_world("simple_mdp_2")
    config = MalConfig(leader_steps=128, ppo={"n_steps": 32, "batch_size": 32})
    env = counted(world, 1000)
    reports = []
    result = Mal(config).learn(env, np.random.SeedSequence(0), reports.append)
    assert 0 < result.real_samples == env.samples < 128
    assert len(reports) == 5
    assert np.abs(result.model.transitions.sum(axis=1) - 1).max() < 1e-12
    assert (result.policy == best_response(result.model).actions).all()


@pytest.mark.slow
def test_mal_with_reward_learns_to_report_a_world_worth_playing():
    config = MalConfig(
        reward_weight=0.5,
        leader_steps=60_000,
        ppo={"gamma": 1.0, "n_steps": 256, "learning_rate": 3e-3, "n_epochs": 4},
    )
    world = make_world("simple_mdp_2")
    best = max(run_method(Mal(config), world, 60_000, seed).returns.max() for seed in range(2))
    assert best >= 0.99 * 36.45


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reward_weight": 1.1}, "reward_weight"),
        ({"noise": -0.1}, "noise"),
        ({"loss": "l3"}, "unknown loss 'l3'"),
        ({"judged": "commited"}, "did you mean 'committed'"),
        ({"leader_steps": 0}, "leader_steps"),
    ],
)
def test_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        MalConfig(**values)


def test_arguments_that_ppo_refuses():
    method = Mal(MalConfig(ppo={"n_stepz": 3}))
    with pytest.raises(ConfigError, match="n_stepz"):
        method.learn(counted(make_world("trap")), np.random.SeedSequence(0), print)
