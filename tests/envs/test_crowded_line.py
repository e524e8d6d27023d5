import math

import numpy as np
import pytest

from aprl.envs.crowded_line import GAMES, CrowdedLine, shared_food_rewards
from aprl.errors import AprlError, ConfigError
from tests.envs.contract import check_vec_multi_env, random_actions


def place(game: CrowdedLine, positions: list[float], velocities: list[float]) -> None:
    """Put the agents of a one-environment game where the test wants them."""
    game.reset()
    state = game.state_dict()
    state["state"][:, 0, 0] = positions
    state["state"][:, 0, 1] = velocities
    game.load_state_dict(state)


def still(game: CrowdedLine) -> list[np.ndarray]:
    return [np.zeros((game.num_envs, 1), dtype=np.float32)] * game.num_agents


@pytest.mark.parametrize("num_agents", [2, 3, 5])
def test_contract(num_agents):
    check_vec_multi_env(
        lambda n, seed: CrowdedLine(n, seed, num_agents=num_agents, max_episode_steps=7),
        steps=20,
        sizes=(1, 8, 32),
    )


def test_registered_id_has_three_agents():
    assert {"aprl/CrowdedLine-v0"} == GAMES.keys()
    game = GAMES["aprl/CrowdedLine-v0"](num_envs=1, seed=0)
    assert game.num_agents == 3
    assert all(space.shape == (2,) for space in game.observation_spaces)
    assert all(space.shape == (1,) for space in game.action_spaces)


def test_position_moves_by_the_old_velocity_then_velocity_by_the_action():
    game = CrowdedLine(num_envs=1)
    place(game, [0.0, 0.5, -0.5], [0.5, -1.0, 0.0])
    actions = [np.array([[a]]) for a in (0.25, 0.5, -0.75)]
    observations, _, _, _ = game.step(actions)
    expected = [[0.05, 0.75], [0.4, -0.5], [-0.5, -0.75]]
    np.testing.assert_allclose(np.concatenate(observations), expected, rtol=0, atol=1e-7)


def test_position_and_velocity_are_clipped():
    game = CrowdedLine(num_envs=1, num_agents=2)
    place(game, [0.99, -0.99], [1.0, -1.0])
    observations, _, _, _ = game.step([np.array([[1.0]]), np.array([[-1.0]])])
    np.testing.assert_array_equal(np.concatenate(observations), [[1.0, 1.0], [-1.0, -1.0]])


def test_actions_are_clipped_to_the_box():
    game = CrowdedLine(num_envs=1, num_agents=2)
    place(game, [0.0, 0.0], [-0.5, 0.5])
    observations, _, _, _ = game.step([np.array([[7.0]]), np.array([[-np.inf]])])
    assert observations[0][0, 1] == 0.5 and observations[1][0, 1] == -0.5


def test_rewards_of_two_agents_by_hand():
    # Foods at -1 and 1; agents at 0 and 1. Squared distances: (1, 1) and (4, 0).
    near, far = math.exp(-1.0), math.exp(-4.0)
    expected = near / (near + far) + near / (near + 1.0) - 1.0
    rewards = shared_food_rewards(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(rewards, [[expected], [-expected]], rtol=0, atol=1e-12)


def test_rewards_of_a_step_use_the_new_positions_before_clipping():
    game = CrowdedLine(num_envs=1, num_agents=2)
    place(game, [0.95, 0.0], [1.0, 0.0])
    _, rewards, _, _ = game.step(still(game))
    expected = shared_food_rewards(np.array([[1.05], [0.0]]), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(rewards, expected, rtol=0, atol=1e-11)
    clipped = shared_food_rewards(np.array([[1.0], [0.0]]), np.array([-1.0, 1.0]))
    assert abs(rewards - clipped).max() > 1e-3


def test_foods_are_spread_evenly():
    np.testing.assert_allclose(CrowdedLine(1, num_agents=5).foods, [-1, -0.5, 0, 0.5, 1])


def test_agents_at_one_place_share_alike_and_tie():
    game = CrowdedLine(num_envs=1, num_agents=3, max_episode_steps=1)
    place(game, [0.3, 0.3, 0.3], [0.0, 0.0, 0.0])
    _, rewards, done, infos = game.step(still(game))
    np.testing.assert_array_equal(rewards, np.zeros((3, 1)))
    assert done[0] and not any("winner" in infos[0][agent] for agent in range(3))


def test_agent_nearest_to_the_uncontested_food_wins():
    game = CrowdedLine(num_envs=1, num_agents=3, max_episode_steps=1)
    place(game, [-0.9, 0.9, -0.9], [0.0, 0.0, 0.0])
    _, rewards, _, infos = game.step(still(game))
    assert rewards[1, 0] > 0.0
    assert [("winner" in infos[0][agent]) for agent in range(3)] == [False, True, False]


@pytest.mark.parametrize("num_agents", [2, 3, 7])
def test_rewards_are_exactly_zero_sum_in_any_order(num_agents):
    game = CrowdedLine(num_envs=16, seed=3, num_agents=num_agents, max_episode_steps=50)
    game.reset()
    returns = np.zeros((num_agents, 16))
    for actions in random_actions(game, 49):
        _, rewards, _, _ = game.step(actions)
        assert rewards.any()
        assert not rewards.sum(axis=0).any() and not rewards[::-1].sum(axis=0).any()
        assert all(math.fsum(column) == 0.0 for column in rewards.T)
        returns += rewards
    assert not returns.sum(axis=0).any()


def test_terms_are_the_reward():
    game = CrowdedLine(num_envs=4, seed=1)
    game.reset()
    _, rewards, _, _ = game.step(still(game))
    for agent in range(3):
        terms = game.terms(agent)
        assert terms.keys() == {"reward_move", "reward_remaining"}
        assert not terms["reward_move"].any()
        np.testing.assert_array_equal(terms["reward_remaining"], rewards[agent])
    with pytest.raises(ConfigError, match="3"):
        game.terms(3)
    game.reset()
    assert not game.terms(0)["reward_remaining"].any()


def test_episode_ends_after_200_steps_with_its_last_state_shown():
    game = CrowdedLine(num_envs=2, seed=9)
    game.reset()
    for step in range(200):
        before = game.state_dict()["state"]
        observations, _, done, infos = game.step(still(game))
        assert done.all() == done.any() == (step == 199)
    moved = np.clip(before[..., 0] + 0.1 * before[..., 1], -1.0, 1.0)
    for env, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True
        assert info["episode"]["l"] == 200
        last = [row[0] for row in info["terminal_observation"]]
        np.testing.assert_allclose(last, moved[:, env], rtol=0, atol=1e-6)
    fresh = game.state_dict()["state"].astype(np.float32)
    np.testing.assert_array_equal(np.stack(observations), fresh)


def test_only_the_environment_that_ends_starts_anew():
    game = CrowdedLine(num_envs=2, seed=4, max_episode_steps=3)
    game.reset()
    state = game.state_dict()
    state["episodes"]["lengths"][:] = [0, 2]
    game.load_state_dict(state)
    observations, _, done, infos = game.step(still(game))
    assert done.tolist() == [False, True]
    assert infos[0] == {} and infos[1]["episode"]["l"] == 3
    expected = np.clip(state["state"][..., 0] + 0.1 * state["state"][..., 1], -1.0, 1.0)
    positions = np.stack(observations)[..., 0]
    np.testing.assert_allclose(positions[:, 0], expected[:, 0], rtol=0, atol=1e-6)
    assert (abs(positions[:, 1] - expected[:, 1]) > 1e-3).all()


def test_starts_fill_the_box():
    starts = np.stack(CrowdedLine(num_envs=500, seed=2).reset())
    assert starts.min() < -0.97 and starts.max() > 0.97
    assert abs(starts.mean()) < 0.05


def test_environments_draw_from_the_documented_streams():
    starts = np.stack(CrowdedLine(num_envs=4, seed=11).reset())
    streams = np.random.SeedSequence(11).spawn(4)
    for env, stream in enumerate(streams):
        expected = np.random.default_rng(stream).uniform(-1.0, 1.0, (3, 2)).astype(np.float32)
        np.testing.assert_array_equal(starts[:, env], expected)


def test_every_reset_draws_new_starts():
    game = CrowdedLine(num_envs=2)
    first = np.stack(game.reset())
    assert (np.stack(game.reset()) != first).all()


@pytest.mark.parametrize(("agent", "env"), [(0, 2), (2, 0)])
def test_nan_action_is_named_and_changes_nothing(agent, env):
    game = CrowdedLine(num_envs=3)
    game.reset()
    before = game.state_dict()["state"]
    actions = [np.zeros((3, 1), dtype=np.float32) for _ in range(3)]
    actions[agent][env] = np.nan
    with pytest.raises(ConfigError, match=f"agent {agent} in environment {env}"):
        game.step(actions)
    np.testing.assert_array_equal(game.state_dict()["state"], before)


@pytest.mark.parametrize(
    "shapes", [[(2, 1)], [(2, 1)] * 4, [(2, 1), (2, 1), (2,)], [(2, 1), (2, 1), (3, 1)]]
)
def test_malformed_actions_are_refused(shapes):
    game = CrowdedLine(num_envs=2)
    game.reset()
    with pytest.raises(ConfigError, match="agent"):
        game.step([np.zeros(shape) for shape in shapes])


def test_step_before_reset_says_so():
    game = CrowdedLine(num_envs=1)
    with pytest.raises(AprlError, match="reset"):
        game.step(still(game))


def test_a_state_saved_before_the_first_reset_still_needs_one():
    game = CrowdedLine(num_envs=1)
    unused = game.state_dict()
    game.reset()
    game.load_state_dict(unused)
    with pytest.raises(AprlError, match="reset"):
        game.step(still(game))


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_envs", 0), ("num_agents", 1), ("num_agents", 0), ("max_episode_steps", 0), ("seed", -1)],
)
def test_bad_numbers_are_refused(name, value):
    arguments = {"num_envs": 1, name: value}
    with pytest.raises(ConfigError, match=f"{name}.*{value}"):
        CrowdedLine(**arguments)


@pytest.mark.parametrize("other", [{"num_envs": 3}, {"num_envs": 2, "num_agents": 4}])
def test_state_of_another_game_size_is_refused(other):
    game = CrowdedLine(num_envs=2)
    game.reset()
    before = game.state_dict()["state"]
    with pytest.raises(ConfigError, match="number of agents and environments"):
        game.load_state_dict(CrowdedLine(**other).state_dict())
    np.testing.assert_array_equal(game.state_dict()["state"], before)
