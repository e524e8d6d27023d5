"""The published zoo of Bansal et al. (ICLR 2018): which policies there are, and their weights.

A published policy is one flat vector of float32. It is read in this order, matrices row by row:

    returns: sum, sum of squares, count                    3 numbers
    observations: sums, sums of squares, count             2 * obs_dim + 1
    value tower, policy tower: W, b per layer              MLP: 64, 64, head
                                                           LSTM: dense 128, cell 128, head
    log_std                                                act_dim

The LSTM's matrix W takes the dense layer's output and the cell's own, side by side, to the gates
input, candidate, forget, output; to the forget gate 1 is added, which the file does not hold.

Sums become means and standard deviations, the latter at least 0.1, in float32 as they were when
the policies were trained.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from aprl.envs.names import canonical_game
from aprl.errors import PolicyError, unknown_name
from aprl.files import PathLike
from aprl.policies.network import ActorCritic, ActorCriticMlp
from aprl.policies.recurrent import ActorCriticLstm

DEFAULT_ZOO_DIR = "data/agent_zoo"
OBSERVATION_CLIP = 5.0
MIN_VARIANCE = 0.01
LAYERS = (64, 64)
LSTM_UNITS = 128
PUBLISHED_GATES = ("input", "candidate", "forget", "output")
TORCH_GATES = ("input", "forget", "candidate", "output")


@dataclass(frozen=True)
class ZooGame:
    """What was published for one game.

    Attributes:
        obs_dim: floats per observation.
        act_dim: components of an action.
        action_bound: actions lie in [-action_bound, action_bound].
        symmetric: one file serves both agents; otherwise each agent has its own.
        versions: number of policies, whose tags are 1 to `versions`.
        recurrent: LSTM instead of MLP.
    """

    obs_dim: int
    act_dim: int
    action_bound: float
    symmetric: bool
    versions: int
    recurrent: bool


ZOO_GAMES: dict[str, ZooGame] = {
    "KickAndDefend": ZooGame(384, 17, 0.4, symmetric=False, versions=3, recurrent=True),
    "RunToGoalAnts": ZooGame(122, 8, 1.0, symmetric=False, versions=1, recurrent=False),
    "RunToGoalHumans": ZooGame(380, 17, 0.4, symmetric=False, versions=1, recurrent=False),
    "SumoAnts": ZooGame(137, 8, 1.0, symmetric=True, versions=4, recurrent=True),
    "SumoHumans": ZooGame(395, 17, 0.4, symmetric=True, versions=3, recurrent=True),
    "YouShallNotPassHumans": ZooGame(380, 17, 0.4, symmetric=False, versions=1, recurrent=False),
}


def zoo_game(env_name: str) -> ZooGame:
    """Entry of `ZOO_GAMES` for an environment id.

    Raises:
        ConfigError: nothing was published for this game.
    """
    game = canonical_game(env_name)
    if game not in ZOO_GAMES:
        raise unknown_name("game with zoo policies", game, ZOO_GAMES)
    return ZOO_GAMES[game]


def zoo_directory(root: PathLike, game: str, agent_index: int, tag: int | str) -> Path:
    """Where the imported policy lies: `<root>/<Game>/agent<index>-v<tag>`, or `any-v<tag>`.

    Args:
        root: directory of the imported zoo.
        game: environment id or name of the game.
        agent_index: 0 or 1, as everywhere in this library (the published file names count from 1).
        tag: number of the published version, from 1.

    Raises:
        ConfigError: nothing was published for this game.
        PolicyError: no such agent or version.
    """
    entry, name = zoo_game(game), canonical_game(game)
    if agent_index not in (0, 1):
        raise PolicyError(f"{name} has agents 0 and 1, not {agent_index}")
    if not (str(tag).isascii() and str(tag).isdecimal()) or not 1 <= int(tag) <= entry.versions:
        known = ", ".join(str(i + 1) for i in range(entry.versions))
        raise PolicyError(f"no zoo policy {str(tag)!r} for {name}; published versions: {known}")
    side = "any" if entry.symmetric else f"agent{agent_index}"
    return Path(root) / name / f"{side}-v{int(tag)}"


def mlp_size(obs_dim: int, act_dim: int) -> int:
    """Length of the flat vector of an MLP policy."""
    towers = _layers_size(obs_dim, *LAYERS, 1) + _layers_size(obs_dim, *LAYERS, act_dim)
    return _filters_size(obs_dim) + towers + act_dim


def lstm_size(obs_dim: int, act_dim: int) -> int:
    """Length of the flat vector of an LSTM policy."""
    cell = (2 * LSTM_UNITS + 1) * 4 * LSTM_UNITS
    dense, heads = _layers_size(obs_dim, LSTM_UNITS), _layers_size(LSTM_UNITS, act_dim)
    towers = 2 * (dense + cell) + _layers_size(LSTM_UNITS, 1) + heads
    return _filters_size(obs_dim) + towers + act_dim


def decode(flat: np.ndarray, game: ZooGame) -> ActorCriticMlp | ActorCriticLstm:
    """Build the network that a published flat vector describes.

    Args:
        flat: float32; see the module for its order.
        game: what it plays.

    Raises:
        PolicyError: another length, values that are not finite, or an empty filter.
    """
    return (decode_lstm if game.recurrent else decode_mlp)(flat, game.obs_dim, game.act_dim)


def decode_mlp(flat: np.ndarray, obs_dim: int, act_dim: int) -> ActorCriticMlp:
    """Build an MLP from a flat vector `(mlp_size(obs_dim, act_dim),)`; see `decode`."""
    reader = _Reader.checked(flat, mlp_size(obs_dim, act_dim), obs_dim, act_dim)
    network = ActorCriticMlp(
        obs_dim, act_dim, policy_layers=LAYERS, value_layers=LAYERS, clip=OBSERVATION_CLIP
    )
    with torch.no_grad():
        reader.fill_filters(network)
        for tower in (network.value_tower, network.policy_tower):
            for layer in tower:
                assert isinstance(layer, nn.Linear)
                reader.fill_linear(layer)
        reader.fill_log_std(network)
    return network


def decode_lstm(flat: np.ndarray, obs_dim: int, act_dim: int) -> ActorCriticLstm:
    """Build an LSTM from a flat vector `(lstm_size(obs_dim, act_dim),)`; see `decode`."""
    reader = _Reader.checked(flat, lstm_size(obs_dim, act_dim), obs_dim, act_dim)
    network = ActorCriticLstm(
        obs_dim, act_dim, layer=LSTM_UNITS, hidden=LSTM_UNITS, clip=OBSERVATION_CLIP
    )
    with torch.no_grad():
        reader.fill_filters(network)
        for tower in (network.value_tower, network.policy_tower):
            reader.fill_linear(tower.dense)
            reader.fill_cell(tower.cell)
            reader.fill_linear(tower.head)
        reader.fill_log_std(network)
    return network


class _Reader:
    """Takes arrays off the front of a flat vector."""

    def __init__(self, flat: np.ndarray) -> None:
        self.rest = flat

    @classmethod
    def checked(cls, flat: np.ndarray, expected: int, obs_dim: int, act_dim: int) -> "_Reader":
        """Start reading a vector of `expected` finite numbers."""
        flat = np.asarray(flat)
        if flat.shape != (expected,):
            raise PolicyError(
                f"expected a vector of {expected} numbers for {obs_dim} observations and "
                f"{act_dim} actions, found shape {flat.shape}"
            )
        if not np.isfinite(flat).all():
            raise PolicyError("the vector holds values that are not finite")
        return cls(flat.astype(np.float32))

    def take(self, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        head, self.rest = self.rest[:size], self.rest[size:]
        return head.reshape(shape)

    def fill_filters(self, network: ActorCritic) -> None:
        value_mean, value_std = self._filter()
        obs_mean, obs_std = self._filter(network.obs_dim)
        for target, source in (
            (network.value_mean, value_mean),
            (network.value_std, value_std),
            (network.obs_mean, obs_mean),
            (network.obs_std, obs_std),
        ):
            target.copy_(torch.from_numpy(np.asarray(source)))

    def _filter(self, *shape: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation from sum, sum of squares and count."""
        total, squares, count = self.take(*shape), self.take(*shape), self.take()
        if count <= 0:
            raise PolicyError(f"a filter of the vector has seen {count} values")
        mean = total / count
        return mean, np.sqrt(np.maximum(squares / count - mean**2, MIN_VARIANCE))

    def fill_linear(self, layer: nn.Linear) -> None:
        weight = self.take(layer.in_features, layer.out_features)
        layer.weight.copy_(torch.from_numpy(weight.T))
        layer.bias.copy_(torch.from_numpy(self.take(layer.out_features)))

    def fill_cell(self, cell: nn.LSTMCell) -> None:
        hidden = cell.hidden_size
        weight = self.take(cell.input_size + hidden, 4, hidden)
        bias = self.take(4, hidden).copy()
        bias[PUBLISHED_GATES.index("forget")] += 1.0
        order = [PUBLISHED_GATES.index(gate) for gate in TORCH_GATES]
        weight = weight[:, order].reshape(-1, 4 * hidden).T
        cell.weight_ih.copy_(torch.from_numpy(weight[:, : cell.input_size]))
        cell.weight_hh.copy_(torch.from_numpy(weight[:, cell.input_size :]))
        cell.bias_ih.copy_(torch.from_numpy(bias[order].reshape(-1)))
        cell.bias_hh.zero_()

    def fill_log_std(self, network: ActorCritic) -> None:
        assert network.log_std is not None
        network.log_std.copy_(torch.from_numpy(self.take(network.action_dim)))


def _filters_size(obs_dim: int) -> int:
    return 3 + 2 * obs_dim + 1


def _layers_size(*sizes: int) -> int:
    return sum((a + 1) * b for a, b in itertools.pairwise(sizes))
