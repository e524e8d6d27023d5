"""Demonstrations on disk: one `.npz` of plain arrays, with a JSON header; never a pickle."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl import __version__
from aprl.errors import DemonstrationError, PolicyError, first_line
from aprl.files import PathLike, atomic_path
from aprl.imitation.trajectories import Trajectory
from aprl.policies.spaces import describe, fits, from_json, to_json

FORMAT = "aprl-demonstrations"
FORMAT_VERSION = 1
_ARRAYS = ("obs", "actions", "lengths", "terminated", "truncated")


@dataclass(frozen=True)
class Demonstrations:
    """Episodes, and the spaces that they are from.

    Attributes:
        trajectories: at least one.
        observation_space: of the demonstrator.
        action_space: of the demonstrator.
        provenance: who played what, in JSON types.

    Raises:
        DemonstrationError: no episode, or rows that are not of the spaces.
    """

    trajectories: tuple[Trajectory, ...]
    observation_space: spaces.Space
    action_space: spaces.Space
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        if not self.trajectories:
            raise DemonstrationError("there are no demonstrations")
        for name, space in (("obs", self.observation_space), ("actions", self.action_space)):
            for trajectory in self.trajectories:
                _check_rows(name, getattr(trajectory, name), space)

    def require_spaces(
        self, observation_space: spaces.Space, action_space: spaces.Space, where: str
    ) -> None:
        """Check that the demonstrations fit an environment.

        Raises:
            DemonstrationError: they do not; the message has both spaces.
        """
        for what, ours, theirs in (
            ("observations", self.observation_space, observation_space),
            ("actions", self.action_space, action_space),
        ):
            if not fits(ours, theirs):
                raise DemonstrationError(
                    f"the demonstrations do not fit {where}: their {what} are {describe(ours)}, "
                    f"its {describe(theirs)}"
                )

    def first(self, count: int | None) -> "Demonstrations":
        """The first `count` episodes; None is all.

        Raises:
            DemonstrationError: there are not so many.
        """
        if count is None:
            return self
        if not 1 <= count <= len(self.trajectories):
            raise DemonstrationError(
                f"{count} demonstrations are asked for, the file has {len(self.trajectories)}"
            )
        return Demonstrations(
            self.trajectories[:count], self.observation_space, self.action_space, self.provenance
        )


def _check_rows(name: str, rows: np.ndarray, space: spaces.Space) -> None:
    if isinstance(space, spaces.Discrete):
        fine = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
        fine = fine and bool(((rows >= space.start) & (rows < space.start + space.n)).all())
    else:
        fine = rows.shape[1:] == space.shape
    if not fine:
        raise DemonstrationError(
            f"{name} of shape {rows.shape} and type {rows.dtype} are not in {describe(space)}"
        )


def save_demonstrations(demonstrations: Demonstrations, path: PathLike) -> Path:
    """Write an `.npz`, replacing atomically what is there.

    Raises:
        DemonstrationError: the name does not end in `.npz`.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise DemonstrationError(f"demonstrations are saved as .npz, not as {path.name}")
    trajectories = demonstrations.trajectories
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "observation_space": to_json(demonstrations.observation_space),
        "action_space": to_json(demonstrations.action_space),
        "provenance": {"aprl_version": __version__, **demonstrations.provenance},
    }
    arrays = {
        "header": np.array(json.dumps(header, allow_nan=False)),
        "obs": np.concatenate([t.obs for t in trajectories]),
        "actions": np.concatenate([t.actions for t in trajectories]),
        "lengths": np.array([len(t) for t in trajectories]),
        "terminated": np.array([t.terminated for t in trajectories]),
        "truncated": np.array([t.truncated for t in trajectories]),
    }
    rewards = [t.rewards for t in trajectories if t.rewards is not None]
    if len(rewards) == len(trajectories):
        arrays["rewards"] = np.concatenate(rewards)
    with atomic_path(path) as staged, open(staged, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return path


def load_demonstrations(path: PathLike) -> Demonstrations:
    """Read what `save_demonstrations` wrote; nothing in the file is run.

    Raises:
        DemonstrationError: missing, damaged, of another format, or with pickled objects in it.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise DemonstrationError(f"demonstrations {path}: the file {what}")
    try:
        if not zipfile.is_zipfile(path):
            raise DemonstrationError(
                "not an .npz file; a pickle, which could run code, is never read: record the "
                "demonstrations with aprl.imitation.make_demonstrations or aprl.score_agent"
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _decode(arrays)
    except DemonstrationError as error:
        raise DemonstrationError(f"demonstrations {path}: {error}") from None
    except Exception as error:  # what damaged files raise has nothing in common
        reason = first_line(error)
        if "allow_pickle" in reason:
            reason = "it holds pickled objects, which could run code; refused"
        raise DemonstrationError(f"demonstrations {path}: {reason}") from None


def _decode(arrays: dict[str, np.ndarray]) -> Demonstrations:
    if "header" not in arrays:
        raise DemonstrationError(f"not the format {FORMAT}: it has no header")
    header = json.loads(str(arrays["header"]))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DemonstrationError(f"not the format {FORMAT}")
    if header.get("format_version") != FORMAT_VERSION:
        raise DemonstrationError(
            f"format_version {header.get('format_version')!r}, this aprl reads {FORMAT_VERSION}"
        )
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise DemonstrationError(f"array {missing[0]!r} is missing")
    lengths = arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 1).any():
        raise DemonstrationError("lengths must be the numbers of steps of the episodes")
    if not len(lengths):
        raise DemonstrationError("there are no demonstrations")
    provenance = header.get("provenance", {})
    if not isinstance(provenance, dict):
        raise DemonstrationError(f"provenance must be an object, not {provenance!r:.50}")
    steps, episodes = int(lengths.sum()), len(lengths)
    expected = {"obs": steps + episodes, "actions": steps, "rewards": steps}
    expected |= {"terminated": episodes, "truncated": episodes}
    for name, count in expected.items():
        if name in arrays and len(arrays[name]) != count:
            raise DemonstrationError(f"{name} has {len(arrays[name])} rows, expected {count}")
    ends = np.cumsum(lengths)[:-1]
    rewards: Sequence[np.ndarray | None] = [None] * episodes
    if "rewards" in arrays:
        rewards = np.split(arrays["rewards"], ends)
    try:
        observation_space = from_json(header["observation_space"])
        action_space = from_json(header["action_space"])
    except PolicyError as error:
        raise DemonstrationError(str(error)) from None
    return Demonstrations(
        tuple(
            Trajectory(obs, actions, reward, bool(terminated), bool(truncated))
            for obs, actions, reward, terminated, truncated in zip(
                np.split(arrays["obs"], np.cumsum(lengths + 1)[:-1]),
                np.split(arrays["actions"], ends),
                rewards,
                arrays["terminated"],
                arrays["truncated"],
                strict=True,
            )
        ),
        observation_space,
        action_space,
        provenance,
    )
