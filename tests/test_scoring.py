"""Scores: exact counts, known winners, no bias towards short games."""

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy
from aprl.score_agent import ScoreConfig, score, score_table
from aprl.scoring import play_games
from tests.training.fakes import CountingPolicy, ScriptedGame


class UnevenGame(ScriptedGame):
    """Agent 0 wins the short games of environment 0, agent 1 the long ones of environment 1."""

    def step(self, actions):
        obs, rewards, dones, infos = super().step(actions)
        if dones[1]:
            infos[1][0].pop("winner")
            infos[1][1]["winner"] = True
        return obs, rewards, dones, infos


def test_each_environment_plays_its_share_so_short_games_do_not_count_more():
    result = play_games(UnevenGame([1, 10]), [CountingPolicy(), CountingPolicy()], episodes=7)
    assert result.wins == (4, 3) and result.ties == 0 and result.games == 7
    assert result.mean_length == pytest.approx((4 * 1 + 3 * 10) / 7)


def test_timesteps_bound_counts_whatever_finishes():
    result = play_games(UnevenGame([1, 10]), [CountingPolicy()] * 2, timesteps=40)
    assert result.wins == (20, 2)


def test_memory_of_each_side_starts_anew_with_each_game():
    policy = CountingPolicy()
    play_games(ScriptedGame([2, 3]), [policy, CountingPolicy()], episodes=4)
    states = np.array([state[:, 0] for _, state, _ in policy.seen]) - 100
    np.testing.assert_array_equal(states[:, 0], np.arange(len(states)) % 2)
    np.testing.assert_array_equal(states[:, 1], np.arange(len(states)) % 3)


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


def test_bad_bounds_are_refused():
    venv = make_vec("aprl/RockPaperScissors-v0", 1)
    policies = [ConstantPolicy(venv.action_spaces[0], venv.action_spaces[0], 0)] * 2
    for bounds in ({}, {"episodes": 0}, {"timesteps": -1}):
        with pytest.raises(ConfigError):
            play_games(venv, policies, **bounds)
    with pytest.raises(ConfigError, match="policies"):
        play_games(venv, policies[:1], episodes=1)


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
