"""A base policy and a learned perturbation of it, as one policy: noise-ball adversaries."""

from typing import Any, Self

import numpy as np
from gymnasium import spaces

from aprl.errors import PolicyError
from aprl.policies import spaces as space_json
from aprl.policies.network import ActorCritic, NetworkPolicy


class MergedNetworks(ActorCritic):
    """Two networks side by side; the base's normaliser and noise are its own."""

    def __init__(self, base: ActorCritic, change: ActorCritic) -> None:
        super().__init__(base.obs_dim, base.action_dim)
        self.base, self.change = base, change
        self.log_std = None


class MergedPolicy(NetworkPolicy):
    """Acts as a base policy does plus a change that depends on it too.

    The change sees the observation followed by the base's action, and is bounded by its own action
    box; the sum is clipped to the base's. The recurrent state is the base's.

    Args:
        base: a policy.
        change: a policy without memory, whose observations are as wide as the base's observation
            and action together.
        seed: of both generators.

    Raises:
        PolicyError: a change that does not fit the base, or has a memory.
    """

    network_name = "merged"
    network: MergedNetworks

    def __init__(
        self,
        base: NetworkPolicy,
        change: NetworkPolicy,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.base, self.change = base, change
        wanted = base.network.obs_dim + base.network.action_dim
        if change.network.obs_dim != wanted or change.network.action_dim != base.network.action_dim:
            raise PolicyError(
                f"the change maps {change.network.obs_dim} to {change.network.action_dim} numbers, "
                f"the base policy needs {wanted} to {base.network.action_dim}"
            )
        if change.initial_state(1) is not None or not isinstance(base.action_space, spaces.Box):
            raise PolicyError("only a change without memory, of continuous actions, can be merged")
        network = MergedNetworks(base.network, change.network)
        super().__init__(network, base.observation_space, base.action_space, seed)

    @classmethod
    def of(cls, base: NetworkPolicy, change: NetworkPolicy) -> "MergedPolicy":
        """Merge two policies."""
        return cls(base, change)

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> Self:
        """See `NetworkPolicy.from_architecture`."""
        from aprl.policies.store import build_network_policy

        try:
            base = build_network_policy(architecture["base"], observation_space, action_space)
            change = build_network_policy(
                architecture["change"],
                space_json.from_json(architecture["change_observation_space"]),
                space_json.from_json(architecture["change_action_space"]),
            )
        except KeyError as error:
            raise PolicyError(f"architecture without {error}") from None
        return cls(base, change, seed)

    def architecture(self) -> dict[str, Any]:
        """See `NetworkPolicy.architecture`."""
        return {
            "network": self.network_name,
            "base": self.base.architecture(),
            "change": self.change.architecture(),
            "change_observation_space": space_json.to_json(self.change.observation_space),
            "change_action_space": space_json.to_json(self.change.action_space),
        }

    def seed(self, seed: int | np.random.SeedSequence) -> None:
        """See `Policy.seed`."""
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        for policy, child in zip((self.base, self.change), root.spawn(2), strict=True):
            policy.seed(child)
        super().seed(root)

    def initial_state(self, n: int) -> np.ndarray | None:
        """See `Policy.initial_state`."""
        return self.base.initial_state(n)

    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`."""
        actions, after = self.base.predict(obs, state, episode_start, deterministic)
        change, _ = self.change.predict(self._seen(obs, actions), deterministic=deterministic)
        return self._sum(actions, change), after

    def mean(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.mean`: the change's mean at the base's, clipped."""
        actions = self.base.mean(obs, state, episode_start)
        return self._sum(actions, self.change.mean(self._seen(obs, actions)))

    def value(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.value`: what the change expects at the base's mean."""
        actions = self.base.mean(obs, state, episode_start)
        return self.change.value(self._seen(obs, actions))

    def hidden(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """See `NetworkPolicy.hidden`: those of the change at the base's mean."""
        actions = self.base.mean(obs, state, episode_start)
        return self.change.hidden(self._seen(obs, actions))

    def state_dict(self) -> dict[str, Any]:
        """See `Policy.state_dict`."""
        parts = {"base": self.base.state_dict(), "change": self.change.state_dict()}
        return {**super().state_dict(), **parts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Policy.load_state_dict`."""
        super().load_state_dict(state)
        self.base.load_state_dict(state["base"])
        self.change.load_state_dict(state["change"])

    def _seen(self, obs: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.concatenate([obs, actions], axis=1, dtype=np.float32)

    def _sum(self, actions: np.ndarray, change: np.ndarray) -> np.ndarray:
        assert isinstance(self.action_space, spaces.Box)
        return np.clip(actions + change, self.action_space.low, self.action_space.high)
