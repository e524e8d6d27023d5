"""A game and a policy whose every number is known in advance."""

import numpy as np
from gymnasium import spaces

from aprl.envs.base import VecMultiEnv
from aprl.policies.base import SeededPolicy

BOX = spaces.Box(-100.0, 100.0, (2,), np.float32)


class ScriptedGame(VecMultiEnv):
    """Two agents; environment `i` ends after `lengths[i]` steps; nothing depends on actions.

    Observations are (environment, steps played in this episode), plus 50 for agent 1.
    """

    def __init__(self, lengths):
        self.num_envs = len(lengths)
        self.observation_spaces = (BOX, BOX)
        self.action_spaces = (BOX, BOX)
        self.lengths = np.array(lengths)
        self.actions = []

    def _observations(self):
        first = np.stack([np.arange(self.num_envs), self.t], axis=1).astype(np.float32)
        return first.copy(), first + 50

    def reset(self):
        self.t = np.zeros(self.num_envs, dtype=np.int64)
        return self._observations()

    def step(self, actions):
        self.actions.append([a.copy() for a in actions])
        self.t += 1
        dones = self.t >= self.lengths
        infos = [{} for _ in range(self.num_envs)]
        last = self._observations()
        for env in np.flatnonzero(dones):
            infos[env] = {
                0: {"reward_move": 1.0, "winner": True},
                1: {"reward_move": 2.0},
                "terminal_observation": tuple(o[env].copy() for o in last),
                "TimeLimit.truncated": False,
                "episode": {"r0": 3.0, "r1": -3.0, "l": int(self.t[env])},
            }
        rewards = np.stack([np.full(self.num_envs, 1.0), np.full(self.num_envs, -1.0)])
        self.t[dones] = 0
        return self._observations(), rewards, dones, infos

    def terms(self, agent_idx):
        return {"reward_move": np.full(self.num_envs, 1.0 + agent_idx)}

    def state_dict(self):
        return {"t": self.t.copy()}

    def load_state_dict(self, state):
        self.t = state["t"].copy()


class CountingPolicy(SeededPolicy):
    """Recurrent: its state counts the steps of an episode, from an initial 100 (not zero)."""

    START = 100.0

    def __init__(self):
        super().__init__(BOX, BOX)
        self.seen = []
        self.deterministic = []

    def initial_state(self, n):
        return np.full((n, 1), self.START)

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        self.seen.append((obs.copy(), state.copy(), episode_start.copy()))
        self.deterministic.append(deterministic)
        return np.repeat(state, 2, axis=1).astype(np.float32), state + 1


class WitnessPolicy(CountingPolicy):
    """Recurrent with state `(n, 3)`, whose rows betray any mix-up.

    Columns: steps of this episode from 100, sum of the first observed number (which tells the
    environment), and a mark of the row's own that never changes.
    """

    def initial_state(self, n):
        return np.stack([np.full(n, self.START), np.zeros(n), -1.0 - np.arange(n)], axis=1)

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        self.seen.append((obs.copy(), state.copy(), episode_start.copy()))
        self.deterministic.append(deterministic)
        after = state.copy()
        after[:, 0] += 1
        after[:, 1] += obs[:, 0]
        return state[:, :2].astype(np.float32), after


class StatelessPolicy(CountingPolicy):
    """Has no memory; records what it is given and stands still."""

    def initial_state(self, n):
        return None

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        self.seen.append((obs.copy(), state, episode_start.copy()))
        self.deterministic.append(deterministic)
        return np.zeros((len(obs), 2), np.float32), None


class OutcomeGame(ScriptedGame):
    """A scripted game in which environment `i` is won by `winners[i]`; None is a tie."""

    def __init__(self, lengths, winners, unstable=()):
        super().__init__(lengths)
        self.winners, self.unstable = winners, unstable

    def step(self, actions):
        obs, rewards, dones, infos = super().step(actions)
        for env in np.flatnonzero(dones):
            infos[env][0].pop("winner")
            if self.winners[env] is not None:
                infos[env][self.winners[env]]["winner"] = True
            if env in self.unstable:
                infos[env]["unstable"] = True
        return obs, rewards, dones, infos
