"""Embedding players: whose numbers go where, and whose memory is whose."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy, RandomPolicy, ZeroPolicy
from aprl.training.checkpoints import load_state, save_state
from aprl.training.embedding import (
    CurryVecEnv,
    FlattenSingletonVecEnv,
    GameOutcomeMonitor,
    PolicyPlayer,
    game_outcome,
)
from tests.training.fakes import (
    CountingPolicy,
    OutcomeGame,
    ScriptedGame,
    StatelessPolicy,
    WitnessPolicy,
)

PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])


def embedded_rps(victim_action, embed_index=1, num_envs=3):
    game = make_vec("aprl/RockPaperScissors-v0", num_envs, max_episode_steps=4)
    space = game.action_spaces[0]
    policy = ConstantPolicy(game.observation_spaces[0], space, victim_action)
    return FlattenSingletonVecEnv(CurryVecEnv(game, policy, embed_index), 1 - embed_index)


# What the learner sees.


@pytest.mark.parametrize("embed_index", [0, 1])
@pytest.mark.parametrize("victim_action", [0, 1, 2])
def test_learners_reward_is_the_payoff_row(embed_index, victim_action):
    venv = embedded_rps(victim_action, embed_index)
    venv.reset()
    obs, rewards, _, _ = venv.step(np.array([0, 1, 2]))
    np.testing.assert_array_equal(rewards, PAYOFF[[0, 1, 2], victim_action])
    np.testing.assert_array_equal(obs, [victim_action] * 3)  # it sees what the other one played


@pytest.mark.parametrize("embed_index", [0, 1])
def test_infos_keep_both_agents_and_the_learners_last_observation(embed_index):
    venv = embedded_rps(victim_action=2, embed_index=embed_index)
    learner = 1 - embed_index
    venv.reset()
    for _ in range(4):
        obs, _, dones, infos = venv.step(np.array([0, 1, 2]))
    assert dones.all()
    for env, expected in enumerate([4.0, -4.0, 0.0]):  # rock beats scissors, and so on
        assert infos[env][learner]["reward_remaining"] == expected / 4
        assert infos[env][embed_index]["reward_remaining"] == -expected / 4
        assert infos[env]["terminal_observation"] == 2  # what the opponent played
        assert infos[env]["episode"]["r"] == infos[env]["episode"][f"r{learner}"] == expected
        assert infos[env]["episode"][f"r{embed_index}"] == -expected
        assert infos[env]["episode"]["l"] == 4
        assert infos[env]["TimeLimit.truncated"] is True
    np.testing.assert_array_equal(obs, [0, 0, 0])  # the new episode has begun


def test_terminal_observation_of_the_hidden_agent_is_removed():
    venv = CurryVecEnv(ScriptedGame([2]), CountingPolicy(), agent_idx=0)
    venv.reset()
    for _ in range(2):
        obs, rewards, _, infos = venv.step([np.zeros((1, 2), np.float32)])
    (last,) = infos[0]["terminal_observation"]
    np.testing.assert_array_equal(last, [50, 52])
    np.testing.assert_array_equal(obs[0], [[50, 50]])
    np.testing.assert_array_equal(rewards, [[-1.0]])


def test_two_of_three_agents_embedded():
    game = make_vec("aprl/CrowdedLine-v0", 2, num_agents=3, max_episode_steps=2)
    bare = make_vec("aprl/CrowdedLine-v0", 2, num_agents=3, max_episode_steps=2)
    obs_space, act_space = game.observation_spaces[0], game.action_spaces[0]
    middle = CurryVecEnv(game, ConstantPolicy(obs_space, act_space, 0.5), 1)
    last = CurryVecEnv(middle, ConstantPolicy(obs_space, act_space, -1.0), 0)  # agent 0
    venv = FlattenSingletonVecEnv(last, agent_idx=2)
    np.testing.assert_array_equal(venv.reset(), bare.reset()[2])
    own = np.array([[0.25], [0.75]], np.float32)
    for _ in range(2):
        actions = [np.full((2, 1), -1.0), np.full((2, 1), 0.5), own]
        everyone = bare.step(actions)
        obs, rewards, dones, infos = venv.step(own)
        np.testing.assert_array_equal(obs, everyone[0][2])
        np.testing.assert_array_equal(rewards, everyone[1][2])
    assert dones.all()
    for info, expected in zip(infos, everyone[3], strict=True):
        np.testing.assert_array_equal(
            info["terminal_observation"], expected["terminal_observation"][2]
        )
        assert info["episode"]["r"] == expected["episode"]["r2"]
        assert {0, 1, 2} <= set(info)


def test_every_agent_can_be_embedded():
    venv = CurryVecEnv(ScriptedGame([1, 5]), CountingPolicy(), 1)
    venv = CurryVecEnv(venv, CountingPolicy(), 0)
    assert venv.num_agents == 0 and venv.reset() == ()
    obs, rewards, dones, infos = venv.step([])
    assert obs == () and rewards.shape == (0, 2)
    np.testing.assert_array_equal(dones, [True, False])
    assert infos[0]["terminal_observation"] == ()
    assert not infos[1]


def test_terms_are_those_of_the_learners_seat():
    for seat in (0, 1):
        curried = CurryVecEnv(ScriptedGame([5, 5]), CountingPolicy(), 1 - seat)
        venv = FlattenSingletonVecEnv(curried, seat)
        np.testing.assert_array_equal(venv.terms()["reward_move"], [1.0 + seat] * 2)


def test_flattened_game_behaves_as_a_batch_without_separate_objects():
    venv = FlattenSingletonVecEnv(CurryVecEnv(ScriptedGame([5, 5]), CountingPolicy(), 1), 0)
    assert venv.get_attr("agent_idx") == [0, 0] and venv.get_attr("agent_idx", 1) == [0]
    assert venv.env_is_wrapped(Monitor) == [True, True]  # episodes are reported
    with pytest.raises(NotImplementedError, match="render"):
        venv.env_method("render")
    with pytest.raises(NotImplementedError):
        venv.set_attr("agent_idx", 1)


# The embedded player's memory.


def run_scripted(lengths, steps, reset_at=None, seat=1, policy=None):
    policy = policy or WitnessPolicy()
    game = ScriptedGame(lengths)
    venv = CurryVecEnv(game, policy, agent_idx=seat)
    venv.reset()
    for step in range(steps):
        if step == reset_at:
            venv.reset()
        venv.step([np.zeros((len(lengths), 2), np.float32)])
    return policy, game


@pytest.mark.parametrize("seat", [0, 1])
def test_memory_is_kept_per_environment_and_starts_from_the_policys_own_initial_state(seat):
    lengths = [2, 3, 7]
    policy, game = run_scripted(lengths, steps=9, seat=seat)
    observed = np.array([obs for obs, _, _ in policy.seen])
    states = np.array([state for _, state, _ in policy.seen])
    starts = np.array([mask for _, _, mask in policy.seen])
    # Counted from the start of each environment's own episode, exactly.
    expected = np.stack([np.arange(9) % length for length in lengths], axis=1)
    np.testing.assert_array_equal(states[..., 0], 100 + expected)
    np.testing.assert_array_equal(starts, expected == 0)
    # Nothing of another environment or of an earlier episode is in the memory.
    np.testing.assert_array_equal(states[..., 1], expected * (np.arange(3) + 50 * seat))
    np.testing.assert_array_equal(states[..., 2], np.tile([-1.0, -2.0, -3.0], (9, 1)))
    # What was played is what this environment's memory said, in the right seat.
    played = np.array([actions[seat] for actions in game.actions])
    np.testing.assert_array_equal(played, states[..., :2])
    # And it looked at its own observation of the same moment.
    np.testing.assert_array_equal(observed[..., 1], expected + 50 * seat)


@pytest.mark.parametrize("reset_at", [1, 3, 4])
def test_explicit_reset_clears_memory_in_the_middle_of_episodes(reset_at):
    policy, _ = run_scripted([100, 3], steps=6, reset_at=reset_at)
    states = np.array([state for _, state, _ in policy.seen])
    since = np.arange(6) - np.where(np.arange(6) >= reset_at, reset_at, 0)
    np.testing.assert_array_equal(states[:, 0, 0], 100 + since)
    np.testing.assert_array_equal(states[:, 1, 0], 100 + since % 3)
    np.testing.assert_array_equal(states[reset_at], policy.initial_state(2))
    assert policy.seen[reset_at][2].all()


def test_a_stateless_policy_is_still_told_where_episodes_start():
    policy, _ = run_scripted([2, 3], steps=5, policy=StatelessPolicy())
    assert all(state is None for _, state, _ in policy.seen)
    starts = np.array([mask for _, _, mask in policy.seen])
    np.testing.assert_array_equal(starts.T, [[1, 0, 1, 0, 1], [1, 0, 0, 1, 0]])


def test_a_player_seated_late_starts_from_its_initial_state():
    """One policy sits down while another's game is in progress; neither touches the other."""
    policy = WitnessPolicy()
    early = PolicyPlayer(policy, 2)
    obs = np.full((2, 2), 5, np.float32)
    for _ in range(3):
        early.act(obs)
    late = PolicyPlayer(policy, 2)
    late.act(obs)
    np.testing.assert_array_equal(policy.seen[-1][1], policy.initial_state(2))
    assert policy.seen[-1][2].all()
    early.act(obs)
    np.testing.assert_array_equal(policy.seen[-1][1][:, :2], [[103, 15], [103, 15]])
    assert policy.seen[-1][2].all()  # nobody told it that a step was made
    early.observe_ends(np.array([False, True]))
    early.act(obs)
    np.testing.assert_array_equal(policy.seen[-1][1], [[104, 20, -1], [100, 0, -2]])
    np.testing.assert_array_equal(policy.seen[-1][2], [False, True])


def test_the_games_done_flags_may_be_reused_after_the_step():
    player = PolicyPlayer(CountingPolicy(), 2)
    obs, dones = np.zeros((2, 2), np.float32), np.array([True, False])
    player.act(obs)
    player.observe_ends(dones)
    dones[:] = False
    player.act(obs)
    np.testing.assert_array_equal(player.policy.seen[-1][2], [True, False])


def test_state_dict_restores_memory_in_the_middle_of_episodes(tmp_path):
    policy, game = WitnessPolicy(), ScriptedGame([3, 5])
    venv = CurryVecEnv(game, policy, agent_idx=0)
    venv.reset()
    action = [np.zeros((2, 2), np.float32)]
    for _ in range(4):
        venv.step(action)
    save_state(tmp_path / "state", venv.state_dict())
    expected = [venv.step(action)[0][0] for _ in range(7)]
    played, seen = game.actions[-7:], policy.seen[-7:]
    # In a new process: another object, never reset.
    policy, game = WitnessPolicy(), ScriptedGame([3, 5])
    venv = CurryVecEnv(game, policy, agent_idx=0)
    saved = load_state(tmp_path / "state")
    for _ in range(2):  # the loaded state is not used up
        venv.load_state_dict(saved)
        again = [venv.step(action)[0][0] for _ in range(7)]
        np.testing.assert_array_equal(again, expected)
        np.testing.assert_array_equal(game.actions[-7:], played)
        for ours, theirs in zip(policy.seen[-7:], seen, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a, b)


def test_state_dict_restores_the_players_randomness():
    game = make_vec("aprl/RockPaperScissors-v0", 5)
    space = game.action_spaces[0]
    venv = CurryVecEnv(game, RandomPolicy(space, space, seed=3), 1)
    rock = [np.zeros(5, dtype=np.int64)]
    venv.reset()
    venv.step(rock)
    saved = venv.state_dict()
    expected = [venv.step(rock)[0][0] for _ in range(20)]
    venv.load_state_dict(saved)
    np.testing.assert_array_equal([venv.step(rock)[0][0] for _ in range(20)], expected)
    assert np.unique(expected).tolist() == [0, 1, 2]


@pytest.mark.parametrize("deterministic", [False, True])
def test_determinism_is_passed_on(deterministic):
    policy = CountingPolicy()
    venv = CurryVecEnv(ScriptedGame([2]), policy, 0, deterministic=deterministic)
    venv.reset()
    for _ in range(3):
        venv.step([np.zeros((1, 2), np.float32)])
    assert policy.deterministic == [deterministic] * 3
    assert venv.get_policy() is policy


# What is refused.


@pytest.mark.parametrize("agent_idx", [-1, 2])
def test_wrong_seats_are_refused(agent_idx):
    with pytest.raises(ConfigError, match=rf"agent_idx must be in 0\.\.1, got {agent_idx}"):
        CurryVecEnv(ScriptedGame([1]), CountingPolicy(), agent_idx)


@pytest.mark.parametrize(
    ("observation_space", "action_space", "message"),
    [
        (spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (2,)), r"observation space.*\(3,\).*\(2,\)"),
        (spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (3,)), r"action space.*\(3,\).*\(2,\)"),
        (spaces.Box(-1, 1, (2,)), spaces.Discrete(2), r"action space.*Discrete"),
        (spaces.Discrete(2), spaces.Box(-1, 1, (2,)), r"observation space.*Discrete"),
    ],
)
def test_wrong_spaces_are_refused(observation_space, action_space, message):
    policy = ZeroPolicy(observation_space, action_space)
    with pytest.raises(ConfigError, match=message):
        CurryVecEnv(ScriptedGame([1]), policy, agent_idx=0)


def test_more_than_one_agent_left_is_refused():
    with pytest.raises(ConfigError, match="one agent must be left to learn, 2 are"):
        FlattenSingletonVecEnv(ScriptedGame([1]), 0)


def test_step_before_reset_is_refused():
    venv = CurryVecEnv(ScriptedGame([1]), CountingPolicy(), 0)
    with pytest.raises(RuntimeError, match="reset"):
        venv.step([np.zeros((1, 2), np.float32)])


# Outcomes.


def play(game, steps):
    monitor = GameOutcomeMonitor(game)
    monitor.reset()
    for _ in range(steps):
        monitor.step([np.zeros((game.num_envs, 2), np.float32)] * 2)
    return monitor


def test_every_finished_game_is_counted():
    # In 12 steps environment 0 finishes 6 games, 1 finishes 4, 2 finishes 3 and 3 finishes none.
    game = OutcomeGame([2, 3, 4, 100], winners=[0, 1, None, 0], unstable=[2])
    monitor = play(game, 12)
    assert (monitor.outcomes.wins, monitor.outcomes.ties, monitor.outcomes.games) == ([6, 4], 3, 13)
    values = monitor.outcomes.log_values()
    assert values == {
        "game_total": 13,
        "game_count_win0": 6,
        "game_count_win1": 4,
        "game_count_tie": 3,
        "game_unstable": 3,
        "game_aided": 0,
        "game_win0": 6 / 13,
        "game_win1": 4 / 13,
        "game_tie": 3 / 13,
        "game_length": (6 * 2 + 4 * 3 + 3 * 4) / 13,
    }
    monitor.outcomes.clear()
    assert monitor.outcomes.games == 0


def test_games_that_end_in_the_same_step_all_count():
    monitor = play(OutcomeGame([1] * 5, winners=[0, 0, 1, None, 1]), 2)
    assert (monitor.outcomes.wins, monitor.outcomes.ties) == ([4, 4], 2)


def test_games_that_training_aids_changed_are_counted_apart():
    game = OutcomeGame([2, 3], winners=[0, 1])
    inner = game.step

    def step(actions):
        obs, rewards, dones, infos = inner(actions)
        if dones[1]:
            infos[1]["aided"] = True
        return obs, rewards, dones, infos

    game.step = step
    outcomes = play(game, 12).outcomes
    assert (outcomes.wins, outcomes.ties, outcomes.aided, outcomes.games) == ([6, 0], 0, 4, 6)


def test_no_proportions_before_the_first_game():
    values = play(ScriptedGame([100]), 3).outcomes.log_values()
    assert values["game_total"] == 0
    assert "game_win0" not in values and "game_length" not in values


def test_outcomes_are_restored():
    game = OutcomeGame([2, 3, 4], winners=[0, 1, None], unstable=[1])
    monitor = play(game, 7)
    state, values = monitor.state_dict(), monitor.outcomes.log_values()
    other = play(ScriptedGame([2, 3, 4]), 5)
    other.load_state_dict(state)
    assert other.outcomes.log_values() == values
    assert other.venv.t.tolist() == [1, 1, 3]  # the game's own state goes with it


def test_outcome_of_a_game():
    assert game_outcome({0: {"a": 1.0}, 1: {"winner": True}, "episode": {"r0": 1}}) == 1
    assert game_outcome({0: {"winner": True}, 1: {}}) == 0
    assert game_outcome({0: {}, 1: {"winner": False}, "terminal_observation": (1, 2)}) is None
