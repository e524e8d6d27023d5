import numpy as np
import pytest

from aprl.envs.matrix_games import GAMES, MatrixGame, matching_pennies, rock_paper_scissors
from aprl.errors import ConfigError
from tests.envs.contract import check_vec_multi_env

ASYMMETRIC = np.array([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])


@pytest.mark.parametrize("factory", GAMES.values(), ids=GAMES.keys())
def test_contract(factory):
    check_vec_multi_env(
        lambda num_envs, seed: factory(num_envs, seed, max_episode_steps=7),
        steps=20,
        sizes=(1, 8, 32),
        random_starts=False,
    )


def test_registered_ids():
    assert {
        "aprl/IteratedMatchingPennies-v0": matching_pennies,
        "aprl/RockPaperScissors-v0": rock_paper_scissors,
    } == GAMES


def test_matching_pennies_pays_agent_0_for_a_match():
    game = matching_pennies(num_envs=4)
    game.reset()
    _, rewards, _, _ = game.step([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])])
    np.testing.assert_array_equal(rewards, [[1, -1, -1, 1], [-1, 1, 1, -1]])


def test_rock_paper_scissors_pays_the_winner():
    rock, paper, scissors = 0, 1, 2
    rounds = [
        (rock, rock, 0),
        (rock, paper, -1),
        (rock, scissors, 1),
        (paper, rock, 1),
        (paper, paper, 0),
        (paper, scissors, -1),
        (scissors, rock, -1),
        (scissors, paper, 1),
        (scissors, scissors, 0),
    ]
    first, second, expected = (np.array(column) for column in zip(*rounds, strict=True))
    game = rock_paper_scissors(num_envs=9)
    game.reset()
    _, rewards, _, _ = game.step([first, second])
    np.testing.assert_array_equal(rewards, [expected, -expected])


def test_each_agent_observes_the_other_agents_action():
    game = rock_paper_scissors(num_envs=2)
    for rows in game.reset():
        np.testing.assert_array_equal(rows, [0, 0])
    observations, _, _, _ = game.step([np.array([2, 1]), np.array([1, 0])])
    np.testing.assert_array_equal(observations[0], [1, 0])
    np.testing.assert_array_equal(observations[1], [2, 1])


def test_payoff_is_indexed_by_agent_then_both_actions():
    game = MatrixGame(ASYMMETRIC, num_envs=2)
    game.reset()
    _, rewards, _, _ = game.step([np.array([0, 1]), np.array([1, 0])])
    np.testing.assert_array_equal(rewards, [[2.0, 3.0], [20.0, 30.0]])


def test_terms_split_the_reward():
    game = MatrixGame(ASYMMETRIC, num_envs=1)
    game.reset()
    game.step([np.array([1]), np.array([1])])
    assert game.terms(0) == {"reward_move": 0.0, "reward_remaining": 4.0}
    assert game.terms(1) == {"reward_move": 0.0, "reward_remaining": 40.0}
    game.reset()
    assert game.terms(1) == {"reward_move": 0.0, "reward_remaining": 0.0}
    for unknown in (-1, 2):
        with pytest.raises(ConfigError, match=str(unknown)):
            game.terms(unknown)


def test_episode_ends_by_the_time_limit_and_starts_anew():
    game = MatrixGame(ASYMMETRIC, num_envs=2, max_episode_steps=3)
    game.reset()
    actions = [np.array([1, 0]), np.array([0, 1])]
    for _ in range(2):
        _, _, done, infos = game.step(actions)
        assert not done.any() and infos == [{}, {}]
    observations, rewards, done, infos = game.step(actions)
    assert done.all()
    np.testing.assert_array_equal(rewards, [[3.0, 2.0], [30.0, 20.0]])
    for rows in observations:
        np.testing.assert_array_equal(rows, [0, 0])
    assert infos[0] == {
        0: {"reward_move": 0.0, "reward_remaining": 3.0},
        1: {"reward_move": 0.0, "reward_remaining": 30.0, "winner": True},
        "terminal_observation": (0, 1),
        "TimeLimit.truncated": True,
        "episode": {"r0": 9.0, "r1": 90.0, "l": 3},
    }
    assert infos[1]["terminal_observation"] == (1, 0)
    _, _, done, _ = game.step(actions)
    assert not done.any()


def test_default_time_limit_is_200():
    action = [np.array([0]), np.array([0])]
    for game in (matching_pennies(1), rock_paper_scissors(1), MatrixGame(ASYMMETRIC, 1)):
        game.reset()
        ends = [bool(game.step(action)[2][0]) for _ in range(400)]
        assert np.flatnonzero(ends).tolist() == [199, 399]


def test_only_the_environment_that_ends_starts_anew():
    game = MatrixGame(ASYMMETRIC, num_envs=2, max_episode_steps=3)
    game.reset()
    state = game.state_dict()
    state["episodes"]["lengths"][:] = [0, 2]
    game.load_state_dict(state)
    observations, _, done, infos = game.step([np.array([1, 1]), np.array([1, 1])])
    assert done.tolist() == [False, True]
    assert infos[0] == {} and infos[1]["episode"]["l"] == 3
    for rows in observations:
        np.testing.assert_array_equal(rows, [1, 0])
    assert game.state_dict()["episodes"]["lengths"].tolist() == [1, 0]


def test_winner_by_return_of_the_episode_and_tie():
    game = matching_pennies(num_envs=3, max_episode_steps=2)
    game.reset()
    heads, mixed = np.array([0, 0, 0]), np.array([0, 1, 0])
    game.step([heads, mixed])
    _, _, _, infos = game.step([heads, np.array([0, 1, 1])])
    assert "winner" in infos[0][0] and "winner" not in infos[0][1]
    assert "winner" in infos[1][1] and "winner" not in infos[1][0]
    assert "winner" not in infos[2][0] and "winner" not in infos[2][1]
    # The next episode counts from nothing: two wins of agent 1 outweigh no earlier ones.
    game.step([heads, 1 - heads])
    _, _, _, infos = game.step([heads, 1 - heads])
    assert all("winner" in info[1] for info in infos)


def test_reset_abandons_the_episode():
    game = matching_pennies(num_envs=1, max_episode_steps=2)
    game.reset()
    action = [np.array([0]), np.array([0])]
    game.step(action)
    game.reset()
    assert not game.step(action)[2][0]
    _, _, done, infos = game.step(action)
    assert done[0] and infos[0]["episode"] == {"r0": 2.0, "r1": -2.0, "l": 2}


@pytest.mark.parametrize(("bad", "agent"), [(3, 0), (-1, 1)])
def test_action_out_of_range_is_named(bad, agent):
    game = rock_paper_scissors(num_envs=3)
    game.reset()
    actions = [np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)]
    actions[agent][2] = bad
    with pytest.raises(ConfigError, match=f"action {bad} of agent {agent} in environment 2"):
        game.step(actions)


@pytest.mark.parametrize(
    "actions",
    [
        [np.zeros(2, dtype=np.int64)],
        [np.zeros(2, dtype=np.int64)] * 3,
        [np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)],
        [np.zeros(2, dtype=np.int64), np.zeros((2, 1), dtype=np.int64)],
        [np.zeros(2, dtype=np.int64), np.zeros(2)],
    ],
    ids=["one agent", "three agents", "too many rows", "two axes", "floats"],
)
def test_malformed_actions_are_refused_before_anything_changes(actions):
    game = matching_pennies(num_envs=2, max_episode_steps=1)
    game.reset()
    with pytest.raises(ConfigError, match="agent"):
        game.step(actions)
    assert game.state_dict()["episodes"]["lengths"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "payoff",
    [np.zeros((2, 2)), np.zeros((3, 2, 2)), np.zeros((2, 2, 3)), np.zeros((2, 0, 0)), np.zeros(())],
)
def test_payoff_of_another_shape_is_refused(payoff):
    with pytest.raises(ConfigError, match=r"\(2, n, n\)"):
        MatrixGame(payoff, num_envs=1)


def test_payoff_must_be_finite():
    with pytest.raises(ConfigError, match="nan"):
        MatrixGame(np.full((2, 2, 2), np.nan), num_envs=1)


def test_payoff_is_copied():
    payoff = ASYMMETRIC.copy()
    game = MatrixGame(payoff, num_envs=1)
    payoff[:] = 0.0
    game.reset()
    _, rewards, _, _ = game.step([np.array([0]), np.array([0])])
    np.testing.assert_array_equal(rewards, [[1.0], [10.0]])


@pytest.mark.parametrize("name", ["num_envs", "max_episode_steps"])
def test_numbers_below_one_are_refused(name):
    arguments = {"num_envs": 1, "max_episode_steps": 1, name: 0}
    with pytest.raises(ConfigError, match=name):
        matching_pennies(**arguments)


def test_state_of_another_number_of_environments_is_refused():
    with pytest.raises(ConfigError, match="number of agents and environments"):
        matching_pennies(2).load_state_dict(matching_pennies(3).state_dict())
