"""The data that a reward is judged on: rows of (state, action, next state, terminated)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.trajectories import Trajectory


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows whose rewards should be alike, for the smooth objectives.

    Attributes:
        first: `(m,)` row indices.
        second: `(m,)` row indices.
        weight: `(m,)` share of each pair in the mean; pairs of a row with itself, which always
            agree, are left out but counted, so the sum may be below 1.
    """

    first: np.ndarray
    second: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Transitions:
    """Transitions sampled along trajectories.

    Attributes:
        states: `(n, ...)` floats, or `(n,)` integers where states are numbered.
        actions: `(n, ...)`.
        next_states: like `states`.
        terminated: `(n,)` bool: the episode ended in `next_states` for good, not by a time limit.
        trajectory: `(n,)` number of the trajectory that each row belongs to, never decreasing;
            within one, rows are in the order of time.

    Raises:
        TrajectoryError: no rows, or columns of different lengths.
    """

    states: np.ndarray
    actions: np.ndarray
    next_states: np.ndarray
    terminated: np.ndarray
    trajectory: np.ndarray

    def __post_init__(self) -> None:
        columns = (self.actions, self.next_states, self.terminated, self.trajectory)
        if len(self.states) == 0:
            raise TrajectoryError("there are no transitions to preprocess a reward on")
        if any(len(column) != len(self.states) for column in columns):
            lengths = [len(self.states), *map(len, columns)]
            raise TrajectoryError(f"the columns of transitions differ in length: {lengths}")

    def __len__(self) -> int:
        return len(self.states)

    @classmethod
    def from_trajectories(cls, trajectories: Sequence[Trajectory]) -> Self:
        """Concatenate trajectories, in order.

        Raises:
            TrajectoryError: there are none, or their states differ in shape.
        """
        if not trajectories:
            raise TrajectoryError("there are no trajectories")
        shapes = {trajectory.states.shape[1:] for trajectory in trajectories}
        if len(shapes) > 1:
            raise TrajectoryError(f"trajectories have states of several shapes: {sorted(shapes)}")
        terminated = [np.zeros(len(t), bool) for t in trajectories]
        for flags, trajectory in zip(terminated, trajectories, strict=True):
            flags[-1] = trajectory.terminated
        return cls(
            states=np.concatenate([t.states[:-1] for t in trajectories]),
            actions=np.concatenate([t.actions for t in trajectories]),
            next_states=np.concatenate([t.states[1:] for t in trajectories]),
            terminated=np.concatenate(terminated),
            trajectory=np.repeat(np.arange(len(trajectories)), [len(t) for t in trajectories]),
        )

    def pairs(self) -> Pairs:
        """Time neighbours: each row with the next of the same trajectory."""
        first = np.flatnonzero(self.trajectory[1:] == self.trajectory[:-1])
        if len(first) == 0:
            raise TrajectoryError("smooth objectives need a trajectory of at least two steps")
        return Pairs(first, first + 1, np.full(len(first), 1 / len(first)))


class TransitionTable(Transitions):
    """Every possible transition of a finite environment, each once; order means nothing."""

    @classmethod
    def of(
        cls,
        states: np.ndarray,
        actions: np.ndarray,
        next_states: np.ndarray,
        terminated: np.ndarray | None = None,
    ) -> Self:
        """A table from its columns, `(n,)` each; nothing terminates unless `terminated` says so."""
        ended = np.zeros(len(states), bool) if terminated is None else terminated
        return cls(states, actions, next_states, ended, np.arange(len(states)))

    def pairs(self) -> Pairs:
        """All ordered pairs (i, j) where i starts in the start or in the end of j, i = j included.

        A pair and its mirror image are merged into one of twice the weight.
        """
        rows = np.arange(len(self))
        num_states = int(max(self.states.max(), self.next_states.max())) + 1
        shape = (len(self), num_states)
        ones = np.ones(len(self), np.int8)
        starts = sp.csr_matrix((ones, (rows, self.states)), shape)
        ends = sp.csr_matrix((ones, (rows, self.next_states)), shape)
        related = (starts @ (starts + ends).T).astype(bool).astype(np.int64)
        folded = sp.coo_matrix(sp.triu(related + related.T, k=1))
        return Pairs(folded.row, folded.col, folded.data / related.nnz)
