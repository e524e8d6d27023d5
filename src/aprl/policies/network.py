"""Policies that are neural networks: what every kind has in common, and the MLP.

One network serves the published zoo's MLPs (Bansal et al., ICLR 2018) and the policies that this
library trains: observation normaliser inside, separate policy and value towers, tanh units.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import PolicyError, first_line
from aprl.policies.base import SeededPolicy
from aprl.policies.spaces import describe, one_hot, width


class ActorCritic(nn.Module):
    """What every network here has: a normaliser of observations, scales of values, a noise.

    An observation enters as `z = clip((obs - obs_mean) / obs_std, -clip, clip)`. The policy head is
    linear: the mean of a Gaussian whose `log_std` is a free vector, or logits over discrete actions
    (then `log_std` is None). The value head is linear too, and is scaled back by
    `value * value_std + value_mean`.
    """

    obs_mean: torch.Tensor
    obs_std: torch.Tensor
    value_mean: torch.Tensor
    value_std: torch.Tensor
    log_std: nn.Parameter | None

    def __init__(
        self, obs_dim: int, action_dim: int, clip: float = 10.0, discrete: bool = False
    ) -> None:
        """Make a normaliser that does nothing and unit noise.

        Args:
            obs_dim: floats per observation.
            action_dim: components of an action, or the number of discrete actions.
            clip: bound of a normalised observation, in standard deviations; may be infinite.
            discrete: actions are choices rather than vectors.

        Raises:
            ValueError: a size below 1, or a clip that is not positive.
        """
        super().__init__()
        require_sizes(obs_dim, action_dim)
        if not clip > 0:
            raise ValueError(f"the observation clip must be positive, got {clip}")
        self.obs_dim = obs_dim
        self.action_dim = action_dim
        self.clip = float(clip)
        self.discrete = discrete
        self.register_buffer("obs_mean", torch.zeros(obs_dim))
        self.register_buffer("obs_std", torch.ones(obs_dim))
        self.register_buffer("value_mean", torch.zeros(()))
        self.register_buffer("value_std", torch.ones(()))
        self.log_std = None if discrete else nn.Parameter(torch.zeros(action_dim))

    def normalise(self, obs: torch.Tensor) -> torch.Tensor:
        """Normalise and clip observations `(n, obs_dim)`."""
        z = obs.sub(self.obs_mean).div_(self.obs_std)
        return z.clamp_(-self.clip, self.clip)

    def denormalise(self, head: torch.Tensor) -> torch.Tensor:
        """Values in units of reward `(n,)` from the value head's output `(n, 1)`."""
        return head.squeeze(1) * self.value_std + self.value_mean


def require_sizes(*sizes: object) -> None:
    """Check sizes of layers.

    Raises:
        ValueError: one is no integer of at least 1.
    """
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"layer sizes are integers of at least 1, got {size!r}")


class ActorCriticMlp(ActorCritic):
    """Policy and value towers of tanh layers over normalised observations; see `ActorCritic`."""

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        *,
        policy_layers: Sequence[int] = (64, 64),
        value_layers: Sequence[int] = (64, 64),
        clip: float = 10.0,
        discrete: bool = False,
    ) -> None:
        """Make a network with PyTorch's default initial weights and a normaliser that does nothing.

        Args:
            obs_dim: floats per observation.
            action_dim: components of an action, or the number of discrete actions.
            policy_layers: hidden units per layer of the policy tower.
            value_layers: hidden units per layer of the value tower.
            clip: bound of a normalised observation, in standard deviations; may be infinite.
            discrete: actions are choices rather than vectors.

        Raises:
            ValueError: a size below 1, or a clip that is not positive.
        """
        super().__init__(obs_dim, action_dim, clip, discrete)
        require_sizes(*policy_layers, *value_layers)
        self.policy_layers = list(policy_layers)
        self.value_layers = list(value_layers)
        self.policy_tower = _tower([obs_dim, *policy_layers, action_dim])
        self.value_tower = _tower([obs_dim, *value_layers, 1])

    def policy(self, obs: torch.Tensor) -> torch.Tensor:
        """Mean of the action, or logits: `(n, action_dim)` from observations `(n, obs_dim)`."""
        return _activations(self.policy_tower, self.normalise(obs))[-1]

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Value in units of reward: `(n,)` from observations `(n, obs_dim)`."""
        return self.denormalise(_activations(self.value_tower, self.normalise(obs))[-1])

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both heads from one pass over the normaliser: see `policy` and `value`."""
        z = self.normalise(obs)
        policy = _activations(self.policy_tower, z)[-1]
        return policy, self.denormalise(_activations(self.value_tower, z)[-1])

    def hidden(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Activations of the policy and of the value tower.

        Returns:
            `(n, sum of policy_layers)` and `(n, sum of value_layers)`, first layer first.
        """
        z = self.normalise(obs)
        towers = (self.policy_tower, self.value_tower)
        policy, value = (
            torch.cat([z[:, :0], *_activations(tower, z)[:-1]], dim=1) for tower in towers
        )
        return policy, value


class NetworkPolicy(SeededPolicy, ABC):
    """A policy made of a network, which a file can hold: see `aprl.policies.store`.

    A subclass names its kind of network, rebuilds itself from its architecture, and answers
    questions about what the network computes. `state` and `episode_start` matter only to recurrent
    networks; they mean what they mean in `Policy.predict`.
    """

    network_name: ClassVar[str]
    network: ActorCritic

    def __init__(
        self,
        network: ActorCritic,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        """Join a network and the spaces it plays in.

        Args:
            network: not copied; training it further changes this policy.
            observation_space: one-dimensional Box, or Discrete, which enters one-hot.
            action_space: one-dimensional Box, or Discrete.
            seed: of the generator of the actions' noise.

        Raises:
            PolicyError: the network's sizes are not those of the spaces.
        """
        super().__init__(observation_space, action_space, seed)
        self.network = network
        for what, space, size in (
            ("observations", observation_space, network.obs_dim),
            ("actions", action_space, network.action_dim),
        ):
            if width(space) != size:
                raise PolicyError(f"network with {size} {what} does not fit {describe(space)}")
        if network.discrete != isinstance(action_space, spaces.Discrete):
            head = "discrete" if network.discrete else "Gaussian"
            raise PolicyError(f"{head} policy head does not fit {describe(action_space)}")

    @classmethod
    @abstractmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> Self:
        """Build a policy with fresh weights from what `architecture` returned.

        Raises:
            PolicyError: the architecture is not one that this class can build.
        """

    @abstractmethod
    def architecture(self) -> dict[str, Any]:
        """Describe the network's shape in JSON types, `network` being its `network_name`."""

    @abstractmethod
    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`."""

    @abstractmethod
    def mean(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """Mean of the Gaussian before clipping, or logits: `(n, act_dim)` float32."""

    @abstractmethod
    def value(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """Estimated return in units of reward: `(n,)` float32."""

    @abstractmethod
    def hidden(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Activations `ff_policy` and `ff_value`, per environment `(n, features)` float32."""

    def act(self, head: np.ndarray, deterministic: bool) -> np.ndarray:
        """Choose actions from the policy head's output `(n, action_dim)`, which may be changed.

        They are samples from the Gaussian, clipped to the action box, or choices drawn from the
        softmax; the modes of these if `deterministic`.
        """
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            if not deterministic:  # Gumbel-max: the argmax of noisy logits is a softmax sample
                head = head + self.rng.gumbel(size=head.shape)
            return head.argmax(axis=1) + space.start
        assert isinstance(space, spaces.Box)
        if not deterministic:
            assert self.network.log_std is not None
            noise = self.rng.standard_normal(head.shape, dtype=np.float32)
            noise *= self.network.log_std.exp().numpy()
            head += noise
        np.maximum(head, space.low, out=head)
        return np.minimum(head, space.high, out=head)

    def as_input(self, obs: np.ndarray) -> torch.Tensor:
        """Observations as the network takes them, `(n, network.obs_dim)` float32.

        Raises:
            PolicyError: observations of the wrong shape.
        """
        space = self.observation_space
        if isinstance(space, spaces.Discrete):
            return torch.from_numpy(one_hot(obs, space))
        obs = np.asarray(obs, dtype=np.float32)
        if obs.ndim != 2 or obs.shape[1] != self.network.obs_dim:
            raise PolicyError(
                f"expected observations of shape (n, {self.network.obs_dim}), got {obs.shape}"
            )
        # PyTorch warns about arrays that must not be written to.
        return torch.from_numpy(obs if obs.flags.writeable else obs.copy())


class MlpPolicy(NetworkPolicy):
    """An `ActorCriticMlp` that plays.

    Actions are samples from the Gaussian, clipped to the action box, or choices drawn from the
    softmax. A row of NaN observations gives a NaN action (or an arbitrary choice) in that row only.
    """

    network_name = "mlp"
    network: ActorCriticMlp

    @classmethod
    def from_architecture(
        cls,
        architecture: dict[str, Any],
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | np.random.SeedSequence = 0,
    ) -> Self:
        """See `NetworkPolicy.from_architecture`."""
        try:
            if architecture["activation"] != "tanh":
                raise ValueError(f"activation {architecture['activation']!r}, expected 'tanh'")
            network = ActorCriticMlp(
                width(observation_space),
                width(action_space),
                policy_layers=architecture["policy_layers"],
                value_layers=architecture["value_layers"],
                clip=float(architecture["observation_clip"]),
                discrete=isinstance(action_space, spaces.Discrete),
            )
        except KeyError as error:
            raise PolicyError(f"architecture without {error}") from None
        except (TypeError, ValueError, RuntimeError) as error:
            raise PolicyError(f"architecture not usable: {first_line(error)}") from None
        return cls(network, observation_space, action_space, seed)

    def architecture(self) -> dict[str, Any]:
        """See `NetworkPolicy.architecture`."""
        clip = self.network.clip
        return {
            "network": self.network_name,
            "policy_layers": list(self.network.policy_layers),
            "value_layers": list(self.network.value_layers),
            "activation": "tanh",
            "observation_clip": clip if math.isfinite(clip) else str(clip),
        }

    @torch.inference_mode()
    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """See `Policy.predict`.

        Raises:
            PolicyError: observations of the wrong shape.
        """
        return self.act(self.network.policy(self.as_input(obs)).numpy(), deterministic), None

    @torch.inference_mode()
    def mean(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.mean`."""
        return self.network.policy(self.as_input(obs)).numpy()

    @torch.inference_mode()
    def value(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.value`."""
        return self.network.value(self.as_input(obs)).numpy()

    @torch.inference_mode()
    def hidden(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """See `NetworkPolicy.hidden`; the layers of a tower lie side by side, the first first."""
        policy, value = self.network.hidden(self.as_input(obs))
        return {"ff_policy": policy.numpy(), "ff_value": value.numpy()}


def _tower(sizes: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))


def _activations(tower: nn.ModuleList, x: torch.Tensor) -> list[torch.Tensor]:
    """Output of each layer in turn; the last is linear, the others tanh."""
    outputs: list[torch.Tensor] = []
    for layer in tower:
        assert isinstance(layer, nn.Linear)
        # `layer(x)` would cost as much as the product itself on a few rows.
        x = nn.functional.linear(x, layer.weight, layer.bias)
        if len(outputs) < len(tower) - 1:
            x = x.tanh_()
        outputs.append(x)
    return outputs
