"""Training on rewards of environments and of nets."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.rl import RewardNetVecEnv, evaluate_policy, make_learner
from aprl.rewards import TabularRewardNet

from .test_rollouts import Counting, always

MAZE = EnvConfig(name="aprl/EmptyMaze4-v0").make


def test_a_net_pays_for_the_transition_that_was_made():
    """At the end of an episode the next state is the last one, not the first of the next."""
    table = np.arange(256.0).reshape(16, 16)
    net = TabularRewardNet(spaces.Discrete(16), spaces.Discrete(5), table=table)
    venv = RewardNetVecEnv(DummyVecEnv([MAZE] * 2), net)
    venv.mean, venv.std = 3.0, 2.0
    venv.seed(0)
    states = venv.reset()
    rng, maze = np.random.default_rng(0), Maze(4)
    for _ in range(40):
        actions = rng.integers(5, size=2)
        after, rewards, dones, infos = venv.step(actions)
        reached = maze.next_states[states, actions]
        np.testing.assert_allclose(rewards, (table[states, reached] - 3) / 2)
        for i in np.flatnonzero(dones):
            assert infos[i]["terminal_observation"] == reached[i]
        states = after.copy()


class Recorder(TabularRewardNet):
    kind = "test-recorder"

    def predict(self, state, action, next_state, terminated):
        self.seen = getattr(self, "seen", [])
        self.seen.append(terminated.copy())
        return np.zeros(len(state))


def test_nets_are_told_of_terminations_but_not_of_time_limits():
    seen = {}
    for name, make in (
        ("ends", lambda: Counting(5)),
        ("cut", lambda: gymnasium.wrappers.TimeLimit(Counting(50), 5)),
    ):
        net = Recorder(spaces.Discrete(2), spaces.Discrete(2))
        venv = RewardNetVecEnv(DummyVecEnv([make]), net)
        venv.reset()
        for _ in range(10):
            venv.step(np.zeros(1, int))
        seen[name] = np.flatnonzero(np.concatenate(net.seen)).tolist()
    assert seen == {"ends": [4, 9], "cut": []}


def learner(make_env, net=None, normalize=False, seed=0):
    return make_learner(
        make_env,
        n_envs=4,
        batch_size=256,
        learning_rate=1e-3,
        rl_args={"nminibatches": 4, "n_epochs": 4},
        normalize=normalize,
        seed=np.random.SeedSequence(seed),
        reward_net=net,
    )


def test_a_policy_learns_from_a_net():
    """The net pays for the upper right corner, where the environment pays nothing."""
    rewards = np.zeros(16)
    rewards[15] = 1
    net = TabularRewardNet(spaces.Discrete(16), spaces.Discrete(5), ("state",), rewards)
    trained = learner(MAZE, net)
    trained.ppo.learn(8192)
    policy, maze = trained.policy(), Maze(4)
    state = 0
    for _ in range(8):
        action, _ = policy.predict(np.array([state]), deterministic=True)
        state = maze.next_states[state, action[0]]
    assert state == 15


def test_normalised_observations_go_with_the_policy():
    make = EnvConfig(name="aprl/MountainCar-v0").make
    trained = learner(make, normalize=True)
    trained.ppo.learn(512)
    network = trained.policy().network
    assert network.obs_mean[0] == pytest.approx(-0.5, abs=0.2) and network.obs_std[0] < 0.5


def test_same_seed_same_policy():
    policies = []
    for seed in (1, 1, 2):
        trained = learner(MAZE, seed=seed)
        trained.ppo.learn(256)
        policies.append(trained.policy().value(np.arange(16)))
    np.testing.assert_array_equal(policies[0], policies[1])
    assert (policies[0] != policies[2]).any()


def test_returns_carry_their_interval():
    result = evaluate_policy(always(0), MAZE, 5, np.random.SeedSequence(0))
    assert (result.mean, result.half_width, result.episodes) == (0, 0, 5)
    make = EnvConfig(name="aprl/EmptyMaze4-v0", options={"reward": "path"}).make
    result = evaluate_policy(always(0), make, 50, np.random.SeedSequence(0))
    assert -3.2 < result.mean - result.half_width < result.mean < 0
