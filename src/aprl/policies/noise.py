"""Policies with a shaky hand: noise on the actions of a victim while it is attacked."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.policies.spaces import describe


class NoisyPolicy:
    """Another policy's actions times `1 + N(0, sigma)`, component by component, within the box.

    An action of zero stays zero. Gleave et al. (ICLR 2020) trained against victims handicapped in
    this way, the noise annealed to none.

    Args:
        policy: its actions are continuous.
        sigma: tells the present standard deviation.
        seed: of the noise.

    Raises:
        ConfigError: actions that are choices.
    """

    def __init__(
        self,
        policy: Policy,
        sigma: Callable[[], float],
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        if not isinstance(policy.action_space, spaces.Box):
            raise ConfigError(
                f"noise needs continuous actions, not {describe(policy.action_space)}"
            )
        self.policy = policy
        self.observation_space: spaces.Space = policy.observation_space
        self.action_space: spaces.Space = policy.action_space
        self._sigma = sigma
        self._rng = np.random.default_rng(seed)

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
        """See `Policy.predict`; there is noise on the mode too."""
        actions, state = self.policy.predict(obs, state, episode_start, deterministic)
        assert isinstance(self.action_space, spaces.Box)
        factors = 1 + self._sigma() * self._rng.standard_normal(actions.shape, dtype=np.float32)
        return np.clip(actions * factors, self.action_space.low, self.action_space.high), state

    def seed(self, seed: int | np.random.SeedSequence) -> None:
        """Restart both generators."""
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        own, inner = root.spawn(2)
        self._rng = np.random.default_rng(own)
        self.policy.seed(inner)

    def state_dict(self) -> dict[str, Any]:
        """See `Policy.state_dict`."""
        return {"policy": self.policy.state_dict(), "rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Policy.load_state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self._rng.bit_generator.state = state["rng"]
