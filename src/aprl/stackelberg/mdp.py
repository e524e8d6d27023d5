"""Finite MDPs: what every party knows (the task) and what has to be learned (the transitions)."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from aprl.errors import ConfigError

Matrix: TypeAlias = Any  # np.ndarray or scipy.sparse.csr_array; SciPy has no type stubs

ROW_SUM_TOLERANCE = 1e-9


class WorldError(ConfigError):
    """A world that is no MDP, or whose numbers cannot work."""


@dataclass(frozen=True, eq=False)
class Task:
    """What leader and follower both know: everything but the transitions.

    State-action pairs are numbered `state * n_actions + action`.

    Attributes:
        n_states: S, at least 1.
        n_actions: A, at least 1.
        rewards: `(S * A, S)`, reward of a pair and the state that follows; dense or CSR, where
            entries that are not stored are 0.
        start: state in which every episode starts.
        horizon: steps after which an episode is cut off.
        final: `(S,)` bool, states that end the episode; nothing is paid after them.
    """

    n_states: int
    n_actions: int
    rewards: Matrix
    start: int
    horizon: int
    final: np.ndarray

    def __post_init__(self) -> None:
        pairs, states = self.n_states * self.n_actions, self.n_states
        for name in ("n_states", "n_actions", "horizon"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise WorldError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.rewards.shape != (pairs, states):
            raise WorldError(f"rewards must be {(pairs, states)}, got {self.rewards.shape}")
        if not np.isfinite(_entries(self.rewards)).all():
            raise WorldError("rewards must be finite")
        if self.final.shape != (states,) or self.final.dtype != bool:
            raise WorldError(f"final must be {states} booleans, got {self.final!r}")
        if not 0 <= self.start < states:
            raise WorldError(f"start must be a state in [0, {states}), got {self.start}")
        if self.final[self.start]:
            raise WorldError(f"start state {self.start} is final: no step can be made")

    @property
    def n_pairs(self) -> int:
        """Number of state-action pairs, S * A."""
        return self.n_states * self.n_actions

    @property
    def final_pairs(self) -> np.ndarray:
        """`(S * A,)` bool: pairs in final states, which are never played."""
        return np.repeat(self.final, self.n_actions)

    @property
    def reward_bounds(self) -> tuple[float, float]:
        """Least and greatest reward of a step, the 0 after the end of an episode included."""
        entries = _entries(self.rewards)
        if not entries.size:
            return 0.0, 0.0
        return min(0.0, float(entries.min())), max(0.0, float(entries.max()))

    def with_horizon(self, horizon: int) -> "Task":
        """The same task, cut off after `horizon` steps."""
        return replace(self, horizon=horizon)


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A task with transitions: the true world, or a model of it.

    Attributes:
        task: what is known to all.
        transitions: `(S * A, S)`, next-state distribution of each pair; dense or CSR. Final states
            are absorbing.
        name: as in the registry; empty for models.
    """

    task: Task
    transitions: Matrix
    name: str = ""

    def __post_init__(self) -> None:
        task = self.task
        if self.transitions.shape != (task.n_pairs, task.n_states):
            raise WorldError(
                f"transitions must be {(task.n_pairs, task.n_states)}, got {self.transitions.shape}"
            )
        if sparse.issparse(self.transitions) != sparse.issparse(task.rewards):
            raise WorldError("transitions and rewards must both be dense or both be sparse")
        check_rows(self.transitions, task.n_actions)

    @property
    def expected_rewards(self) -> np.ndarray:
        """`(S * A,)`, expected reward of each pair; 0 in final states."""
        return expected_rewards(self.task, self.transitions)

    def row(self, state: int, action: int) -> np.ndarray:
        """`(S,)`, next-state distribution of a pair."""
        row = self.transitions[[state * self.task.n_actions + action]]
        return np.asarray(row.toarray() if sparse.issparse(row) else row).ravel()

    def with_horizon(self, horizon: int) -> "FiniteMDP":
        """The same world, cut off after `horizon` steps."""
        return replace(self, task=self.task.with_horizon(horizon))


def check_rows(transitions: Matrix, n_actions: int) -> None:
    """Check that every row is a distribution.

    Raises:
        WorldError: a negative entry, or a row that does not sum to 1; it names the pair.
    """
    entries = _entries(transitions)
    if not np.isfinite(entries).all() or (entries < 0).any():
        raise WorldError("transition probabilities must be finite and at least 0")
    sums = np.asarray(transitions.sum(axis=1)).ravel()
    wrong = np.flatnonzero(np.abs(sums - 1) > ROW_SUM_TOLERANCE)
    if wrong.size:
        state, action = divmod(int(wrong[0]), n_actions)
        raise WorldError(
            f"transitions of state {state}, action {action} sum to {sums[wrong[0]]:.12g}, not 1"
            + (f" (and {wrong.size - 1} other rows)" if wrong.size > 1 else "")
        )


def expected_rewards(task: Task, transitions: Matrix) -> np.ndarray:
    """Expected reward of each pair under `transitions`, `(S * A,)`; 0 in final states."""
    if sparse.issparse(transitions):
        expected = np.asarray(transitions.multiply(task.rewards).sum(axis=1)).ravel()
    else:
        expected = np.einsum("ij,ij->i", transitions, task.rewards)
    expected[task.final_pairs] = 0.0
    return expected


def dense_world(
    name: str,
    transitions: Any,
    rewards: Any,
    *,
    start: int,
    horizon: int,
    final: tuple[int, ...] = (),
) -> FiniteMDP:
    """A small world from nested lists or arrays.

    Args:
        name: of the world.
        transitions: `(S, A, S)`.
        rewards: `(S, A, S)`.
        start: state in which episodes start.
        horizon: steps after which an episode is cut off.
        final: states that end an episode.

    Raises:
        WorldError: what is no MDP.
    """
    table = np.array(transitions, dtype=np.float64)
    paid = np.array(rewards, dtype=np.float64)
    if table.ndim != 3 or table.shape[0] != table.shape[2]:
        raise WorldError(f"transitions must have shape (S, A, S), got {table.shape}")
    if paid.shape != table.shape:
        raise WorldError(f"rewards must have the shape of transitions, got {paid.shape}")
    states, actions = table.shape[:2]
    ends = np.zeros(states, dtype=bool)
    ends[list(final)] = True
    task = Task(states, actions, paid.reshape(-1, states), start, horizon, ends)
    return FiniteMDP(task, table.reshape(-1, states), name)


def _entries(matrix: Matrix) -> np.ndarray:
    return matrix.data if sparse.issparse(matrix) else matrix
