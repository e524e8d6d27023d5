"""Policies on disk: a directory of `policy.safetensors` and `policy.json`.

Loading runs no code from the files. The JSON says what the network looks like, which spaces it
plays in, where it comes from, and the hash of the weights; the observation statistics are among
the weights.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from gymnasium import spaces
from safetensors import SafetensorError

from aprl import __version__
from aprl.errors import AprlError, PolicyError, RunError
from aprl.files import PathLike, atomic_path, read_json, sha256, write_json
from aprl.policies import spaces as space_json
from aprl.policies.merged import MergedPolicy
from aprl.policies.network import MlpPolicy, NetworkPolicy
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.squashed import SquashedPolicy

FORMAT = "aprl-policy"
FORMAT_VERSION = 1
KINDS = ("zoo", "ppo")
WEIGHTS_FILE = "policy.safetensors"
HEADER_FILE = "policy.json"

# A new kind of network is one more entry; the files' format stays the same.
NETWORKS: dict[str, type[NetworkPolicy]] = {
    cls.network_name: cls for cls in (MlpPolicy, LstmPolicy, SquashedPolicy, MergedPolicy)
}


def save_policy(
    policy: NetworkPolicy,
    directory: PathLike,
    provenance: dict[str, Any],
    kind: str = "ppo",
) -> Path:
    """Write a policy; a policy that is already there is replaced atomically.

    Args:
        policy: what to save; its random generator is not saved.
        directory: created if absent.
        provenance: JSON types, free form: `env_name`, `agent_index`, `command`, `seed`, `steps`,
            `wall_time_s`, `parents`... The library's version is added as `aprl_version`.
        kind: "zoo" for converted published weights, "ppo" for those trained here.

    Returns:
        The directory.

    Raises:
        PolicyError: weights that are not finite, provenance that is not JSON, an unknown kind, or
            a directory that holds other files, which would be lost.
    """
    directory = Path(directory)
    if kind not in KINDS:
        raise PolicyError(f"unknown kind of policy {kind!r}; expected one of {', '.join(KINDS)}")
    if directory.exists() and not directory.is_dir():
        raise PolicyError(f"{directory} is a file; a policy is saved as a directory")
    others = {p.name for p in directory.glob("*")} - {WEIGHTS_FILE, HEADER_FILE}
    if others:
        raise PolicyError(f"{directory} holds other files ({min(others)}); not replaced")
    tensors = {k: v.detach().cpu().contiguous() for k, v in policy.network.state_dict().items()}
    with _naming(directory):
        _check_values(tensors)
        weights = safetensors.torch.save(tensors)
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "kind": kind,
            "architecture": policy.architecture(),
            "observation_space": space_json.to_json(policy.observation_space),
            "action_space": space_json.to_json(policy.action_space),
            "provenance": {"aprl_version": __version__, **provenance},
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
        }
        try:
            json.dumps(header, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PolicyError(f"provenance is not JSON: {error}") from None
    with atomic_path(directory) as staged:
        staged.mkdir()
        (staged / WEIGHTS_FILE).write_bytes(weights)
        write_json(staged / HEADER_FILE, header)
    return directory


def load_saved(directory: PathLike, seed: int | np.random.SeedSequence = 0) -> NetworkPolicy:
    """Read a policy that `save_policy` wrote.

    Args:
        directory: where the two files are.
        seed: of the policy's random generator.

    Raises:
        PolicyError: missing, damaged, foreign or newer files; the message names the path.
    """
    directory = Path(directory)
    header = read_header(directory)
    path = directory / WEIGHTS_FILE
    try:
        weights = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror})") from None
    with _naming(path):
        if hashlib.sha256(weights).hexdigest() != header["weights_sha256"]:
            raise PolicyError("damaged or exchanged: its hash is not the one in policy.json")
        try:
            # Copies: the arrays of the file are neither aligned nor always writable.
            tensors = {k: v.clone() for k, v in safetensors.torch.load(weights).items()}
        except (SafetensorError, ValueError, KeyError) as error:
            raise PolicyError(f"not a safetensors file: {error}") from None
    # "meta" tensors have a shape but no memory: nothing is initialised only to be replaced, nor is
    # PyTorch's global generator advanced.
    with _naming(directory / HEADER_FILE), torch.device("meta"):
        policy = build_network_policy(
            header["architecture"],
            space_json.from_json(header["observation_space"]),
            space_json.from_json(header["action_space"]),
            seed,
        )
    with _naming(path):
        _check_layout(policy.network.state_dict(), tensors)
        _check_values(tensors)
    policy.network.load_state_dict(tensors, assign=True)
    return policy


def build_network_policy(
    architecture: dict[str, Any],
    observation_space: spaces.Space,
    action_space: spaces.Space,
    seed: int | np.random.SeedSequence = 0,
) -> NetworkPolicy:
    """A policy with fresh weights, from what `NetworkPolicy.architecture` returned.

    Raises:
        PolicyError: a kind of network that is not known, or one that cannot be built.
    """
    name = architecture.get("network")
    if name not in NETWORKS:
        known = ", ".join(NETWORKS)
        raise PolicyError(f"network {name!r} is not known to this version, only {known}")
    return NETWORKS[name].from_architecture(architecture, observation_space, action_space, seed)


def read_header(directory: PathLike) -> dict[str, Any]:
    """Read and check `policy.json`, without the weights.

    Raises:
        PolicyError: missing, not JSON, of another format or of a newer version of it.
    """
    directory = Path(directory)
    path = directory / HEADER_FILE
    if not directory.is_dir():
        found = "is a file, not a policy directory" if directory.exists() else "does not exist"
        raise PolicyError(f"{directory} {found}")
    if not path.is_file():
        raise PolicyError(f"{directory} holds no policy: {HEADER_FILE} is missing")
    try:
        header = read_json(path)
    except RunError as error:
        raise PolicyError(str(error)) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PolicyError(f"{path}: not the description of an {FORMAT}")
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise PolicyError(f"{path}: format_version is {version!r}, expected a whole number")
    if version > FORMAT_VERSION:
        raise PolicyError(
            f"{path}: format_version {version} is newer than this aprl {__version__} reads "
            f"({FORMAT_VERSION}); upgrade aprl"
        )
    types = {"kind": str, "architecture": dict, "provenance": dict, "weights_sha256": str}
    types |= {"observation_space": dict, "action_space": dict}
    for key, expected in types.items():
        if not isinstance(header.get(key), expected):
            raise PolicyError(f"{path}: {key} is missing or not of type {expected.__name__}")
    if not isinstance(header["architecture"].get("network"), str):
        raise PolicyError(f"{path}: the architecture does not name its network")
    return header


def fingerprint(directory: PathLike) -> str:
    """SHA-256 (hex) of the weights file: equal for equal policies, wherever they lie.

    Raises:
        PolicyError: there are no weights.
    """
    path = Path(directory) / WEIGHTS_FILE
    try:
        return sha256(path)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror})") from None


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn the library's errors into a PolicyError that starts with `path`."""
    try:
        yield
    except AprlError as error:
        raise PolicyError(f"{path}: {error}") from None


def _check_layout(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> None:
    for name in [*expected, *found]:
        if name not in found:
            raise PolicyError(f"tensor {name} is missing")
        if name not in expected:
            raise PolicyError(f"tensor {name} does not belong to the architecture in policy.json")
        want, have = expected[name], found[name]
        if want.shape != have.shape or want.dtype != have.dtype:
            raise PolicyError(
                f"tensor {name} has shape {tuple(have.shape)} and type {have.dtype}, but the "
                f"architecture needs {tuple(want.shape)} and {want.dtype}"
            )


def _check_values(tensors: dict[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise PolicyError(f"tensor {name} holds values that are not finite")
    if "obs_std" in tensors and not (tensors["obs_std"] > 0).all():
        raise PolicyError("tensor obs_std holds values that are not positive")
