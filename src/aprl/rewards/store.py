"""Reward networks on disk: weights in safetensors, everything else in JSON; no code."""

from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces

from aprl import __version__
from aprl.errors import AprlError, RunError
from aprl.files import PathLike
from aprl.policies.spaces import from_json, to_json
from aprl.rewards.nets import (
    BasicRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    RewardNet,
    ShapedRewardNet,
)
from aprl.training.checkpoints import load_state, save_state

FORMAT = "aprl-reward"
FORMAT_VERSION = 1


def reward_from_architecture(
    architecture: dict[str, Any], observation_space: spaces.Space, action_space: spaces.Space
) -> RewardNet:
    """Build a net, with fresh weights, from what `RewardNet.architecture` returned.

    Raises:
        RunError: no such kind of net, or options that it does not have.
    """
    try:
        options = dict(architecture)
        kind = options.pop("kind")

        def build(part: dict[str, Any]) -> RewardNet:
            return reward_from_architecture(part, observation_space, action_space)

        if kind == BasicRewardNet.kind:
            return BasicRewardNet(observation_space, action_space, **options)
        if kind == ShapedRewardNet.kind:
            return ShapedRewardNet(build(options.pop("base")), options.pop("gamma"), **options)
        if kind == RewardEnsemble.kind:
            members = [build(member) for member in options.pop("members")]
            return RewardEnsemble(members, **options)
        if kind == NormalizedRewardNet.kind:
            return NormalizedRewardNet(build(options.pop("base")), **options)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"the architecture of a reward net is not usable: {error}") from None
    raise RunError(f"reward net of kind {kind!r} is not known to this version")


def save_reward(net: RewardNet, directory: PathLike, provenance: dict[str, Any]) -> Path:
    """Write a net; one that is already there is replaced atomically.

    Args:
        net: what to save.
        directory: where to; it holds two files.
        provenance: JSON types, free form.

    Raises:
        RunError: weights that are not finite.
    """
    weights = {name: value.detach().cpu() for name, value in net.state_dict().items()}
    _check_finite(weights, Path(directory))
    save_state(
        directory,
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "architecture": net.architecture(),
            "observation_space": to_json(net.observation_space),
            "action_space": to_json(net.action_space),
            "provenance": {"aprl_version": __version__, **provenance},
            "weights": weights,
        },
    )
    return Path(directory)


def load_reward(directory: PathLike) -> RewardNet:
    """Read a net that `save_reward` wrote; runs no code from the files.

    Raises:
        RunError: missing, damaged, foreign or newer files; the message names the directory.
    """
    directory = Path(directory)
    state = load_state(directory)
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise RunError(f"{directory} holds no {FORMAT}")
    if state.get("format_version") != FORMAT_VERSION:
        raise RunError(
            f"{directory} has format_version {state.get('format_version')!r}; this aprl reads "
            f"{FORMAT_VERSION}"
        )
    try:
        # No draws from PyTorch's global generator: these weights are replaced at once.
        with torch.random.fork_rng(devices=[]):
            net = reward_from_architecture(
                state["architecture"],
                from_json(state["observation_space"]),
                from_json(state["action_space"]),
            )
        net.load_state_dict(state["weights"])
    except (AprlError, KeyError, RuntimeError, TypeError, AttributeError) as error:
        raise RunError(f"{directory}: {error}") from None
    _check_finite(net.state_dict(), directory)
    return net


def _check_finite(weights: dict[str, torch.Tensor], directory: Path) -> None:
    for name, value in weights.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise RunError(f"{directory}: {name} holds values that are not finite")
