"""Finite Markov decision processes, solved exactly: what a reward asks for, state by state."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from aprl.errors import ConfigError
from aprl.reward_preprocessing.transitions import Transitions, TransitionTable


@dataclass(frozen=True)
class TabularMDP:
    """Dynamics of a finite environment, as a list of its possible transitions.

    Attributes:
        num_states: states are 0 to `num_states - 1`; some may be unreachable and have no rows.
        num_actions: actions are 0 to `num_actions - 1`.
        table: the rows (state, action, next state, terminated).
        probability: `(rows,)` of the next state given state and action.

    Raises:
        ConfigError: probabilities that do not add up to 1.
    """

    num_states: int
    num_actions: int
    table: TransitionTable
    probability: np.ndarray

    def __post_init__(self) -> None:
        sums = np.bincount(self._choice(), self.probability)
        if not np.allclose(sums[sums > 0], 1):
            raise ConfigError("transition probabilities of a state and action do not add up to 1")

    @property
    def has_choices(self) -> np.ndarray:
        """`(num_states,)` bool: the state has rows; others are unreachable."""
        return np.bincount(self.table.states, minlength=self.num_states) > 0

    def _choice(self) -> np.ndarray:
        """Number of the (state, action) that each row belongs to."""
        return self.table.states * self.num_actions + self.table.actions

    def walks(self, count: int, steps: int, seed: int | np.random.SeedSequence = 0) -> Transitions:
        """Random walks from random states, all actions alike.

        Args:
            count: walks.
            steps: of each walk; fewer where it terminates.
            seed: of all choices.
        """
        rng = np.random.default_rng(seed)
        order = np.argsort(self.table.states, kind="stable")
        first = np.searchsorted(self.table.states[order], np.arange(self.num_states))
        rows_of = np.bincount(self.table.states, minlength=self.num_states)
        # A row's chance is that of its action, one in as many as the state has, times its own.
        available = np.unique(self._choice()) // self.num_actions
        share = (
            self.probability / np.bincount(available, minlength=self.num_states)[self.table.states]
        )
        cumulative = np.cumsum(share[order])
        before = np.concatenate([[0.0], cumulative])[first]
        here = rng.choice(np.flatnonzero(self.has_choices), count)
        alive, taken = np.arange(count), []
        for _ in range(steps):
            reach = before[here[alive]] + rng.random(len(alive))
            position = np.searchsorted(cumulative, reach, side="right")
            last = first[here[alive]] + rows_of[here[alive]] - 1
            rows = order[np.clip(position, first[here[alive]], last)]
            taken.append(np.stack([alive, rows]))
            here[alive] = self.table.next_states[rows]
            alive = alive[~self.table.terminated[rows] & self.has_choices[here[alive]]]
        walk, rows = np.concatenate(taken, axis=1)
        by_walk = np.argsort(walk, kind="stable")
        t, rows = self.table, rows[by_walk]
        return Transitions(
            t.states[rows], t.actions[rows], t.next_states[rows], t.terminated[rows], walk[by_walk]
        )

    def solve(self, rewards: np.ndarray, gamma: float) -> np.ndarray:
        """Optimal action values, by policy iteration.

        Args:
            rewards: `(rows,)`, one per row of the table.
            gamma: discount, in [0, 1).

        Returns:
            `(num_states, num_actions)`; -inf where an action is not available, and 0 for the
            first action of a state without rows.

        Raises:
            ConfigError: gamma out of range, where optimal values may be infinite.
        """
        if not 0 <= gamma < 1:
            raise ConfigError(f"exact values need gamma in [0, 1), got {gamma}")
        choices = self.num_states * self.num_actions
        known = np.bincount(self._choice(), minlength=choices) > 0
        mean_reward = np.bincount(self._choice(), self.probability * rewards, choices)
        mean_reward[~known] = -np.inf
        mean_reward.reshape(self.num_states, -1)[~self.has_choices, 0] = 0
        continuing = self.probability * ~self.table.terminated
        dynamics = sp.csr_matrix(
            (continuing, (self._choice(), self.table.next_states)), (choices, self.num_states)
        )
        identity = sp.identity(self.num_states, format="csc")
        tolerance = 1e-12 * max(1.0, float(np.abs(rewards).max())) / (1 - gamma)
        states = np.arange(self.num_states)
        policy = mean_reward.reshape(self.num_states, -1).argmax(axis=1)
        while True:
            chosen = states * self.num_actions + policy
            system = (identity - gamma * dynamics[chosen]).tocsc()
            values = spsolve(system, mean_reward[chosen])
            q = (mean_reward + gamma * (dynamics @ values)).reshape(self.num_states, -1)
            better = q.max(axis=1) > q[states, policy] + tolerance
            if not better.any():
                return q
            policy = np.where(better, q.argmax(axis=1), policy)


def optimal_actions(q: np.ndarray, margin: float) -> np.ndarray:
    """Which actions are optimal.

    Args:
        q: `(states, actions)` optimal action values.
        margin: actions whose value is within this of the best count as optimal.

    Returns:
        `(states, actions)` bool.
    """
    return np.asarray(q >= q.max(axis=1, keepdims=True) - margin)
