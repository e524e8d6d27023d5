"""Learning a reward from comparisons of trajectory fragments.

Christiano et al. (NeurIPS 2017): the chance that a fragment is preferred over another is the
logistic function of the difference of their returns. Here an oracle that knows the true rewards
compares.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from aprl.errors import ConfigError
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.trajectories import Trajectory
from aprl.rewards import RewardEnsemble, RewardNet, as_tensor
from aprl.rewards.potentials import Potential


@dataclass(frozen=True)
class Fragments:
    """`n` fragments of the same length L.

    Attributes:
        states: `(n, L + 1, ...)`.
        actions: `(n, L, ...)`.
        rewards: `(n, L)`, the true ones.
        terminated: `(n,)` bool: the episode ended for good with the fragment.
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, index: np.ndarray | slice) -> "Fragments":
        columns = (self.states, self.actions, self.rewards, self.terminated)
        return Fragments(*(column[index] for column in columns))

    def extended(self, other: "Fragments") -> "Fragments":
        """These fragments and then the others."""
        names = ("states", "actions", "rewards", "terminated")
        return Fragments(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))


def sample_fragments(
    trajectories: Sequence[Trajectory], length: int, count: int, rng: np.random.Generator
) -> Fragments:
    """Draw fragments, each start of each trajectory alike.

    Raises:
        TrajectoryError: no trajectory is as long as a fragment.
    """
    starts = np.array([max(0, len(t) - length + 1) for t in trajectories])
    if starts.sum() == 0:
        longest = max(len(t) for t in trajectories)
        raise TrajectoryError(
            f"fragments of {length} steps need longer episodes; the longest has {longest}"
        )
    which = np.searchsorted(np.cumsum(starts), rng.integers(starts.sum(), size=count), "right")
    begin = rng.integers(starts[which])
    chosen = [(trajectories[i], int(b)) for i, b in zip(which, begin, strict=True)]
    return Fragments(
        states=np.stack([t.states[b : b + length + 1] for t, b in chosen]),
        actions=np.stack([t.actions[b : b + length] for t, b in chosen]),
        rewards=np.stack([t.rewards[b : b + length] for t, b in chosen]),
        terminated=np.array([t.terminated and b + length == len(t) for t, b in chosen]),
    )


def true_returns(
    fragments: Fragments, gamma: float, potential: Potential | None = None
) -> np.ndarray:
    """Discounted returns `(n,)` of fragments, under the true reward.

    Args:
        fragments: `n` of them.
        gamma: discount.
        potential: the oracle judges as if rewards were shaped by it: what a fragment reaches
            counts too.
    """
    length = fragments.rewards.shape[1]
    returns = fragments.rewards @ gamma ** np.arange(length)
    if potential is not None:
        end = np.where(fragments.terminated, 0, potential.of(fragments.states[:, -1]))
        returns = returns + gamma**length * end - potential.of(fragments.states[:, 0])
    return np.asarray(returns)


def oracle_preferences(
    first: np.ndarray, second: np.ndarray, temperature: float, rng: np.random.Generator
) -> np.ndarray:
    """Compare returns.

    Args:
        first: `(m,)` returns.
        second: `(m,)` returns.
        temperature: in units of return; 0 prefers the better always, and either half in a tie.
        rng: decides, for a positive temperature.

    Returns:
        `(m,)` in [0, 1]: preference for the first.

    Raises:
        ConfigError: negative temperature.
    """
    if temperature < 0:
        raise ConfigError(f"temperature must be at least 0, got {temperature}")
    if temperature == 0:
        return 0.5 * (np.sign(first - second) + 1)
    chance = 1 / (1 + np.exp(np.clip((second - first) / temperature, -500, 500)))
    return (rng.random(len(chance)) < chance).astype(np.float64)


@dataclass(frozen=True)
class Comparisons:
    """Pairs of fragments and what the oracle said; entries of the three belong together."""

    first: Fragments
    second: Fragments
    preference: np.ndarray  # (m,) for the first

    def __len__(self) -> int:
        return len(self.preference)

    def extended(self, other: "Comparisons | None") -> "Comparisons":
        """These comparisons and then the others."""
        if other is None:
            return self
        return Comparisons(
            self.first.extended(other.first),
            self.second.extended(other.second),
            np.concatenate([self.preference, other.preference]),
        )


@dataclass(frozen=True)
class FitResult:
    """How a reward agrees with comparisons after training.

    Attributes:
        loss: mean cross-entropy of the last epoch, in nats.
        accuracy: share of the comparisons without a tie that it orders like the oracle.
    """

    loss: float
    accuracy: float


def fit_reward(
    net: RewardNet,
    comparisons: Comparisons,
    *,
    gamma: float,
    epochs: int,
    batch_size: int,
    lr: float,
    seed: np.random.SeedSequence,
    on_epoch: Callable[[int, float], None] | None = None,
) -> FitResult:
    """Train a reward on comparisons; members of an ensemble each see another bootstrap sample.

    Args:
        net: trained in place.
        comparisons: with the oracle's answers.
        gamma: discount of a fragment's return.
        epochs: passes over the comparisons.
        batch_size: comparisons per step.
        lr: Adam's learning rate.
        seed: of batches and bootstrap samples.
        on_epoch: told the epoch and its mean loss.
    """
    net.requires_grad_(True).train()
    members = list(net.members) if isinstance(net, RewardEnsemble) else [net]
    loss = 0.0
    for member, child in zip(members, seed.spawn(len(members)), strict=True):
        assert isinstance(member, RewardNet)
        rng = np.random.default_rng(child)
        count = len(comparisons)
        seen = rng.integers(count, size=count) if len(members) > 1 else np.arange(count)
        optimiser = torch.optim.Adam(member.parameters(), lr=lr)
        for epoch in range(epochs):
            losses = []
            for batch in np.array_split(rng.permutation(seen), max(1, count // batch_size)):
                logits = _return_difference(member, comparisons, batch, gamma)
                target = torch.as_tensor(comparisons.preference[batch])
                step_loss = binary_cross_entropy_with_logits(logits, target)
                optimiser.zero_grad()
                step_loss.backward()
                optimiser.step()
                losses.append(float(step_loss.detach()))
            loss = float(np.mean(losses))
            if on_epoch is not None:
                on_epoch(epoch, loss)
    net.eval().requires_grad_(False)
    return FitResult(loss, _accuracy(net, comparisons, gamma))


def _return_difference(
    net: RewardNet, comparisons: Comparisons, batch: np.ndarray, gamma: float
) -> torch.Tensor:
    first, second = (
        _returns(net, fragments[batch], gamma)
        for fragments in (comparisons.first, comparisons.second)
    )
    return first - second


def _returns(net: RewardNet, fragments: Fragments, gamma: float) -> torch.Tensor:
    count, length = fragments.rewards.shape
    ends = np.zeros((count, length), bool)
    ends[:, -1] = fragments.terminated
    columns = (fragments.states[:, :-1], fragments.actions, fragments.states[:, 1:], ends)
    flat = (as_tensor(c.reshape(count * length, *c.shape[2:])) for c in columns)
    discount = torch.as_tensor(gamma ** np.arange(length))
    return net(*flat).double().reshape(count, length) @ discount


@torch.no_grad()
def _accuracy(net: RewardNet, comparisons: Comparisons, gamma: float) -> float:
    decided = np.flatnonzero(comparisons.preference != 0.5)
    if len(decided) == 0:
        return float("nan")
    logits = _return_difference(net, comparisons, decided, gamma).numpy()
    return float(np.mean((logits > 0) == (comparisons.preference[decided] > 0.5)))
