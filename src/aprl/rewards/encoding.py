"""Columns of transitions as tensors: as an environment gives them, or as rows of floats.

Raw columns are int64 for numbered states and actions, float64 `(n, ...)` for vectors, bool for
`terminated`. Encoded ones are float rows, differentiable for all spaces: numbers one-hot, vectors
flattened. Nets and potentials take either. `terminated` means that the episode ended in a terminal
state; being cut off by a time limit is not termination.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch.nn.functional import one_hot

from aprl.errors import ConfigError, PolicyError
from aprl.policies.spaces import describe, width


class RewardInputs(NamedTuple):
    """Columns of `n` transitions, in the order in which reward nets take them.

    Encoded they are `(n, obs)`, `(n, act)`, `(n, obs)` and `(n,)` floats.
    """

    obs: torch.Tensor
    actions: torch.Tensor
    next_obs: torch.Tensor
    terminated: torch.Tensor

    @classmethod
    def raw(
        cls, obs: np.ndarray, actions: np.ndarray, next_obs: np.ndarray, terminated: np.ndarray
    ) -> "RewardInputs":
        """Columns as an environment gives them, as tensors; see `as_tensor`."""
        return cls(*(as_tensor(column) for column in (obs, actions, next_obs, terminated)))

    def rows(self, index: Any) -> "RewardInputs":
        """Some of the rows."""
        return RewardInputs(*(part[index] for part in self))


def as_tensor(values: np.ndarray) -> torch.Tensor:
    """Integers as int64, bools as they are, everything else as float64."""
    values = np.asarray(values)
    if values.dtype == bool:
        kind: Any = np.bool_
    else:
        kind = np.int64 if np.issubdtype(values.dtype, np.integer) else np.float64
    # A copy where the array is read-only, which PyTorch warns about.
    return torch.from_numpy(np.require(values, kind, ["C", "W"]))


def encode(
    space: spaces.Space, column: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Rows of a space as floats `(n, width)`; rows that are encoded already keep their values.

    Args:
        space: Box or Discrete.
        column: raw, or encoded.
        dtype: of the result.

    Raises:
        ConfigError: values that are not of the space.
    """
    if isinstance(space, spaces.Discrete) and not column.is_floating_point():
        _require_shape(space, column, ())
        index = column.long() - int(space.start)
        wrong = (index < 0) | (index >= int(space.n))
        if wrong.any():
            raise ConfigError(f"{column[wrong][0].item()} is not in {describe(space)}")
        return one_hot(index, int(space.n)).to(dtype)
    if isinstance(space, spaces.Box) and len(space.shape) != 1 and column.shape[1:] == space.shape:
        column = column.reshape(len(column), -1)
    _require_shape(space, column, (encoded_width(space),))
    return column.to(dtype)


def decode(space: spaces.Space, column: torch.Tensor) -> torch.Tensor:
    """The raw column of one that may be encoded: numbers `(n,)` int64, or `(n, ...)` floats.

    Of float rows that are not one-hot the number with the largest share is taken.
    """
    if isinstance(space, spaces.Discrete):
        if column.is_floating_point():
            return column.argmax(dim=1) + int(space.start)
        return column
    assert space.shape is not None
    return column.reshape(len(column), *space.shape)


def _require_shape(space: spaces.Space, column: torch.Tensor, expected: tuple[int, ...]) -> None:
    if column.shape[1:] != expected:
        raise ConfigError(
            f"rows of shape {tuple(column.shape[1:])} are given for the space {describe(space)}"
        )


def encoded_width(space: spaces.Space) -> int:
    """Floats per row of `encode`.

    Raises:
        ConfigError: the space is neither Box nor Discrete.
    """
    if isinstance(space, spaces.Box):
        return math.prod(space.shape)
    try:
        return width(space)
    except PolicyError as error:
        raise ConfigError(str(error)) from None
