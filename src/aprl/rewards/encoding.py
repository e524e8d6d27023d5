"""Transitions as a reward network sees them: rows of floats, differentiable for all spaces.

`terminated` means that the episode ended in a terminal state; being cut off by a time limit is not
termination.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces

from aprl.errors import ConfigError, PolicyError
from aprl.policies.spaces import one_hot, width


class RewardInputs(NamedTuple):
    """Encoded transitions: `(n, obs)`, `(n, act)`, `(n, obs)` and `(n,)`, all float32."""

    obs: torch.Tensor
    actions: torch.Tensor
    next_obs: torch.Tensor
    terminated: torch.Tensor

    def rows(self, index: Any) -> "RewardInputs":
        """Some of the rows."""
        return RewardInputs(*(part[index] for part in self))


def encode(space: spaces.Space, values: np.ndarray) -> torch.Tensor:
    """Rows of a space as floats `(n, width)`: Discrete one-hot, a Box flattened.

    Raises:
        ConfigError: values that are not of the space, or a space that is neither.
    """
    values = np.asarray(values)
    if isinstance(space, spaces.Discrete):
        try:
            return torch.from_numpy(one_hot(values, space))
        except PolicyError as error:
            raise ConfigError(str(error)) from None
    if values.shape[1:] != space.shape:
        raise ConfigError(f"rows of shape {values.shape[1:]} are given for the space {space}")
    flat = values.reshape(len(values), -1).astype(np.float32)  # a copy: nothing is shared
    return torch.from_numpy(flat)


def encoded_width(space: spaces.Space) -> int:
    """Floats per row of `encode`.

    Raises:
        ConfigError: the space is neither Box nor Discrete.
    """
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    try:
        return width(space)
    except PolicyError as error:
        raise ConfigError(str(error)) from None
