"""Embedding players: whose numbers go where, and whose memory is whose."""

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, GameOutcomeMonitor
from tests.training.fakes import CountingPolicy, ScriptedGame

PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def embedded_rps(victim_action, embed_index=1, num_envs=3):
    game = make_vec("aprl/RockPaperScissors-v0", num_envs, max_episode_steps=4)
    space = game.action_spaces[0]
    policy = ConstantPolicy(game.observation_spaces[0], space, victim_action)
    return FlattenSingletonVecEnv(CurryVecEnv(game, policy, embed_index), 1 - embed_index)


@pytest.mark.parametrize("embed_index", [0, 1])
@pytest.mark.parametrize("victim_action", [0, 1, 2])
def test_learners_reward_is_the_payoff_row(embed_index, victim_action):
    venv = embedded_rps(victim_action, embed_index)
    venv.reset()
    _, rewards, _, _ = venv.step(np.array([0, 1, 2]))
    np.testing.assert_array_equal(rewards, PAYOFF[[0, 1, 2], victim_action])


def test_infos_keep_both_agents_and_the_learners_last_observation():
    venv = embedded_rps(victim_action=2)
    venv.reset()
    for _ in range(4):
        obs, _, dones, infos = venv.step(np.array([0, 1, 2]))
    assert dones.all()
    for env, expected in enumerate([4.0, -4.0, 0.0]):  # rock beats scissors, and so on
        assert {0, 1} <= set(infos[env])
        assert infos[env]["terminal_observation"] == 2  # what the opponent played
        assert infos[env]["episode"]["r"] == expected
        assert infos[env]["TimeLimit.truncated"] is True
    np.testing.assert_array_equal(obs, [0, 0, 0])  # the new episode has begun


def run_scripted(lengths, steps, reset_at=None):
    policy = CountingPolicy()
    game = ScriptedGame(lengths)
    venv = CurryVecEnv(game, policy, agent_idx=1)
    venv.reset()
    for step in range(steps):
        if step == reset_at:
            venv.reset()
        venv.step([np.zeros((len(lengths), 2), np.float32)])
    return policy, game


def test_memory_is_kept_per_environment_and_starts_from_the_policys_own_initial_state():
    policy, game = run_scripted(lengths=[2, 3, 100], steps=7)
    states = np.array([state[:, 0] for _, state, _ in policy.seen])
    starts = np.array([mask for _, _, mask in policy.seen])
    np.testing.assert_array_equal(states[:, 0] - 100, [0, 1, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(states[:, 1] - 100, [0, 1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(states[:, 2] - 100, np.arange(7))
    np.testing.assert_array_equal(starts, states == 100)
    # What was played is what this environment's memory said, in the seat of agent 1.
    played = np.array([actions[1][:, 0] for actions in game.actions])
    np.testing.assert_array_equal(played, states)
    # And it looked at agent 1's observation of the same moment.
    np.testing.assert_array_equal(policy.seen[6][0][:, 1], 50 + states[6] - 100)


def test_explicit_reset_clears_memory():
    policy, _ = run_scripted(lengths=[100, 100], steps=5, reset_at=3)
    states = np.array([state[:, 0] for _, state, _ in policy.seen])
    np.testing.assert_array_equal(states[:, 0] - 100, [0, 1, 2, 0, 1])
    assert policy.seen[3][2].all()


def test_state_dict_restores_memory_in_the_middle_of_episodes():
    policy, game = CountingPolicy(), ScriptedGame([3, 5])
    venv = CurryVecEnv(game, policy, agent_idx=0)
    venv.reset()
    action = [np.zeros((2, 2), np.float32)]
    for _ in range(4):
        venv.step(action)
    saved = venv.state_dict()
    expected = [venv.step(action)[0][0] for _ in range(4)]
    played = game.actions[-4:]
    venv.reset()
    venv.load_state_dict(saved)
    again = [venv.step(action)[0][0] for _ in range(4)]
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_array_equal(game.actions[-4:], played)


def test_terminal_observation_of_the_hidden_agent_is_removed():
    venv = CurryVecEnv(ScriptedGame([2]), CountingPolicy(), agent_idx=0)
    venv.reset()
    for _ in range(2):
        obs, rewards, _, infos = venv.step([np.zeros((1, 2), np.float32)])
    (last,) = infos[0]["terminal_observation"]
    np.testing.assert_array_equal(last, [50, 52])
    np.testing.assert_array_equal(obs[0], [[50, 50]])
    np.testing.assert_array_equal(rewards, [[-1.0]])


@pytest.mark.parametrize("deterministic", [False, True])
def test_determinism_is_passed_on(deterministic):
    policy = CountingPolicy()
    venv = CurryVecEnv(ScriptedGame([9]), policy, 0, deterministic=deterministic)
    venv.reset()
    venv.step([np.zeros((1, 2), np.float32)])
    assert policy.deterministic == [deterministic]
    assert venv.get_policy() is policy


def test_wrong_seats_and_spaces_are_refused():
    with pytest.raises(ConfigError, match="agent_idx"):
        CurryVecEnv(ScriptedGame([1]), CountingPolicy(), agent_idx=2)
    rps = make_vec("aprl/RockPaperScissors-v0", 1)
    with pytest.raises(ConfigError, match="observation space"):
        CurryVecEnv(rps, CountingPolicy(), agent_idx=0)
    with pytest.raises(ConfigError, match="one agent must be left"):
        FlattenSingletonVecEnv(rps, 0)


def test_every_finished_game_is_counted():
    monitor = GameOutcomeMonitor(ScriptedGame([2, 3, 100]))
    monitor.reset()
    for _ in range(6):
        monitor.step([np.zeros((3, 2), np.float32)] * 2)
    values = monitor.log_values()
    assert values["game_count_win0"] == values["game_total"] == 5
    assert values["game_win0"] == 1.0 and values["game_tie"] == 0.0
    assert values["game_length"] == (3 * 2 + 2 * 3) / 5
    state = monitor.state_dict()
    monitor.clear()
    assert monitor.games == 0 and "game_win0" not in monitor.log_values()
    monitor.load_state_dict(state)
    assert monitor.log_values() == values
