"""A potential made of the value function that a policy was trained with."""

from typing import Any, Self

import numpy as np
import torch
from torch import nn

from aprl.policies import spaces as space_json
from aprl.policies.network import MlpPolicy
from aprl.rewards.encoding import as_tensor, decode
from aprl.rewards.potentials.base import LinearInParameters


class CriticPotential(LinearInParameters):
    """A trained policy's standardised value times a factor, plus a constant.

    Args:
        policy: its network is frozen.
    """

    kind = "critic"
    value_mean: torch.Tensor
    value_std: torch.Tensor

    def __init__(self, policy: MlpPolicy) -> None:
        super().__init__()
        self.policy = policy
        # Registered so that files hold its weights.
        self.network = policy.network.requires_grad_(False)
        self.register_buffer("value_mean", torch.zeros((), dtype=torch.float64))
        self.register_buffer("value_std", torch.ones((), dtype=torch.float64))
        self.factor = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def value(self, states: torch.Tensor) -> torch.Tensor:
        """The critic's value `(n,)` of states as the environment gives them, standardised."""
        return (self._policy_value(states) - self.value_mean) / self.value_std

    def _policy_value(self, states: torch.Tensor) -> torch.Tensor:
        raw = decode(self.policy.observation_space, states.detach())
        return torch.as_tensor(self.policy.value(raw.numpy())).double()

    def fit_scale(self, states: np.ndarray, reward_scale: float) -> None:
        """Take the value's mean and deviation from the data."""
        value = self._policy_value(as_tensor(states)).numpy()
        self.value_mean.fill_(value.mean())
        self.value_std.fill_(value.std() if value.std() > 1e-12 else 1.0)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """See `Potential.forward`."""
        return self.factor * self.value(states) + self.bias

    def architecture(self) -> dict[str, Any]:
        """See `Potential.architecture`."""
        return {
            "kind": self.kind,
            "policy": {
                **self.policy.architecture(),
                "observation_space": space_json.to_json(self.policy.observation_space),
                "action_space": space_json.to_json(self.policy.action_space),
            },
        }

    @classmethod
    def from_architecture(cls, architecture: dict[str, Any]) -> Self:
        """See `Potential.from_architecture`."""
        policy = architecture["policy"]
        observation_space, action_space = (
            space_json.from_json(policy[name]) for name in ("observation_space", "action_space")
        )
        return cls(MlpPolicy.from_architecture(policy, observation_space, action_space))

    @torch.no_grad()
    def add_constant(self, constant: float) -> None:
        """See `Potential.add_constant`."""
        self.bias.add_(constant)

    @torch.no_grad()
    def features(self, states: np.ndarray) -> np.ndarray:
        """Value and a column of ones."""
        value = self.value(as_tensor(states)).numpy()
        return np.column_stack([value, np.ones(len(value))])

    def coefficients(self) -> np.ndarray:
        """See `LinearInParameters.coefficients`."""
        return np.array([self.factor.item(), self.bias.item()])

    @torch.no_grad()
    def set_coefficients(self, coefficients: np.ndarray) -> None:
        """See `LinearInParameters.set_coefficients`."""
        self.factor.copy_(torch.as_tensor(coefficients[0]))
        self.bias.copy_(torch.as_tensor(coefficients[1]))
