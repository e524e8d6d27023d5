"""Scores: exact counts, known winners, no bias towards short games."""

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy
from aprl.score_agent import ScoreConfig, score, score_table
from aprl.scoring import Score, play_games
from tests.training.fakes import CountingPolicy, OutcomeGame, ScriptedGame, WitnessPolicy


def counting():
    return [CountingPolicy(), CountingPolicy()]


@pytest.mark.parametrize(
    ("episodes", "wins"),
    [
        (1, (1, 0, 0)),  # fewer games than environments
        (2, (1, 1, 0)),
        (3, (1, 1, 1)),
        (7, (3, 2, 2)),
        (8, (3, 3, 2)),
        (9, (3, 3, 3)),
    ],
)
def test_each_environment_plays_its_share_so_short_games_do_not_count_more(episodes, wins):
    """Agent 0 wins the shortest games, agent 1 longer ones; the longest are ties."""
    game = OutcomeGame([1, 5, 10], winners=[0, 1, None])
    result = play_games(game, counting(), episodes=episodes)
    assert (*result.wins, result.ties) == wins and result.games == episodes
    assert result.mean_length == pytest.approx(np.dot(wins, [1, 5, 10]) / episodes)
    # It stopped as soon as the last game was over.
    assert len(game.actions) == max(np.multiply(wins, [1, 5, 10]))


@pytest.mark.parametrize(
    ("timesteps", "steps", "wins"),
    [
        (40, 20, (20, 2)),
        (41, 20, (20, 2)),  # another step of both environments would exceed it
        (42, 21, (21, 2)),
        (2, 1, (1, 0)),
        (1, 0, (0, 0)),
    ],
)
def test_timesteps_bound_counts_whatever_finishes(timesteps, steps, wins):
    game = OutcomeGame([1, 10], winners=[0, 1])
    result = play_games(game, counting(), timesteps=timesteps)
    assert len(game.actions) == steps
    assert result.wins == wins and result.ties == 0


def test_the_first_bound_that_is_reached_ends_the_games():
    game = OutcomeGame([1, 10], winners=[0, 1])
    assert play_games(game, counting(), episodes=4, timesteps=30).wins == (2, 1)
    assert play_games(game, counting(), episodes=4, timesteps=1000).wins == (2, 2)


def test_no_game_finished():
    result = play_games(OutcomeGame([100], winners=[0]), counting(), timesteps=5)
    assert result.games == 0 and result.mean_length == 0
    assert result.win_rate(0).interval == (0.0, 1.0)


def test_memory_of_each_side_starts_anew_with_each_game():
    sides = [WitnessPolicy(), WitnessPolicy()]
    play_games(ScriptedGame([2, 3]), sides, episodes=4)
    for seat, policy in enumerate(sides):
        states = np.array([state for _, state, _ in policy.seen])
        age = np.stack([np.arange(6) % 2, np.arange(6) % 3], axis=1)
        np.testing.assert_array_equal(states[..., 0], 100 + age)
        np.testing.assert_array_equal(states[..., 1], age * (np.arange(2) + 50 * seat))


def test_one_policy_may_play_both_sides():
    policy = WitnessPolicy()
    play_games(ScriptedGame([4]), [policy, policy], episodes=1)
    ages = [state[0, 0] - 100 for _, state, _ in policy.seen]
    assert ages == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("deterministic", [False, True])
def test_determinism_is_passed_to_both_sides(deterministic):
    sides = counting()
    play_games(ScriptedGame([2]), sides, episodes=1, deterministic=deterministic)
    assert [side.deterministic for side in sides] == [[deterministic] * 2] * 2


def test_progress_tells_the_games_counted_so_far():
    told = []
    game = OutcomeGame([1, 3], winners=[0, 1])
    play_games(game, counting(), episodes=4, on_progress=told.append)
    assert told == [1, 2, 3, 3, 3, 4]  # environment 0 has played its share after two steps


def test_unstable_games_count_among_the_ties():
    game = OutcomeGame([1, 2], winners=[None, 0], unstable=[0])
    result = play_games(game, counting(), episodes=6)
    assert (result.wins, result.ties, result.unstable) == ((3, 0), 3, 3)
    assert result.to_dict()["unstable"] == 3


@pytest.mark.parametrize(("a", "b", "wins"), [(0, 1, (0, 5)), (0, 2, (5, 0)), (1, 1, (0, 0))])
def test_known_policies(a, b, wins):
    venv = make_vec("aprl/RockPaperScissors-v0", 3)
    space = venv.action_spaces[0]
    result = play_games(venv, [ConstantPolicy(space, space, x) for x in (a, b)], episodes=5)
    assert result.wins == wins and result.ties == 5 - sum(wins)
    document = result.to_dict()
    assert document["win0"] == wins[0] and document["ties"] == 5 - sum(wins)
    assert document["interval0"][0] <= document["rate0"] <= document["interval0"][1]


def test_score_by_config_is_reproducible_and_printable():
    config = ScoreConfig(
        env_name="aprl/RockPaperScissors-v0",
        agent_a_type="random",
        agent_a_path="none",
        agent_b_type="random",
        agent_b_path="none",
        episodes=30,
        num_env=8,
    )
    first = score(config)
    assert first.games == 30 and first == score(config)
    config.seed = 1
    assert score(config) != first
    cells = [str(cell) for column in score_table(config, first).columns for cell in column.cells]
    assert any(f"({first.wins[0]}/30)" in cell for cell in cells)


def test_score_as_json():
    score = Score(wins=(3, 1), ties=4, unstable=1, mean_length=12.5)
    document = score.to_dict()
    assert {name: document[name] for name in ("win0", "win1", "ties", "games", "unstable")} == {
        "win0": 3,
        "win1": 1,
        "ties": 4,
        "games": 8,
        "unstable": 1,
    }
    assert (document["rate0"], document["rate1"]) == (3 / 8, 1 / 8)  # a tie is not a win
    assert document["interval0"] == pytest.approx([0.1368, 0.6943], abs=1e-4)  # Wilson
    assert document["mean_length"] == 12.5


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "give a number of episodes or of timesteps"),
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"timesteps": -1}, "timesteps must be at least 1, got -1"),
        ({"episodes": 1, "timesteps": 0}, "timesteps must be at least 1, got 0"),
    ],
)
def test_bad_bounds_are_refused(bounds, message):
    with pytest.raises(ConfigError, match=message):
        play_games(ScriptedGame([1]), counting(), **bounds)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_one_policy_per_agent_is_needed(number):
    with pytest.raises(ConfigError, match=f"2 policies are needed, {number} given"):
        play_games(ScriptedGame([1]), [CountingPolicy()] * number, episodes=1)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "reference"), [("v0", (0.45, 0.54)), ("v1", (0.48, 0.58))])
def test_published_policies_play_as_published(shared_dir, tmp_path, version, reference):
    """You Shall Not Pass, zoo 1 v zoo 1, stochastic; reference: agent 0's 95 % interval."""
    from aprl.policies.import_zoo import import_zoo

    import_zoo(shared_dir / "agent_zoo", tmp_path / "zoo")
    env_name = f"multicomp/YouShallNotPassHumans-{version}"
    result = score(ScoreConfig(env_name=env_name, episodes=1000, zoo_dir=str(tmp_path / "zoo")))
    low, high = result.win_rate(0).interval
    assert result.games == 1000 and result.ties == 0
    assert low <= reference[1] and high >= reference[0], result
