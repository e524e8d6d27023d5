"""A good potential of any kind, for any objective, by gradient descent."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from aprl.errors import ConfigError
from aprl.reward_preprocessing.objectives import Objective
from aprl.reward_preprocessing.transitions import Transitions, TransitionTable
from aprl.rewards import as_tensor
from aprl.rewards.potentials import LinearInParameters, Potential

EVALUATIONS = 100  # of the whole objective during a run on mini-batches

OnProgress = Callable[[int, float], None]  # told the steps made and the best objective so far


@dataclass(frozen=True)
class GradientOptions:
    """How to descend.

    Attributes:
        epochs: passes over the data; a table of all transitions is one batch.
        batch_size: terms of the objective per step, on sampled transitions.
        lr: Adam's first learning rate, relative to the size of the rewards; it decays to zero along
            half a cosine.
        seed: of the mini-batches.
    """

    epochs: int
    batch_size: int
    lr: float
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be positive, got {self.lr!r}")

    def steps(self, transitions: Transitions) -> int:
        """Gradient steps in all."""
        if isinstance(transitions, TransitionTable):
            return self.epochs
        return self.epochs * math.ceil(len(transitions) / self.batch_size)


def descend(
    rewards: np.ndarray,
    transitions: Transitions,
    objective: Objective,
    potential: Potential,
    gamma: float,
    options: GradientOptions,
    on_progress: OnProgress | None = None,
) -> float:
    """Train a potential from where it is; it ends as the best that was seen on the way.

    Beside the potential a constant is trained, and then added to it: raising phi everywhere by c
    changes each reward by only (gamma - 1) c, which Adam would take long to find. It starts at what
    moves the median reward to zero, if that is better than nothing.

    Args:
        rewards: `(n,)` unshaped rewards.
        transitions: `n` rows.
        objective: what to minimise.
        potential: changed in place.
        gamma: discount, in (0, 1].
        options: see `GradientOptions`.
        on_progress: called now and then.

    Returns:
        The objective with the potential as it ends, never above where it began.
    """
    terms = _Terms(rewards, transitions, objective, gamma)
    constant = torch.zeros((), dtype=torch.float64, requires_grad=True)
    scale = reward_scale(rewards)
    # Parameters of a linear potential are in units of reward, weights of a network are not.
    lr = options.lr * (scale if isinstance(potential, LinearInParameters) else 1.0)
    optimiser = torch.optim.Adam(
        [
            {"params": [p for p in potential.parameters() if p.requires_grad], "lr": lr},
            {"params": [constant], "lr": options.lr * scale},
        ]
    )
    steps = options.steps(transitions)
    first_rates = [group["lr"] for group in optimiser.param_groups]
    whole = isinstance(transitions, TransitionTable)
    best = _Best(potential, constant)
    best.offer(terms.evaluate(potential, constant))
    centre = torch.full_like(constant, -float(np.median(rewards)))
    if terms.evaluate(potential, centre) < best.value:
        constant.data.copy_(centre)
    interval = 1 if whole else max(1, steps // EVALUATIONS)
    batches = _batches(len(terms), options, whole)
    for step in range(steps):
        loss = terms.mean(potential, constant, next(batches))
        if whole:
            best.offer(float(loss.detach()))
        elif step % interval == 0:
            best.offer(terms.evaluate(potential, constant))
        for group, rate in zip(optimiser.param_groups, first_rates, strict=True):
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if on_progress is not None and step % 50 == 0:
            on_progress(step, best.value)
    best.offer(terms.evaluate(potential, constant))
    best.restore()
    potential.add_constant(terms.rise(float(constant.detach())))
    if on_progress is not None:
        on_progress(steps, best.value)
    return best.value


def reward_scale(rewards: np.ndarray) -> float:
    """Size of rewards: the largest distance from their median; 1 if they are all alike."""
    return float(np.abs(rewards - np.median(rewards)).max()) or 1.0


class _Terms:
    """The terms of the objective, as tensors."""

    def __init__(
        self, rewards: np.ndarray, transitions: Transitions, objective: Objective, gamma: float
    ) -> None:
        self.rewards = torch.as_tensor(rewards, dtype=torch.float64)
        self.states = as_tensor(transitions.states)
        self.next_states = as_tensor(transitions.next_states)
        self.keep = gamma * torch.as_tensor(~transitions.terminated).double()
        self.penalty = objective.penalty
        weights, pairs = objective.weights(transitions)
        self.weights = torch.as_tensor(weights)
        self.pairs = None
        if pairs is not None:
            self.pairs = (torch.as_tensor(pairs.first).long(), torch.as_tensor(pairs.second).long())
        # A constant c of the shaped reward is a rise of phi by -c / (1 - gamma).
        self.per_constant = -1.0 if gamma == 1 else -1.0 / (1 - gamma)

    def __len__(self) -> int:
        return len(self.weights)

    def rise(self, constant: float) -> float:
        """By how much the potential rises for a trained constant."""
        return self.per_constant * constant

    def mean(
        self, potential: Potential, constant: torch.Tensor, batch: torch.Tensor | None
    ) -> torch.Tensor:
        """The objective over a batch of terms, or over all."""
        weights = self.weights if batch is None else self.weights[batch]
        if self.pairs is None:
            values = self.shaped(potential, constant, batch)
        elif batch is None:
            shaped = self.shaped(potential, constant, None)
            values = shaped[self.pairs[0]] - shaped[self.pairs[1]]
        else:
            first, second = (self.shaped(potential, constant, rows[batch]) for rows in self.pairs)
            values = first - second
        total = weights @ self.penalty(values)
        return total if batch is None else total * (self.weights.sum() / weights.sum())

    def shaped(
        self, potential: Potential, constant: torch.Tensor, rows: torch.Tensor | None
    ) -> torch.Tensor:
        """Shaped rewards of some rows, or of all."""
        columns = (self.rewards, self.states, self.next_states, self.keep)
        if rows is not None:
            columns = tuple(column[rows] for column in columns)  # type: ignore[assignment]
        reward, state, next_state, keep = columns
        change = keep * potential(next_state) - potential(state)
        return reward + change + self.per_constant * constant * (keep - 1)

    @torch.no_grad()
    def evaluate(self, potential: Potential, constant: torch.Tensor) -> float:
        """The whole objective."""
        return float(self.mean(potential, constant, None))


class _Best:
    """The best iterate seen."""

    def __init__(self, potential: Potential, constant: torch.Tensor) -> None:
        self.value = math.inf
        self._potential, self._constant = potential, constant
        self._kept: tuple[dict[str, torch.Tensor], torch.Tensor] | None = None

    def offer(self, value: float) -> None:
        if value < self.value:
            self.value = value
            trained = {n: p for n, p in self._potential.named_parameters() if p.requires_grad}
            self._kept = copy.deepcopy(
                ({n: p.data for n, p in trained.items()}, self._constant.data)
            )

    @torch.no_grad()
    def restore(self) -> None:
        assert self._kept is not None
        parameters, constant = self._kept
        for name, value in parameters.items():
            self._potential.get_parameter(name).copy_(value)
        self._constant.copy_(constant)


def _batches(count: int, options: GradientOptions, whole: bool) -> Iterator[torch.Tensor | None]:
    """Endless batches of term numbers: each epoch every term once, in a new order."""
    rng = np.random.default_rng(options.seed)
    while True:
        if whole:
            yield None
            continue
        order = torch.as_tensor(rng.permutation(count))
        yield from torch.split(order, options.batch_size)
