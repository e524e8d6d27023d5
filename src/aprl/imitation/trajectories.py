"""Demonstrations: episodes and the transitions in them, validated once and frozen."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from aprl.errors import DemonstrationError


def _freeze(item: Any) -> None:
    """Replace the arrays of a frozen dataclass by read-only views of them."""
    for field in fields(item):
        value = getattr(item, field.name)
        if isinstance(value, np.ndarray):
            view = value.view()
            view.flags.writeable = False
            object.__setattr__(item, field.name, view)


def _require_numbers(name: str, values: np.ndarray) -> None:
    if values.dtype.kind not in "fiub":
        raise DemonstrationError(f"{name} must be real numbers, not of type {values.dtype}")
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise DemonstrationError(f"{name} hold values that are not finite")
        if values.size and np.abs(values).max() > np.finfo(np.float32).max:
            raise DemonstrationError(f"{name} hold {np.abs(values).max():g}, beyond float32")


@dataclass(frozen=True)
class Trajectory:
    """One episode, or the beginning of one.

    Attributes:
        obs: `(T + 1, ...)`, the last one after the last action.
        actions: `(T, ...)`, T at least 1.
        rewards: `(T,)` true rewards; None if nobody observed them.
        terminated: it ended in a terminal state.
        truncated: it was ended by a time limit.

    Raises:
        DemonstrationError: lengths that do not match, values that are not finite, or both ends.
    """

    obs: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray | None
    terminated: bool
    truncated: bool

    def __post_init__(self) -> None:
        steps = len(self.actions)
        if steps < 1 or len(self.obs) != steps + 1:
            raise DemonstrationError(
                f"a trajectory of {steps} actions needs one observation more, at least 2; "
                f"it has {len(self.obs)}"
            )
        if self.terminated and self.truncated:
            raise DemonstrationError("a trajectory cannot be both terminated and truncated")
        _require_numbers("observations", self.obs)
        _require_numbers("actions", self.actions)
        if self.rewards is not None:
            if self.rewards.shape != (steps,):
                raise DemonstrationError(
                    f"rewards of {steps} actions must have shape ({steps},), "
                    f"not {self.rewards.shape}"
                )
            _require_numbers("rewards", self.rewards)
        _freeze(self)

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def complete(self) -> bool:
        """Whether the episode ended, rather than the recording."""
        return self.terminated or self.truncated

    @property
    def total_reward(self) -> float:
        """The episode's return; NaN if rewards were not observed."""
        return float("nan") if self.rewards is None else float(self.rewards.sum())


@dataclass(frozen=True)
class Transitions:
    """Steps without their order: `n` rows of everything.

    Attributes:
        obs: `(n, ...)`.
        actions: `(n, ...)`.
        next_obs: `(n, ...)`; where an episode ended, its last observation.
        terminated: `(n,)` bool, the episode ended in a terminal state.
        truncated: `(n,)` bool, a time limit ended it.

    Raises:
        DemonstrationError: arrays of different lengths.
    """

    obs: np.ndarray
    actions: np.ndarray
    next_obs: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    def __post_init__(self) -> None:
        lengths = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(lengths.values())) > 1:
            raise DemonstrationError(f"transitions of different lengths: {lengths}")
        _freeze(self)

    def __len__(self) -> int:
        return len(self.obs)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rows(self, index: Any) -> "Transitions":
        """Some of the rows."""
        return Transitions(**{name: array[index] for name, array in self.arrays().items()})


def concatenate(parts: Sequence[Transitions]) -> Transitions:
    """All rows of several, in order; at least one part."""
    columns = [part.arrays() for part in parts]
    return Transitions(**{name: np.concatenate([c[name] for c in columns]) for name in columns[0]})


def flatten(trajectories: Sequence[Trajectory]) -> Transitions:
    """The transitions of episodes, in order.

    Raises:
        DemonstrationError: no trajectory.
    """
    if not trajectories:
        raise DemonstrationError("there are no trajectories")
    ends = {}
    for name in ("terminated", "truncated"):
        flags = [np.zeros(len(t), dtype=bool) for t in trajectories]
        for flag, trajectory in zip(flags, trajectories, strict=True):
            flag[-1] = getattr(trajectory, name)
        ends[name] = np.concatenate(flags)
    return Transitions(
        obs=np.concatenate([t.obs[:-1] for t in trajectories]),
        actions=np.concatenate([t.actions for t in trajectories]),
        next_obs=np.concatenate([t.obs[1:] for t in trajectories]),
        **ends,
    )


def require_fixed_horizon(lengths: Sequence[int], whose: str) -> None:
    """Check that all episodes are equally long.

    A reward that is always positive makes long episodes good, one that is always negative short
    ones, whatever was learned (Kostrikov et al., ICLR 2019); with ends that depend on what the
    agent does, the result says little about the algorithm.

    Raises:
        DemonstrationError: they are not.
    """
    if len(set(lengths)) > 1:
        raise DemonstrationError(
            f"{whose} episodes have lengths from {min(lengths)} to {max(lengths)} steps; learned "
            "rewards leak through variable horizons: set horizon= for a fixed one, or "
            "allow_variable_horizon=True if that is understood"
        )
