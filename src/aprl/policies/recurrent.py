"""Policies that are LSTM networks, as the published zoo has them for sumo and Kick and Defend."""

import math
from typing import Any, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import PolicyError, first_line
from aprl.policies.network import ActorCritic, NetworkPolicy, require_sizes
from aprl.policies.spaces import width

VALUE, POLICY = 0, 2  # rows of the state where a tower's cell state lies; its output follows


class LstmTower(nn.Module):
    """A ReLU layer, an LSTM cell and a linear head."""

    def __init__(self, in_features: int, layer: int, hidden: int, out_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, layer)
        self.cell = nn.LSTMCell(layer, hidden)
        self.head = nn.Linear(hidden, out_features)

    def step(
        self, z: torch.Tensor, cell: torch.Tensor, output: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advance the memory: new cell state and output, each `(n, hidden)`."""
        x = nn.functional.linear(z, self.dense.weight, self.dense.bias).relu_()
        output, cell = self.cell(x, (output, cell))
        return cell, output


class ActorCriticLstm(ActorCritic):
    """Policy and value towers with memory over normalised observations; see `ActorCritic`.

    The state is `(n, 4, hidden)`: value cell, value output, policy cell, policy output, zeros when
    an episode starts (the order of the published policies).
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        *,
        layer: int = 128,
        hidden: int = 128,
        clip: float = 10.0,
        discrete: bool = False,
    ) -> None:
        """Make a network with PyTorch's default initial weights and a normaliser that does nothing.

        Args:
            obs_dim: floats per observation.
            action_dim: components of an action, or the number of discrete actions.
            layer: units of each tower's first layer.
            hidden: units of each tower's LSTM cell.
            clip: bound of a normalised observation, in standard deviations; may be infinite.
            discrete: actions are choices rather than vectors.

        Raises:
            ValueError: a size below 1, or a clip that is not positive.
        """
        super().__init__(obs_dim, action_dim, clip, discrete)
        require_sizes(layer, hidden)
        self.layer = layer
        self.hidden_size = hidden
        self.value_tower = LstmTower(obs_dim, layer, hidden, 1)
        self.policy_tower = LstmTower(obs_dim, layer, hidden, action_dim)

    def advance(self, obs: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """New state `(n, 4, hidden)` from observations `(n, obs_dim)` and the state before."""
        z = self.normalise(obs)
        rows: list[torch.Tensor] = []
        for tower, first in ((self.value_tower, VALUE), (self.policy_tower, POLICY)):
            rows += tower.step(z, state[:, first], state[:, first + 1])
        return torch.stack(rows, dim=1)

    def policy(self, state: torch.Tensor) -> torch.Tensor:
        """Mean of the action, or logits, `(n, action_dim)`, from the *new* state."""
        return self.policy_tower.head(state[:, POLICY + 1])

    def value(self, state: torch.Tensor) -> torch.Tensor:
        """Value in units of reward `(n,)`, from the *new* state."""
        return self.denormalise(self.value_tower.head(state[:, VALUE + 1]))


class LstmPolicy(NetworkPolicy):
    """An `ActorCriticLstm` that plays; its state is an array `(n, 4, hidden)` float32.

    Actions are chosen as by `NetworkPolicy.act`. A row of NaN observations spoils its own state and
    actions only, until its next episode starts.
    """

    network_name = "lstm"
    network: ActorCriticLstm

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
            network = ActorCriticLstm(
                width(observation_space),
                width(action_space),
                layer=architecture["layer"],
                hidden=architecture["hidden"],
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
            "layer": self.network.layer,
            "hidden": self.network.hidden_size,
            "observation_clip": clip if math.isfinite(clip) else str(clip),
        }

    def initial_state(self, n: int) -> np.ndarray:
        """Zeros `(n, 4, hidden)`."""
        return np.zeros((n, 4, self.network.hidden_size), np.float32)

    @torch.inference_mode()
    def predict(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Policy.predict`.

        Raises:
            PolicyError: observations or state of the wrong shape.
        """
        new = self._advance(obs, state, episode_start)
        return self.act(self.network.policy(new).numpy(), deterministic), new.numpy()

    @torch.inference_mode()
    def mean(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.mean`."""
        return self.network.policy(self._advance(obs, state, episode_start)).numpy()

    @torch.inference_mode()
    def value(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `NetworkPolicy.value`."""
        return self.network.value(self._advance(obs, state, episode_start)).numpy()

    def hidden(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """See `NetworkPolicy.hidden`; the outputs of the LSTM cells."""
        with torch.inference_mode():
            new = self._advance(obs, state, episode_start).numpy()
        return {"ff_policy": new[:, POLICY + 1], "ff_value": new[:, VALUE + 1]}

    @torch.inference_mode()
    def next_state(
        self,
        obs: np.ndarray,
        state: np.ndarray | None = None,
        episode_start: np.ndarray | None = None,
    ) -> np.ndarray:
        """The state `(n, 4, hidden)` that seeing these observations leads to."""
        return self._advance(obs, state, episode_start).numpy()

    def _advance(
        self, obs: np.ndarray, state: np.ndarray | None, episode_start: np.ndarray | None
    ) -> torch.Tensor:
        inputs = self.as_input(obs)
        before = self.initial_state(len(inputs))
        if state is not None:
            if state.shape != before.shape:
                raise PolicyError(f"expected a state of shape {before.shape}, got {state.shape}")
            kept = slice(None) if episode_start is None else ~episode_start
            before[kept] = state[kept]
        return self.network.advance(inputs, torch.from_numpy(before))
