"""Policies without a network: baselines that stand still, repeat one action, or act at random."""

from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.errors import PolicyError
from aprl.policies.base import SeededPolicy
from aprl.policies.spaces import describe


class ConstantPolicy(SeededPolicy):
    """Takes one action always."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        constant: Any,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        """Fix the action.

        Args:
            observation_space: what it is shown, and ignores.
            action_space: a Box or Discrete space.
            constant: an action; for a Box, a single number stands for all components.
            seed: unused, as nothing is drawn.

        Raises:
            PolicyError: `constant` is not in `action_space`, or the space is of another kind.
        """
        super().__init__(observation_space, action_space, seed)
        self.constant = _action(action_space, constant)

    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`; the action is the same in every row."""
        actions = np.empty((len(obs), *self.constant.shape), self.constant.dtype)
        actions[...] = self.constant
        return actions, None


class ZeroPolicy(ConstantPolicy):
    """Takes action zero always: a body without torque, or the first action of a matrix game."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        """See `ConstantPolicy`.

        Raises:
            PolicyError: zero is not in `action_space`.
        """
        super().__init__(observation_space, action_space, 0, seed)


class RandomPolicy(SeededPolicy):
    """Draws actions uniformly from the action space, whatever `deterministic` says."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        """Check that a uniform distribution exists.

        Raises:
            PolicyError: the action space is unbounded, or neither a float Box nor Discrete.
        """
        super().__init__(observation_space, action_space, seed)
        bounded = isinstance(action_space, spaces.Discrete) or (
            isinstance(action_space, spaces.Box)
            and np.issubdtype(action_space.dtype, np.floating)
            and action_space.is_bounded("both")
        )
        if not bounded:
            raise PolicyError(
                f"no uniform random policy for the action space {describe(action_space)}; "
                "it needs a bounded Box of floats, or Discrete"
            )

    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`."""
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            return space.start + self.rng.integers(int(space.n), size=len(obs)), None
        assert isinstance(space, spaces.Box)
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        actions = self.rng.random((len(obs), *space.shape)) * (high - low) + low
        # Rounding to float32 can step over a bound that float64 respects.
        return np.clip(actions.astype(space.dtype), space.low, space.high), None


def _action(space: spaces.Space, constant: Any) -> np.ndarray:
    """Turn `constant` into an action of `space`, or raise PolicyError."""
    if not isinstance(space, spaces.Box | spaces.Discrete):
        raise PolicyError(f"no constant policy for the action space {describe(space)}")
    try:
        given = np.asarray(constant, dtype=np.float64)
        shape = space.shape if isinstance(space, spaces.Box) else ()
        if given.ndim == 0:
            given = np.broadcast_to(given, shape)
        dtype = space.dtype if isinstance(space, spaces.Box) else np.dtype(np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            action = given.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        raise PolicyError(f"constant {constant!r} is not a number or a list of numbers") from None
    whole = np.issubdtype(dtype, np.floating) or np.array_equal(action, given)
    member = action if action.ndim else action[()]
    if not (whole and space.contains(member)):
        raise PolicyError(f"constant {constant!r} is not in the action space {describe(space)}")
    return action
