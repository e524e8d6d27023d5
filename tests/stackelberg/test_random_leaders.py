"""The follower's training ground."""

import numpy as np

from aprl.stackelberg.random_leaders import RandomLeaders, context_observations, context_space
from aprl.stackelberg.worlds import make_world


def test_episodes_follow_the_models_that_are_observed():
    task = make_world("simple_mdp_2").task
    envs = RandomLeaders(task, 16, np.random.SeedSequence(0))
    obs = envs.reset()
    assert envs.observation_space == context_space(task) and obs.shape == (16, 21)
    contexts = obs[:, :18].reshape(16, 6, 3)
    assert np.allclose(contexts.sum(axis=2), 1, atol=1e-6)
    assert (contexts[:, 4:] == [0, 0, 1]).all()
    assert (obs[:, 18:] == [0, 1, 0]).all()
    rng = np.random.default_rng(0)
    log_likelihood, steps, ends = 0.0, 0, 0
    for _ in range(300):
        states, actions = obs[:, 18:].argmax(axis=1), rng.integers(2, size=16)
        contexts = obs[:, :18].reshape(16, 6, 3)
        following, rewards, dones, infos = envs.step(actions)
        for env in range(16):
            last = infos[env]["terminal_observation"] if dones[env] else following[env]
            successor = last[18:].argmax()
            pair = 2 * states[env] + actions[env]
            probability = contexts[env, pair, successor]
            assert probability > 0
            assert rewards[env] == np.float32(task.rewards[pair, successor])
            assert (last[:18] == obs[env, :18]).all()
            if dones[env]:
                ends += 1
                assert infos[env]["TimeLimit.truncated"] == (successor != 2)
                assert (following[env, :18] != obs[env, :18]).any()
                assert following[env, 18:].tolist() == [0, 1, 0]
            log_likelihood += np.log(probability)
            steps += 1
        obs = following
    assert ends > 50 and log_likelihood / steps > -1.0


def test_context_observations():
    task = make_world("simple_mdp_2").task
    context = np.arange(18) / 100
    obs = context_observations(task, context)
    assert obs.dtype == np.float32 and obs.shape == (3, 21)
    assert np.allclose(obs[1], [*context, 0, 1, 0])
