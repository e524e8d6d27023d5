"""What plays: one protocol for everything that maps observations to actions, in batches."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces


@runtime_checkable
class Policy(Protocol):
    """A policy that plays `n` games at once.

    Recurrent state is one array with the environments on axis 0, or None for a stateless policy.
    """

    observation_space: spaces.Space
    action_space: spaces.Space

    def initial_state(self, n: int) -> np.ndarray | None:
        """State before the first step of an episode: `(n, ...)`, or None when stateless."""
        ...

    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Choose actions.

        Args:
            obs: `(n, obs_dim)` float32 (or `(n,)` integers for a Discrete space), not normalised.
            state: what the previous call returned; None means `initial_state(n)`.
            episode_start: `(n,)` bool; rows that are True start from the initial state.
            deterministic: take the mode of the action distribution instead of a sample.

        Returns:
            Actions inside the action space, `(n, act_dim)` float32 or `(n,)` int64, and the new
            state (None when stateless).
        """
        ...

    def seed(self, seed: int | np.random.SeedSequence) -> None:
        """Restart the policy's own random generator."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """The random generator's state, as JSON types; weights are not in it."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


class SeededPolicy:
    """Base of the library's policies: spaces, and one NumPy generator that is seeded and saved."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self.seed(seed)

    def seed(self, seed: int | np.random.SeedSequence) -> None:
        """See `Policy.seed`."""
        self.rng = np.random.default_rng(seed)

    def initial_state(self, n: int) -> np.ndarray | None:
        """Stateless by default."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """See `Policy.state_dict`."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Policy.load_state_dict`."""
        self.rng.bit_generator.state = state["rng"]
