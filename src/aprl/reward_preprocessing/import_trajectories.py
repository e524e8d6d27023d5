"""Trajectories written by other programs: older pickles, and files of the package `imitation`."""

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aprl.errors import PolicyError
from aprl.files import PathLike
from aprl.policies.unpickle import ArrayNotes, read_notes
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.trajectories import Trajectory, load_trajectories


class _Sealed(type):
    """Of a class whose attributes a pickle cannot set."""

    def __setattr__(cls, name: str, value: Any) -> None:
        raise AttributeError(f"cannot set {name}")


class _PickledTrajectory(metaclass=_Sealed):
    """Stands in for the class of a pickled trajectory: holds its fields and runs nothing."""

    __slots__ = ("fields",)
    fields: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.fields = state if isinstance(state, dict) else {}

    def array(self, name: str) -> np.ndarray:
        notes = self.fields.get(name)
        if not isinstance(notes, ArrayNotes):
            raise TrajectoryError(f"its field {name} is not an array")
        return notes.build()

    @property
    def obs(self) -> np.ndarray:
        return self.array("obs")

    @property
    def acts(self) -> np.ndarray:
        return self.array("acts")

    @property
    def rews(self) -> np.ndarray:
        return self.array("rews")

    @property
    def terminal(self) -> bool:
        return self.fields["terminal"] is True


_CLASSES = {
    ("imitation.data.types", name): _PickledTrajectory
    for name in ("Trajectory", "TrajectoryWithRew")
}


def read_any_trajectories(path: PathLike) -> list[Trajectory]:
    """Read trajectories of any kind: `.npz` of this library, older `.pkl`, or `imitation`'s.

    Raises:
        TrajectoryError: missing, damaged, empty, or of an unknown kind.
    """
    path = Path(path)
    if not path.exists():
        raise TrajectoryError(f"trajectories {path} do not exist")
    if path.is_dir():
        return read_imitation_trajectories(path)
    if path.suffix == ".npz":
        return load_trajectories(path)
    return read_pickled_trajectories(path)


def read_pickled_trajectories(path: PathLike) -> list[Trajectory]:
    """Read a pickled list of `imitation`'s `TrajectoryWithRew`, without running code from it.

    Info dicts of the trajectories are left out.

    Raises:
        TrajectoryError: missing, damaged, names anything but trajectories and arrays, or holds no
            trajectories with rewards.
    """
    path = Path(path)
    try:
        content = read_notes(path, _CLASSES)
    except PolicyError as error:
        raise TrajectoryError(str(error)) from None
    if not isinstance(content, list | tuple):
        raise TrajectoryError(f"{path} holds a {type(content).__name__}, expected trajectories")
    return _convert(content, path)


def read_imitation_trajectories(path: PathLike) -> list[Trajectory]:
    """Read a folder that `imitation` saved trajectories to, through that package.

    Raises:
        TrajectoryError: the package is not installed, or cannot read the folder.
    """
    if importlib.util.find_spec("imitation") is None:
        raise TrajectoryError(
            f"{path} is a folder, as the package 'imitation' writes for trajectories; reading it "
            "needs that package, which is not installed"
        )
    warnings.warn(
        f"{path} is read by the package imitation, which can run code from such files; "
        "read only files that you trust",
        UserWarning,
        stacklevel=2,
    )
    serialize = importlib.import_module("imitation.data.serialize")
    try:
        content = serialize.load(path)
    except Exception as error:  # whatever that package raises
        raise TrajectoryError(f"imitation cannot read {path}: {error}") from None
    return _convert(content, Path(path))


def _convert(content: Sequence[Any], path: Path) -> list[Trajectory]:
    trajectories = []
    for index, item in enumerate(content):
        try:
            rewards = getattr(item, "rews", None)
            if rewards is None:
                raise TrajectoryError("it has no rewards (rews)")
            obs, acts = np.asarray(item.obs), np.asarray(item.acts)
            if obs.dtype == object or acts.dtype == object:
                raise TrajectoryError("its observations or actions are not arrays of numbers")
            rewards = np.asarray(rewards, np.float64)
            trajectories.append(Trajectory(obs, acts, rewards, bool(item.terminal)))
        except (TrajectoryError, LookupError, AttributeError, TypeError, ValueError) as error:
            raise TrajectoryError(f"{path}, trajectory {index}: {error}") from None
    if not trajectories:
        raise TrajectoryError(f"{path} holds no trajectories")
    return trajectories
