"""Trajectories: what they hold, and their `.npz` files, which run no code when they are read."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from aprl.files import PathLike, atomic_path
from aprl.reward_preprocessing.errors import TrajectoryError

FORMAT_VERSION = 1
_ARRAYS = ("states", "actions", "rewards", "terminated", "lengths", "format_version")


@dataclass(frozen=True)
class Trajectory:
    """One episode, or a part of one.

    Attributes:
        states: `(steps + 1, ...)`, the last one included.
        actions: `(steps, ...)`.
        rewards: `(steps,)` as the environment paid them.
        terminated: the episode ended in its last state for good, rather than by a time limit or by
            being cut.

    Raises:
        TrajectoryError: no steps, lengths that do not belong together, or rewards not finite.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool

    def __post_init__(self) -> None:
        steps = len(self.actions)
        if steps == 0:
            raise TrajectoryError("a trajectory has no steps")
        if len(self.states) != steps + 1 or np.shape(self.rewards) != (steps,):
            raise TrajectoryError(
                f"a trajectory of {steps} actions needs {steps + 1} states and {steps} rewards, "
                f"got {len(self.states)} and {np.shape(self.rewards)}"
            )
        if not np.isfinite(self.rewards).all():
            bad = int(np.flatnonzero(~np.isfinite(self.rewards))[0])
            raise TrajectoryError(f"a trajectory's reward at step {bad} is {self.rewards[bad]}")

    def __len__(self) -> int:
        return len(self.actions)

    def first(self, steps: int) -> Self:
        """The trajectory's first `steps` steps; itself if it has no more."""
        if steps >= len(self):
            return self
        return replace(
            self,
            states=self.states[: steps + 1],
            actions=self.actions[:steps],
            rewards=self.rewards[:steps],
            terminated=False,
        )

    def after(self, steps: int) -> Self:
        """The trajectory without its first `steps` steps, which are fewer than it has."""
        return replace(
            self,
            states=self.states[steps:],
            actions=self.actions[steps:],
            rewards=self.rewards[steps:],
        )


def drop_steps(trajectories: Sequence[Trajectory], steps: int) -> list[Trajectory]:
    """What `take_steps` would leave: trajectories without the first `steps` steps of all."""
    rest: list[Trajectory] = []
    for trajectory in trajectories:
        if steps < len(trajectory):
            rest.append(trajectory.after(steps))
        steps = max(0, steps - len(trajectory))
    return rest


def take_steps(trajectories: Sequence[Trajectory], steps: int, source: str) -> list[Trajectory]:
    """Take trajectories in order until they hold `steps` steps; the last one is cut.

    Args:
        trajectories: to take from.
        steps: exact number of steps to return.
        source: what the trajectories are, for the message.

    Raises:
        TrajectoryError: there are too few steps.
    """
    taken: list[Trajectory] = []
    left = steps
    for trajectory in trajectories:
        if left <= 0:
            break
        taken.append(trajectory.first(left))
        left -= len(taken[-1])
    if left > 0:
        raise TrajectoryError(f"{source} holds {steps - left} steps, {steps} were asked for")
    return taken


def save_trajectories(path: PathLike, trajectories: Sequence[Trajectory]) -> Path:
    """Write trajectories to one `.npz` file, atomically.

    Args:
        path: gets the suffix `.npz` if it has none.
        trajectories: at least one; all of one environment.

    Raises:
        TrajectoryError: there are none, or their shapes differ.
    """
    if not trajectories:
        raise TrajectoryError(f"there are no trajectories to save to {path}")
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
    try:
        columns = {
            name: np.concatenate([getattr(t, name) for t in trajectories])
            for name in ("states", "actions", "rewards")
        }
    except ValueError as error:
        raise TrajectoryError(f"trajectories for {path} differ in shape: {error}") from None
    with atomic_path(path) as staged, open(staged, "wb") as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            **columns,
            terminated=np.array([t.terminated for t in trajectories]),
            lengths=np.array([len(t) for t in trajectories]),
            format_version=np.array(FORMAT_VERSION),
        )
    return path


def load_trajectories(path: PathLike) -> list[Trajectory]:
    """Read what `save_trajectories` wrote.

    Raises:
        TrajectoryError: missing, damaged or foreign; the message names the file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            absent = [name for name in _ARRAYS if name not in file.files]
            if absent:
                raise TrajectoryError(f"{path} holds no trajectories: {absent[0]} is missing")
            arrays = {name: file[name] for name in _ARRAYS}
    except FileNotFoundError:
        raise TrajectoryError(f"trajectories {path} do not exist") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise TrajectoryError(f"{path} is not a readable .npz of trajectories: {error}") from None
    try:
        return _split(arrays)
    except (TrajectoryError, ValueError, TypeError, IndexError) as error:
        raise TrajectoryError(f"{path} is damaged: {error}") from None


def _split(arrays: dict[str, np.ndarray]) -> list[Trajectory]:
    version, lengths = int(arrays["format_version"]), arrays["lengths"]
    if version != FORMAT_VERSION:
        raise TrajectoryError(f"format_version is {version}, this aprl reads {FORMAT_VERSION}")
    if len(lengths) == 0 or len(arrays["terminated"]) != len(lengths) or (lengths < 1).any():
        raise TrajectoryError("it lists no trajectories, or lengths that cannot be")
    ends = np.cumsum(lengths)[:-1]
    state_ends = np.cumsum(lengths + 1)
    if (len(arrays["actions"]), len(arrays["states"])) != (lengths.sum(), state_ends[-1]):
        raise TrajectoryError("its columns are not as long as its trajectories say")
    return [
        Trajectory(states, actions, rewards, bool(terminated))
        for states, actions, rewards, terminated in zip(
            np.split(arrays["states"], state_ends[:-1]),
            np.split(arrays["actions"], ends),
            np.split(arrays["rewards"], ends),
            arrays["terminated"],
            strict=True,
        )
    ]
