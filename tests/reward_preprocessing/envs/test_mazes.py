"""Gridworlds: layout, and shaping that is exact on every transition."""

import gymnasium
import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.reward_preprocessing.envs.mazes import ACTIONS, REWARDS, SHAPINGS, Maze, MazeEnv
from aprl.reward_preprocessing.mdp import optimal_actions

from ..helpers import GAMMA, maze_rewards

LAYOUTS = [(4, False), (10, False), (6, True)]


def test_actions_lead_where_they_say():
    maze = Maze(10)
    state = 10 * 4 + 7  # x = 4, y = 7
    leads = dict(zip(ACTIONS, maze.next_states[state].tolist(), strict=True))
    assert leads == {"stay": 47, "left": 37, "up": 48, "right": 57, "down": 46}
    corner = dict(zip(ACTIONS, maze.next_states[0].tolist(), strict=True))
    assert corner == {"stay": 0, "left": 0, "up": 1, "right": 10, "down": 0}
    bumps = (maze.next_states[:, 1:] == np.arange(100)[:, None]).sum()
    assert bumps == 40


def test_the_key_is_picked_up_and_kept():
    maze = Maze(6, key=True)
    assert (maze.num_states, maze.key_cell, maze.goal_cell) == (72, 7, 28)
    assert maze.next_states[6, ACTIONS.index("up")] == 36 + 7
    assert (maze.next_states[36:] >= 36).all()
    assert maze.mdp().table.states.tolist().count(7) == 0 and len(maze.mdp().table) == 71 * 5


def test_rewards_as_published():
    goal, path = Maze(10).state_rewards, Maze(10, reward="path").state_rewards
    assert goal.sum() == goal[88] == 1
    assert np.unique(path).tolist() == [-0.4, 0, 1]
    assert [path[i] for i in (0, 1, 10, 11, 12, 99)] == [0, 0, -0.4, 0, 0, 0]
    assert (path == 0).sum() == 18 and path[88] == 1
    with_key = Maze(6, True).state_rewards
    assert with_key.sum() == with_key[36 + 28] == 1


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(("size", "key"), LAYOUTS)
def test_shaping_is_exact_on_every_transition(size, key, reward, shaping):
    """D1, D2: gamma phi(s') - phi(s) everywhere, rows of the goal included."""
    shaped, plain = Maze(size, key, reward, shaping), Maze(size, key, reward)
    table, rewards = maze_rewards(shaped)
    expected = GAMMA * shaped.potential[table.next_states] - shaped.potential[table.states]
    difference = rewards - plain.rewards(table.states, table.next_states)
    np.testing.assert_allclose(difference, expected, atol=1e-12)
    assert (table.states % size**2 == shaped.goal_cell).sum() == 5 * (1 + key)
    mdp = shaped.mdp()
    q, q_plain = (mdp.solve(maze_rewards(m)[1], GAMMA) for m in (shaped, plain))
    np.testing.assert_array_equal(optimal_actions(q, 1e-7), optimal_actions(q_plain, 1e-7))


def test_potentials_of_the_shapings():
    x, y = np.divmod(np.arange(100), 10)
    distance = abs(x - 8) + abs(y - 8)
    assert (Maze(10, shaping="dense").potential == -distance).all()
    assert (Maze(10, shaping="antidense").potential == distance).all()
    random = Maze(10, shaping="random").potential
    np.testing.assert_array_equal(random, np.random.default_rng(0).uniform(-1, 1, 100))
    key = Maze(6, True, shaping="random").potential
    np.testing.assert_array_equal(key[:36], key[36:])


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize(("size", "key"), LAYOUTS)
def test_net_environment_and_table_agree(size, key, shaping):
    maze = Maze(size, key, "path", shaping)
    table, rewards = maze_rewards(maze)
    np.testing.assert_allclose(maze.reward_net().rewards(table), rewards, atol=1e-12)
    env = MazeEnv(size, key, "path", shaping)
    env.action_space.seed(0)
    state, _ = env.reset(seed=0)
    for _ in range(300):
        action = int(env.action_space.sample())
        after, reward, terminated, truncated, _ = env.step(action)
        assert after == maze.next_states[state, action] and not terminated and not truncated
        assert reward == pytest.approx(maze.rewards(np.array(state), np.array(after)), abs=1e-12)
        state = after


def test_episodes_start_anywhere_but_on_goal_and_key():
    env = MazeEnv(6, key=True)
    starts = {env.reset(seed=seed)[0] for seed in range(1000)}
    assert starts == set(range(36)) - {28, 7}
    assert {MazeEnv(4).reset(seed=s)[0] for s in range(300)} == set(range(16)) - {10}
    fixed = MazeEnv(10, random_start=False)
    assert {fixed.reset(seed=seed)[0] for seed in range(5)} == {81}


@pytest.mark.parametrize(
    ("env_id", "limit"),
    [
        ("aprl/EmptyMaze4-v0", 8),
        ("aprl/EmptyMaze10-v0", 20),
        ("aprl/KeyMaze6-v0", 20),
        ("aprl/KeyMaze10-v0", 30),
    ],
)
def test_time_limits(env_id, limit):
    env = gymnasium.make(env_id)
    env.reset(seed=0)
    for step in range(1, limit + 1):
        _, _, terminated, truncated, _ = env.step(0)
        assert not terminated and truncated == (step == limit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, "size of at least 3"),
        ({"size": 4.0}, "size"),
        ({"size": 5, "shaping": "dens"}, "did you mean 'dense'"),
        ({"size": 5, "reward": "gaol"}, "'goal'"),
    ],
)
def test_impossible_mazes(options, message):
    with pytest.raises(ConfigError, match=message):
        Maze(**options)
