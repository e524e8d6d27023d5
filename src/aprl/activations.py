"""What a player's network computes while it plays, recorded step by step to one `.npz`."""

import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl import __version__
from aprl.envs.base import Infos, Observations
from aprl.errors import RunError, first_line
from aprl.files import PathLike, atomic_path
from aprl.policies.base import Policy
from aprl.policies.network import NetworkPolicy
from aprl.policies.recurrent import LstmPolicy
from aprl.training.transparent import check_transparency

FORMAT = "aprl-activations"
FORMAT_VERSION = 1


class WatchedPolicy:
    """Another policy, and what its network computed when it last chose actions.

    Args:
        policy: a network.
        keys: some of `aprl.training.transparent.TRANSPARENCY_KEYS`.

    Attributes:
        seen: per key `(n, features)`, of the newest `predict`.

    Raises:
        ConfigError: see `check_transparency`.
    """

    def __init__(self, policy: Policy, keys: Iterable[str]) -> None:
        self.keys = check_transparency(keys, policy)
        assert isinstance(policy, NetworkPolicy)
        self.policy = policy
        self.observation_space: spaces.Space = policy.observation_space
        self.action_space: spaces.Space = policy.action_space
        self.seen: dict[str, np.ndarray] = {}

    def initial_state(self, n: int) -> np.ndarray | None:
        """See `Policy.initial_state`."""
        return self.policy.initial_state(n)

    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`."""
        seen = {"obs": obs.copy(), **self.policy.hidden(obs, state, episode_start)}
        if "hid" in self.keys:
            assert isinstance(self.policy, LstmPolicy)
            assert state is not None
            after = self.policy.next_state(obs, state, episode_start)
            seen["hid"] = after.reshape(len(obs), -1)
        self.seen = {key: seen[key] for key in self.keys}
        return self.policy.predict(obs, state, episode_start, deterministic)

    def seed(self, seed: int | np.random.SeedSequence) -> None:
        """See `Policy.seed`."""
        self.policy.seed(seed)

    def state_dict(self) -> dict[str, Any]:
        """See `Policy.state_dict`."""
        return self.policy.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Policy.load_state_dict`."""
        self.policy.load_state_dict(state)


@dataclass(frozen=True)
class Activations:
    """Finished episodes of one player, one after the other.

    Attributes:
        lengths: steps of each episode, `(episodes,)`.
        values: per key `(sum of lengths, features)` float32, from before each step.
        provenance: who played whom, in JSON types.
    """

    lengths: np.ndarray
    values: dict[str, np.ndarray]
    provenance: dict[str, Any]

    def episodes(self, key: str) -> list[np.ndarray]:
        """One `(steps, features)` per episode."""
        return np.split(self.values[key], np.cumsum(self.lengths)[:-1])


class ActivationRecorder:
    """Collects what a watched player computes while `aprl.scoring.play_games` plays it.

    Args:
        policy: the player.
        num_envs: environments in the batch.
    """

    def __init__(self, policy: WatchedPolicy, num_envs: int) -> None:
        self._policy = policy
        self._running: list[list[dict[str, np.ndarray]]] = [[] for _ in range(num_envs)]
        self._finished: list[list[dict[str, np.ndarray]]] = []

    def __call__(
        self,
        obs: Observations,
        actions: Sequence[np.ndarray],
        rewards: np.ndarray,
        dones: np.ndarray,
        infos: Infos,
        keep: np.ndarray,
    ) -> None:
        """Take one step of the game; see `aprl.scoring.play_games`."""
        for env in np.flatnonzero(keep):
            step = {key: rows[env].copy() for key, rows in self._policy.seen.items()}
            self._running[env].append(step)
            if dones[env]:
                self._finished.append(self._running[env])
                self._running[env] = []

    def result(self, provenance: dict[str, Any]) -> Activations:
        """The episodes that ended; there must be one."""
        steps = [step for episode in self._finished for step in episode]
        return Activations(
            np.array([len(episode) for episode in self._finished]),
            {key: np.stack([step[key] for step in steps]) for key in self._policy.keys},
            provenance,
        )


def save_activations(activations: Activations, path: PathLike) -> None:
    """Write an `.npz` of plain arrays, replacing atomically what is there."""
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "provenance": {"aprl_version": __version__, **activations.provenance},
    }
    arrays = {
        "header": np.array(json.dumps(header, allow_nan=False)),
        "lengths": activations.lengths,
        **activations.values,
    }
    with atomic_path(path) as staged, open(staged, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def load_activations(path: PathLike) -> Activations:
    """Read what `save_activations` wrote; nothing in the file is run.

    Raises:
        RunError: missing, damaged, or of another format; the file is named.
    """
    if not Path(path).is_file():
        raise RunError(f"activations {path}: no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        if (header["format"], header["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"not the format {FORMAT}, version {FORMAT_VERSION}")
        lengths = arrays.pop("lengths")
        for key, rows in arrays.items():
            if len(rows) != lengths.sum():
                raise ValueError(f"{key} has {len(rows)} rows, expected {lengths.sum()}")
        return Activations(lengths, arrays, header["provenance"])
    except KeyError as error:
        raise RunError(f"activations {path}: {error.args[0]} is missing") from None
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(f"activations {path}: {first_line(error)}") from None
