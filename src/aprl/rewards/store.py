"""Reward nets on disk: one file, of either of two formats that hold no code.

`.safetensors` carries the description of the net as JSON in its metadata; `.pt` is a file of
PyTorch with the same JSON and tensors, read by the unpickler that admits tensors only.
"""

import io
import json
import pickle
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError

from aprl import __version__
from aprl.errors import AprlError, RewardError, first_line
from aprl.files import PathLike, atomic_path
from aprl.policies import spaces as space_json
from aprl.rewards.base import RewardNet, build
from aprl.rewards.foreign import ImitationRewardNet

FORMAT = "aprl-reward-net"
FORMAT_VERSION = 2
SUFFIXES = (".pt", ".safetensors")
RUN_FILE_STEM = "reward_net"  # of the file in a run directory


def save_reward_net(
    net: RewardNet, path: PathLike, provenance: dict[str, Any] | None = None
) -> Path:
    """Write a reward net, atomically.

    Args:
        net: what to save.
        path: ends in `.pt` or `.safetensors`.
        provenance: JSON types, free form; the library's version is added.

    Raises:
        RewardError: another suffix, or weights that are not finite.
    """
    path = Path(path)
    _require_suffix(path)
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
    _check_finite(tensors, path)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "architecture": net.architecture(),
        "observation_space": space_json.to_json(net.observation_space),
        "action_space": space_json.to_json(net.action_space),
        "provenance": {"aprl_version": __version__, **(provenance or {})},
    }
    text = json.dumps(header, allow_nan=False)
    with atomic_path(path) as staged:
        # In memory first: on a full disk both libraries raise errors of their own.
        if path.suffix == ".pt":
            buffer = io.BytesIO()
            torch.save({FORMAT: text, "tensors": tensors}, buffer)
            staged.write_bytes(buffer.getvalue())
        else:
            staged.write_bytes(safetensors.torch.save(tensors, metadata={FORMAT: text}))
    return path


def load_reward_net(path: PathLike) -> RewardNet:
    """Read a reward net, in evaluation mode and frozen.

    Runs no code from the file, unless it is a pickled module of the package `imitation` and that
    package is installed: then a warning is given first.

    Args:
        path: the file, or the directory of a run that left one.

    Raises:
        RewardError: missing, damaged, foreign, older or newer; the message names the file.
    """
    path = _file_of(Path(path))
    _require_suffix(path)
    if not path.is_file():
        raise RewardError(f"reward net {path} does not exist")
    read = _read_pt if path.suffix == ".pt" else _read_safetensors
    content = read(path)
    net = ImitationRewardNet.load(path) if content is None else _build(*content, path)
    return net.eval().requires_grad_(False)


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    candidates = [path / f"{RUN_FILE_STEM}{suffix}" for suffix in SUFFIXES]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    names = " or ".join(candidate.name for candidate in candidates)
    raise RewardError(f"{path} is a directory, and holds no {names}")


def _require_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise RewardError(f"a reward net is a file {' or '.join(SUFFIXES)}, not {path}")


def _read_pt(path: Path) -> tuple[str, dict[str, torch.Tensor]] | None:
    """Description and tensors; None for a pickle of other objects."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # A legacy file or a zip with other objects in it; a damaged file fails otherwise.
        if "Unsupported global" in str(error) or "GLOBAL" in str(error):
            return None
        raise RewardError(f"{path} is damaged or no file of PyTorch") from None
    except Exception as error:  # what damaged files raise has nothing in common
        reason = first_line(error)
        raise RewardError(f"{path} is damaged: {reason}") from None
    if not isinstance(content, dict) or not isinstance(content.get(FORMAT), str):
        raise RewardError(f"{path} holds tensors, but no reward net of aprl")
    tensors = content.get("tensors")
    if not isinstance(tensors, dict) or not all(map(torch.is_tensor, tensors.values())):
        raise RewardError(f"{path} is damaged: it has no tensors")
    return content[FORMAT], tensors


def _read_safetensors(path: Path) -> tuple[str, dict[str, torch.Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(FORMAT)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise RewardError(f"{path} is not a readable safetensors file: {error}") from None
    if text is None:
        raise RewardError(f"{path} holds tensors, but no reward net of aprl")
    return text, tensors


def _build(text: str, tensors: dict[str, torch.Tensor], path: Path) -> RewardNet:
    try:
        header = json.loads(text)
        version = header["format_version"]
        if type(version) is not int or version != FORMAT_VERSION:
            age = "older" if type(version) is int and version < FORMAT_VERSION else "newer"
            raise RewardError(
                f"format_version {version} is {age} than {FORMAT_VERSION}, which this aprl "
                f"{__version__} reads"
            )
        # "meta" tensors have a shape but no memory: nothing is initialised only to be replaced.
        with torch.device("meta"):
            net = build(
                header["architecture"],
                space_json.from_json(header["observation_space"]),
                space_json.from_json(header["action_space"]),
            )
        _check_finite(tensors, path)
        types = {name: tensor.dtype for name, tensor in net.state_dict().items()}
        wrong = [name for name, t in tensors.items() if types.get(name, t.dtype) != t.dtype]
        if wrong:
            raise RewardError(f"tensor {wrong[0]} has type {tensors[wrong[0]].dtype}")
        net.load_state_dict(tensors, assign=True)
    except AprlError as error:
        raise RewardError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RewardError(f"{path} is damaged: {type(error).__name__} {reason}") from None
    return net


def _check_finite(tensors: dict[str, torch.Tensor], path: Path) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise RewardError(f"{path}: tensor {name} holds values that are not finite")
