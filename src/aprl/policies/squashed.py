"""Policies that SAC learns: a Gaussian squashed by tanh, and the critics that judge it."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import PolicyError, first_line
from aprl.policies.network import ActorCritic, NetworkPolicy, require_sizes
from aprl.policies.spaces import width

LOG_STD_RANGE = (-20.0, 2.0)  # as in Haarnoja et al.'s code and Stable-Baselines3
CRITICS = 2


class SquashedActorCritic(ActorCritic):
    """ReLU towers: an actor with a mean and a log-std per component, and two critics.

    The critics judge an observation and an action scaled to [-1, 1].
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        *,
        policy_layers: Sequence[int] = (256, 256),
        value_layers: Sequence[int] = (256, 256),
        clip: float = 10.0,
    ) -> None:
        """Make a network with PyTorch's default initial weights and a normaliser that does nothing.

        Args:
            obs_dim: floats per observation.
            action_dim: components of an action.
            policy_layers: hidden units per layer of the actor, at least one layer.
            value_layers: hidden units per layer of each critic.
            clip: bound of a normalised observation, in standard deviations; may be infinite.

        Raises:
            ValueError: a size below 1, no layers, or a clip that is not positive.
        """
        super().__init__(obs_dim, action_dim, clip)
        require_sizes(*policy_layers, *value_layers)
        if not policy_layers:
            raise ValueError("the actor needs at least one layer")
        self.log_std = None
        self.policy_layers, self.value_layers = list(policy_layers), list(value_layers)
        self.actor = _relu_tower([obs_dim, *policy_layers])
        self.mean_head = nn.Linear(self.policy_layers[-1], action_dim)
        self.log_std_head = nn.Linear(self.policy_layers[-1], action_dim)
        self.critics = nn.ModuleList(
            nn.Sequential(
                _relu_tower([obs_dim + action_dim, *value_layers]),
                nn.Linear([obs_dim + action_dim, *value_layers][-1], 1),
            )
            for _ in range(CRITICS)
        )

    def distribution(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation before squashing, each `(n, action_dim)`."""
        latent = self.actor(self.normalise(obs))
        return self.mean_head(latent), self.log_std_head(latent).clamp(*LOG_STD_RANGE).exp()

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """The lesser critic's value of the mode, in units of reward, `(n,)`; without entropy."""
        z = self.normalise(obs)
        squashed = torch.tanh(self.mean_head(self.actor(z)))
        rows = torch.cat([z, squashed], dim=1)
        values = torch.stack([critic(rows) for critic in self.critics])
        return self.denormalise(values.min(dim=0).values)

    def hidden(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Activations of the actor's layers, and of the first critic's at the mode."""
        z = self.normalise(obs)
        policy = _activations(self.actor, z)
        rows = torch.cat([z, torch.tanh(self.mean_head(self.actor(z)))], dim=1)
        critic = self.critics[0]
        assert isinstance(critic, nn.Sequential)
        return policy, _activations(critic[0], rows)


def _relu_tower(sizes: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


def _activations(tower: nn.Module, x: torch.Tensor) -> torch.Tensor:
    found = [x[:, :0]]
    assert isinstance(tower, nn.Sequential)
    for layer in tower:
        x = layer(x)
        if isinstance(layer, nn.ReLU):
            found.append(x)
    return torch.cat(found, dim=1)


class SquashedPolicy(NetworkPolicy):
    """A `SquashedActorCritic` that plays: tanh of a Gaussian sample, scaled to the action box."""

    network_name = "squashed"
    network: SquashedActorCritic

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
            network = SquashedActorCritic(
                width(observation_space),
                width(action_space),
                policy_layers=architecture["policy_layers"],
                value_layers=architecture["value_layers"],
                clip=float(architecture["observation_clip"]),
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
        """See `Policy.predict`."""
        mean, std = (x.numpy() for x in self.network.distribution(self.as_input(obs)))
        if not deterministic:
            mean = mean + std * self.rng.standard_normal(mean.shape, dtype=np.float32)
        return self._scaled(mean), None

    @torch.inference_mode()
    def mean(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.mean`: the mode, squashed and scaled."""
        return self._scaled(self.network.distribution(self.as_input(obs))[0].numpy())

    def _scaled(self, gaussian: np.ndarray) -> np.ndarray:
        space = self.action_space
        assert isinstance(space, spaces.Box)
        half = (space.high - space.low) / 2
        scaled = space.low + (np.tanh(gaussian) + 1) * half
        return np.clip(scaled, space.low, space.high).astype(np.float32)

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
        """See `NetworkPolicy.hidden`; layers lie side by side, the first first."""
        policy, value = self.network.hidden(self.as_input(obs))
        return {"ff_policy": policy.numpy(), "ff_value": value.numpy()}
