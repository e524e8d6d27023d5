"""Spaces as a network and a file see them: sizes, a short description, JSON."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.errors import PolicyError


def width(space: spaces.Space) -> int:
    """Number of floats that stand for one element: components of a Box, choices of a Discrete.

    Raises:
        PolicyError: the space is neither Discrete nor a Box of one dimension.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return int(space.shape[0])
    raise PolicyError(
        f"policies support Discrete and one-dimensional Box spaces, not {describe(space)}"
    )


def describe(space: spaces.Space) -> str:
    """One short phrase: kind and size, and the bounds of a Box where they are uniform."""
    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if not isinstance(space, spaces.Box):
        return str(space)
    low, high = np.unique(space.low), np.unique(space.high)
    bounds = f"{low[0]:g}..{high[0]:g}, " if low.size == high.size == 1 else ""
    return f"Box({bounds}{space.shape})"


def fits(a: spaces.Space, b: spaces.Space) -> bool:
    """Whether elements of both have the same kind and size; bounds may differ."""
    if isinstance(a, spaces.Discrete) and isinstance(b, spaces.Discrete):
        return bool(a.n == b.n)
    return isinstance(a, spaces.Box) and isinstance(b, spaces.Box) and a.shape == b.shape


def one_hot(obs: np.ndarray, space: spaces.Discrete) -> np.ndarray:
    """Encode observations of a Discrete space.

    Args:
        obs: `(n,)` integers in the space.
        space: where they come from.

    Returns:
        `(n, space.n)` float32, a single 1 per row.

    Raises:
        PolicyError: another shape or type, or a value outside the space.
    """
    obs = np.asarray(obs)
    if obs.ndim != 1 or not np.issubdtype(obs.dtype, np.integer):
        raise PolicyError(
            f"expected observations of shape (n,) and integer type for {describe(space)}, "
            f"got shape {obs.shape} of {obs.dtype}"
        )
    index = obs - space.start
    if index.size and not 0 <= index.min() <= index.max() < space.n:
        bad = obs[(index < 0) | (index >= space.n)][0]
        raise PolicyError(f"observation {bad} is not in {describe(space)}")
    encoded = np.zeros((len(obs), int(space.n)), np.float32)
    encoded[np.arange(len(obs)), index] = 1
    return encoded


def as_floats(obs: np.ndarray, space: spaces.Space) -> np.ndarray:
    """Observations as rows of floats, `(n, width(space))`; choices are one-hot.

    Raises:
        PolicyError: see `one_hot`.
    """
    return one_hot(obs, space) if isinstance(space, spaces.Discrete) else np.asarray(obs)


def to_json(space: spaces.Space) -> dict[str, Any]:
    """Describe a space in JSON types; bounds are scalars where uniform, infinities are strings.

    Raises:
        PolicyError: the space is neither Box nor Discrete.
    """
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if not isinstance(space, spaces.Box):
        raise PolicyError(f"cannot save the space {describe(space)}; only Box and Discrete")
    return {
        "type": "Box",
        "low": _collapse(space.low),
        "high": _collapse(space.high),
        "shape": list(space.shape),
        "dtype": np.dtype(space.dtype).name,
    }


def from_json(data: Any) -> spaces.Space:
    """Build the space that `to_json` described.

    Raises:
        PolicyError: `data` describes no space.
    """
    try:
        if data["type"] == "Discrete":
            return spaces.Discrete(int(data["n"]), start=int(data.get("start", 0)))
        if data["type"] == "Box":
            shape, dtype = tuple(map(int, data["shape"])), np.dtype(data["dtype"])
            low, high = (
                np.broadcast_to(np.asarray(data[key], dtype=np.float64), shape).astype(dtype)
                for key in ("low", "high")
            )
            return spaces.Box(low, high, shape, dtype.type)
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError):
        pass
    except (OverflowError, MemoryError):
        pass
    raise PolicyError(f"not the description of a Box or Discrete space: {str(data)[:200]}")


def _collapse(bound: np.ndarray) -> Any:
    """One number when all entries agree, else nested lists; infinities become "inf" / "-inf"."""
    values = np.asarray(bound)
    if values.size and (values == values.flat[0]).all():
        return _number(values.flat[0].item())
    return np.vectorize(_number, otypes=[object])(values).tolist()


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
