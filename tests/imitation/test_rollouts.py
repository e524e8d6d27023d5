import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.rollouts import GameRecorder, collect_trajectories
from aprl.policies import ConstantPolicy, RandomPolicy
from aprl.scoring import play_games
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from tests.training.fakes import BOX, ScriptedGame, StatelessPolicy


def scripted(lengths):
    """Environment `i` ends after `lengths[i]` steps; observations are (i, step)."""
    game = CurryVecEnv(ScriptedGame(lengths), StatelessPolicy(), 1)
    return FlattenSingletonVecEnv(game, 0)


def test_short_episodes_are_not_recorded_more_often():
    recorded = collect_trajectories(scripted([1, 10]), StatelessPolicy(), 5)
    assert sorted(len(t) for t in recorded) == [1, 1, 1, 10, 10]


def test_observations_actions_and_ends():
    (first,) = collect_trajectories(scripted([3]), ConstantPolicy(BOX, BOX, [1.0, 2.0]), 1)
    np.testing.assert_array_equal(first.obs, [[0, 0], [0, 1], [0, 2], [0, 3]])
    np.testing.assert_array_equal(first.actions, [[1, 2]] * 3)
    np.testing.assert_array_equal(first.rewards, [1, 1, 1])
    assert first.terminated and not first.truncated


def test_time_limits_are_truncations():
    venv = GymVecEnv("CartPole-v1", 3, horizon=7)
    policy = RandomPolicy(venv.observation_space, venv.action_space)
    counts = []
    recorded = collect_trajectories(venv, policy, 4, on_progress=counts.append)
    assert [len(t) for t in recorded] == [7] * 4
    assert all(t.truncated and not t.terminated for t in recorded)
    assert counts[-1] == 4
    with pytest.raises(ConfigError, match="episodes must be at least 1, got 0"):
        collect_trajectories(venv, policy, 0)


@pytest.mark.parametrize("agent", [0, 1])
def test_one_player_of_a_game(agent):
    game = ScriptedGame([2, 3])
    players = [ConstantPolicy(BOX, BOX, [5.0, 0.0]), ConstantPolicy(BOX, BOX, [7.0, 0.0])]
    recorder = GameRecorder(2, agent)
    score = play_games(game, players, episodes=4, observers=[recorder])
    assert score.games == len(recorder.finished) == 4
    assert sorted(len(t) for t in recorder.finished) == [2, 2, 3, 3]
    for episode in recorder.finished:
        assert (episode.actions[:, 0] == (5.0, 7.0)[agent]).all()
        np.testing.assert_array_equal(episode.obs[:, 1] - 50 * agent, np.arange(len(episode) + 1))
        assert (episode.rewards == (1.0, -1.0)[agent]).all()
        assert len(set(episode.obs[:, 0])) == 1  # of one environment only
