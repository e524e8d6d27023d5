"""Mixtures of embedded players: who plays when, and what each remembers."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.envs import make_vec
from aprl.envs.base import VecMultiEnv
from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy, RandomPolicy, ZeroPolicy
from aprl.training.checkpoints import load_state, save_state
from aprl.training.embedding import CurryVecEnv
from aprl.training.mixture import MixturePlayer, MultiCurryVecEnv
from aprl.training.random_state import global_random_state

BOX = spaces.Box(-1e6, 1e6, (2,), np.float32)


class Recurrent:
    """Counts its own steps from `start`, in a state of its own shape, and acts with the count."""

    def __init__(self, name, start, shape=()):
        self.name, self.start, self.shape = name, start, shape
        self.observation_space = self.action_space = BOX
        self.calls = []

    def initial_state(self, n):
        return np.full((n, *self.shape), self.start, np.float64)

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        self.calls.append((obs.copy(), state.copy(), episode_start.copy()))
        counts = state.reshape(len(obs), -1)[:, 0]
        actions = np.stack([np.full(len(obs), float(self.name)), counts], 1).astype(np.float32)
        return actions, state + 1

    def seed(self, seed):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Games(VecMultiEnv):
    """Games of fixed lengths; agent 0's observation is (environment, step of the episode)."""

    def __init__(self, lengths):
        self.lengths = np.array(lengths)
        self.num_envs = len(lengths)
        self.observation_spaces = self.action_spaces = (BOX, BOX)
        self.actions = []

    def observe(self):
        seen = np.stack([np.arange(self.num_envs), self.elapsed], 1).astype(np.float32)
        return seen, seen.copy()

    def reset(self):
        self.elapsed = np.zeros(self.num_envs, int)
        return self.observe()

    def step(self, actions):
        self.actions.append(np.array(actions[0]))
        self.elapsed += 1
        dones = self.elapsed >= self.lengths
        infos = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(dones):
            terminal = tuple(o[env] for o in self.observe())
            infos[env] = {
                0: {"winner": True} if env % 2 else {},
                1: {},
                "terminal_observation": terminal,
                "TimeLimit.truncated": False,
                "episode": {"r0": 0.0, "r1": 0.0, "l": int(self.lengths[env])},
            }
        self.elapsed[dones] = 0
        return self.observe(), np.zeros((2, self.num_envs)), dones, infos

    def terms(self, agent_idx):
        return {}

    def state_dict(self):
        return {"elapsed": self.elapsed.copy()}

    def load_state_dict(self, state):
        self.elapsed = state["elapsed"].copy()


def play(venv, steps):
    """Infos of the games that finished, after `steps` steps with idle learners."""
    venv.reset()
    finished = []
    for _ in range(steps):
        _, _, dones, infos = venv.step([np.zeros((venv.num_envs, 2), np.float32)])
        finished += [infos[env] for env in np.flatnonzero(dones)]
    return finished


@pytest.mark.parametrize("weights", [None, [1, 1, 2], [0.0, 3.0, 1.0]])
def test_members_are_drawn_by_their_weights(weights):
    members = [Recurrent(i, 0) for i in range(3)]
    venv = MultiCurryVecEnv(Games([2] * 50), members, 0, weights, seed=4)
    drawn = [info["embedded_member"] for info in play(venv, 200)]
    counts = np.bincount(drawn, minlength=3)
    expected = np.ones(3) / 3 if weights is None else np.array(weights) / np.sum(weights)
    assert counts.sum() == 5000
    assert (counts[expected == 0] == 0).all()
    used = expected > 0
    chi_square = ((counts[used] - 5000 * expected[used]) ** 2 / (5000 * expected[used])).sum()
    assert chi_square < 13.8  # 99.9 % quantile at 2 degrees of freedom


def test_an_episode_is_played_to_its_end_by_one_member_with_its_own_memory():
    """Each member counts from its own initial state, through the episode, and starts over."""
    # Shapes of states differ, one dimension in common: nothing may be stacked across members.
    members = [Recurrent(0, 100), Recurrent(1, 200, (4,)), Recurrent(2, 300, (4, 2))]
    starts = [member.start for member in members]
    game = Games([3, 5, 2, 7])
    venv = MultiCurryVecEnv(game, members, 0, seed=1)
    play(venv, 300)
    actions = np.array(game.actions)  # (steps, envs, [member, count])
    for env, length in enumerate(game.lengths):
        for first in range(0, len(actions) - length, length):
            episode = actions[first : first + length, env]
            assert len(set(episode[:, 0])) == 1
            start = starts[int(episode[0, 0])]
            np.testing.assert_array_equal(episode[:, 1], start + np.arange(length))
        assert len(set(actions[::length, env, 0])) == 3  # redrawn, and all come up


def test_members_predict_only_on_the_rows_that_they_control():
    members = [Recurrent(i, 0) for i in range(4)]
    game = Games([3, 4, 5, 6, 7, 8])
    venv = MultiCurryVecEnv(game, members, 0, seed=2)
    venv.reset()
    for _ in range(50):
        for member in members:
            member.calls.clear()
        current = venv.mixture.current.copy()
        venv.step([np.zeros((6, 2), np.float32)])
        for index, member in enumerate(members):
            rows = np.concatenate([obs[:, 0] for obs, _, _ in member.calls] or [[]])
            np.testing.assert_array_equal(rows, np.flatnonzero(current == index))


def test_a_member_that_is_drawn_late_starts_from_its_initial_state():
    """Its first activation may come long after the others', in the middle of a run."""
    members = [Recurrent(0, 10), Recurrent(1, 77)]
    game = Games([2])
    venv = MultiCurryVecEnv(game, members, 0, [1, 0], seed=0)
    play(venv, 40)
    assert not members[1].calls
    venv.mixture._probabilities = np.array([0.0, 1.0])
    for _ in range(4):
        venv.step([np.zeros((1, 2), np.float32)])
    np.testing.assert_array_equal(np.array(game.actions)[-2:, 0], [[1, 77], [1, 78]])
    _, state, episode_start = members[1].calls[0]
    assert state.tolist() == [77] and episode_start.tolist() == [True]


def test_reset_in_the_middle_of_an_episode_clears_every_memory():
    members = [Recurrent(0, 5), Recurrent(1, 50)]
    game = Games([9, 9, 9])
    venv = MultiCurryVecEnv(game, members, 0, seed=0)
    play(venv, 4)
    game.actions.clear()
    play(venv, 1)
    assert set(game.actions[0][:, 1]) <= {5, 50}


def test_stateless_recurrent_and_random_members_mix():
    game = Games([3] * 8)
    members = [Recurrent(7, 20), ZeroPolicy(BOX, BOX), ConstantPolicy(BOX, BOX, [3, 4])]
    members.append(RandomPolicy(BOX, BOX, seed=0))
    venv = MultiCurryVecEnv(game, members, 0, seed=3)
    play(venv, 60)
    kinds = {
        "zero" if (a == 0).all() else "constant" if (a == [3, 4]).all() else "counts"
        for a in np.concatenate(game.actions)
        if (np.abs(a) < 1e3).all()
    }
    assert kinds == {"zero", "constant", "counts"}
    assert np.concatenate(game.actions).dtype == np.float32


def test_the_same_policy_several_times_counts_as_often():
    one, other = Recurrent(0, 0), Recurrent(1, 0)
    game = Games([1] * 20)
    play(MultiCurryVecEnv(game, [one, other, one, one], 0, seed=0), 100)
    share = np.mean(np.array(game.actions)[:, :, 0] == 0)
    assert 0.71 < share < 0.79


def test_one_member_plays_as_a_curried_policy_does():
    def trace(make):
        game = Games([2, 3, 4])
        play(make(game, Recurrent(0, 9)), 30)
        return game.actions

    alone = trace(lambda game, policy: CurryVecEnv(game, policy, 0))
    mixed = trace(lambda game, policy: MultiCurryVecEnv(game, [policy], 0))
    np.testing.assert_array_equal(alone, mixed)


def test_games_are_counted_per_member():
    members = [Recurrent(0, 0), Recurrent(1, 0)]
    venv = MultiCurryVecEnv(Games([2, 2]), members, 0, [3, 1], seed=0)
    finished = play(venv, 400)
    values = venv.log_values()
    for member in range(2):
        own = [info for info in finished if info["embedded_member"] == member]
        assert values[f"embedded{member}/game_total"] == len(own)
        wins = sum(bool(info[0]) for info in own)
        assert values[f"embedded{member}/game_count_win0"] == wins
        assert values[f"embedded{member}/game_win0"] == wins / len(own)
    venv.clear()
    assert venv.log_values()["embedded0/game_total"] == 0


def test_saved_and_restored_in_the_middle(tmp_path):
    def make():
        members = [Recurrent(0, 1, (3,)), Recurrent(1, 2), ZeroPolicy(BOX, BOX)]
        return MultiCurryVecEnv(Games([2, 3, 5]), members, 0, seed=5)

    first = make()
    play(first, 7)
    save_state(tmp_path / "state", first.state_dict())

    def go_on(venv):
        idle = [np.zeros((3, 2), np.float32)]
        members = [info.get("embedded_member") for _ in range(30) for info in venv.step(idle)[3]]
        return np.array(venv.venv.actions[-30:]), members, venv.log_values()

    actions, members, values = go_on(first)
    second = make()
    second.load_state_dict(load_state(tmp_path / "state"))
    again = go_on(second)
    np.testing.assert_array_equal(again[0], actions)
    assert again[1:] == (members, values)


def test_same_seed_same_draws():
    def draws(seed):
        player = MixturePlayer([Recurrent(i, 0) for i in range(3)], 40, seed=seed)
        return player.current.tolist()

    assert draws(1) == draws(1) != draws(2)


def test_global_random_state_is_not_touched():
    before = repr(global_random_state())
    play(MultiCurryVecEnv(Games([1, 2]), [Recurrent(0, 0), Recurrent(1, 0)], 0), 20)
    assert repr(global_random_state()) == before


def test_discrete_games():
    game = make_vec("aprl/RockPaperScissors-v0", 30)
    space = game.action_spaces[0]
    members = [ConstantPolicy(space, space, choice) for choice in range(3)]
    venv = MultiCurryVecEnv(game, members, 0, seed=0)
    venv.reset()
    obs, _, _, _ = venv.step([np.zeros(30, np.int64)])
    np.testing.assert_array_equal(obs[0], venv.mixture.current)


@pytest.mark.parametrize(
    ("count", "weights", "message"),
    [
        (0, None, "at least one policy"),
        (2, [1], "2 policies need as many weights, got 1"),
        (2, [1, -1], "not be negative nor all zero"),
        (2, [0, 0], "not be negative nor all zero"),
        (2, [1, np.nan], "not be negative nor all zero"),
    ],
)
def test_unusable_mixtures_are_refused(count, weights, message):
    with pytest.raises(ConfigError, match=message):
        MultiCurryVecEnv(Games([1]), [Recurrent(i, 0) for i in range(count)], 0, weights)


def test_every_members_spaces_are_checked():
    odd = ZeroPolicy(spaces.Box(-1, 1, (3,)), BOX)
    with pytest.raises(ConfigError, match=r"observation space.*\(3,\)"):
        MultiCurryVecEnv(Games([1]), [ZeroPolicy(BOX, BOX), odd], 0)
