"""How far a leader's predictions are from what happened, and from the truth."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.planning import expected_episode_mean, occupancy


class Prediction(NamedTuple):
    """One real step: the pair, the distribution that was predicted for it, and the next state."""

    pair: int
    distribution: np.ndarray
    successor: int


def l2_loss(predictions: Sequence[Prediction]) -> float:
    """Mean over the steps of the squared distance between prediction and one-hot next state."""
    distributions = np.array([p.distribution for p in predictions])
    happened = np.eye(distributions.shape[1])[[p.successor for p in predictions]]
    return float(((distributions - happened) ** 2).sum(axis=1).mean())


def kl_loss(predictions: Sequence[Prediction]) -> float:
    """KL divergence of the mean prediction of each pair from what followed it, weighted by visits.

    Both are those of one episode.
    """
    pairs = np.array([p.pair for p in predictions])
    distributions = np.array([p.distribution for p in predictions])
    happened = np.eye(distributions.shape[1])[[p.successor for p in predictions]]
    total = 0.0
    for pair in np.unique(pairs):
        here = pairs == pair
        predicted = np.maximum(distributions[here].mean(axis=0), 1e-12)
        total += here.sum() * rel_entr(happened[here].mean(axis=0), predicted).sum()
    return float(total / len(pairs))


LOSSES: dict[str, Callable[[Sequence[Prediction]], float]] = {"l2": l2_loss, "kl": kl_loss}


def expected_l2(world: FiniteMDP, model: FiniteMDP, policy: np.ndarray) -> float:
    """Exact expectation of `l2_loss` over the episodes of a policy."""
    states = np.eye(world.task.n_states)
    cost = ((model.transitions[:, None, :] - states) ** 2).sum(axis=2)
    return expected_episode_mean(world, policy, cost)


def expected_kl(world: FiniteMDP, model: FiniteMDP, policy: np.ndarray) -> float:
    """KL divergence of the model from the world under the occupancy of a policy: l(M^, mu)."""
    visits = occupancy(world, policy).ravel()
    with np.errstate(divide="ignore"):
        divergence = rel_entr(world.transitions, model.transitions).sum(axis=1)
    return float(visits[visits > 0] @ divergence[visits > 0])
