"""A run's complete state on disk: arrays in safetensors, the rest in JSON; no pickles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from safetensors import SafetensorError

from aprl.errors import RunError
from aprl.files import PathLike, atomic_path, read_json, sha256, write_json

ARRAYS_FILE = "state.safetensors"
TREE_FILE = "state.json"
HASHES_FILE = "hashes.json"  # SHA-256 of the other two
_ARRAY, _TENSOR = "__array__", "__tensor__"


class CheckpointError(RunError):
    """A checkpoint that cannot be continued from; an older one may do."""


def save_state(directory: PathLike, state: dict[str, Any]) -> None:
    """Write nested dicts and lists of arrays, tensors and JSON values; replaces atomically."""
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(state, "state", arrays)
    with atomic_path(directory) as staged:
        staged.mkdir()
        # Not `save_file`: on a full disk it raises an error of its own instead of an OSError.
        (staged / ARRAYS_FILE).write_bytes(safetensors.numpy.save(arrays))
        (staged / TREE_FILE).write_text(json.dumps(tree), encoding="utf-8")
        hashes = {name: sha256(staged / name) for name in (ARRAYS_FILE, TREE_FILE)}
        write_json(staged / HASHES_FILE, hashes)


def load_state(directory: PathLike) -> dict[str, Any]:
    """Read what `save_state` wrote.

    Raises:
        CheckpointError: missing, damaged or changed; the message names the file.
    """
    directory = Path(directory)
    path = directory / ARRAYS_FILE
    try:
        tree = read_json(directory / TREE_FILE)
        arrays = safetensors.numpy.load_file(path)
        state = _decode(tree, arrays)
        hashes = read_json(directory / HASHES_FILE)
        for name in (ARRAYS_FILE, TREE_FILE):
            if not isinstance(hashes, dict) or sha256(directory / name) != hashes.get(name):
                raise CheckpointError(
                    f"{directory / name} is damaged: its hash is not the one in {HASHES_FILE}"
                )
    except CheckpointError:
        raise
    except RunError as error:
        raise CheckpointError(str(error)) from None
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {error}") from None
    if not isinstance(state, dict):
        raise CheckpointError(f"{directory / TREE_FILE} holds no state")
    return state


def _encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, torch.Tensor):
        return {_TENSOR: _add(value.detach().numpy(), path, arrays)}
    if isinstance(value, np.ndarray):
        return {_ARRAY: _add(value, path, arrays)}
    if isinstance(value, dict):
        return {str(k): _encode(v, f"{path}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _add(array: np.ndarray, path: str, arrays: dict[str, np.ndarray]) -> str:
    """Put an array under its path; returns the name it got.

    The key "a.b" and "b" within "a" have the same path, but not the same name.
    """
    while path in arrays:
        path += "'"
    # C-ordered and of the same shape; NumPy's own function turns a scalar into a vector.
    arrays[path] = np.ascontiguousarray(array).reshape(array.shape)
    return path


def _decode(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(tree, dict):
        if set(tree) == {_ARRAY}:
            return arrays[tree[_ARRAY]].copy()
        if set(tree) == {_TENSOR}:
            return torch.from_numpy(arrays[tree[_TENSOR]].copy())
        return {key: _decode(value, arrays) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_decode(value, arrays) for value in tree]
    return tree
