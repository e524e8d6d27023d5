"""The leader of tabular MAL: pooled counts of transitions, and models built from them."""

import numpy as np
from scipy import sparse

from aprl.errors import ConfigError
from aprl.stackelberg.mdp import FiniteMDP, Task


class TransitionCounts:
    """How often each transition was seen, pooled over all samples.

    Args:
        task: dense; a world that is stored sparsely is too large to learn as a table.

    Attributes:
        task: as given.
        counts: `(S * A, S)` transitions seen.
        visits: `(S * A,)` samples of each pair.

    Raises:
        ConfigError: a sparse task.
    """

    def __init__(self, task: Task) -> None:
        if sparse.issparse(task.rewards):
            raise ConfigError(
                f"a world of {task.n_states} states and {task.n_actions} actions is too large to "
                "be learned as a table (a million triples at most); it can only be planned in"
            )
        self.task = task
        self.counts = np.zeros((task.n_pairs, task.n_states))
        self.visits = np.zeros(task.n_pairs)

    def add(self, pair: int, successor: int) -> None:
        """Count one transition."""
        self.counts[pair, successor] += 1
        self.visits[pair] += 1

    def add_batch(self, pairs: np.ndarray, successors: np.ndarray) -> None:
        """Count a batch of transitions, integer arrays of the same length."""
        np.add.at(self.counts, (pairs, successors), 1)
        np.add.at(self.visits, pairs, 1)

    @property
    def unseen(self) -> np.ndarray:
        """`(S * A,)` bool: pairs that were never sampled; pairs of final states are not among."""
        return (self.visits == 0) & ~self.task.final_pairs

    def mean_model(self, unseen_rows: np.ndarray) -> FiniteMDP:
        """The empirical mean of all samples, exactly counts / visits where there are any.

        Args:
            unseen_rows: `(S * A, S)` distributions, used for pairs without samples.
        """
        rows = np.array(unseen_rows)
        seen = self.visits > 0
        rows[seen] = self.counts[seen] / self.visits[seen, None]
        return FiniteMDP(self.task, with_final_states(self.task, rows))

    def posterior_draw(self, prior: float, rng: np.random.Generator) -> FiniteMDP:
        """A model drawn from the posterior of independent symmetric Dirichlet rows.

        Args:
            prior: pseudo-count of every transition, above 0.
            rng: advanced.
        """
        rows = normalised_gamma(rng.standard_gamma(self.counts + prior))
        return FiniteMDP(self.task, with_final_states(self.task, rows))


def with_final_states(task: Task, rows: np.ndarray) -> np.ndarray:
    """Make final states absorbing, in place; which states are final is known to all."""
    rows[task.final_pairs] = 0.0
    pairs = np.flatnonzero(task.final_pairs)
    rows[pairs, pairs // task.n_actions] = 1.0
    return rows


def uniform_rows(task: Task) -> np.ndarray:
    """`(S * A, S)`: every next state equally likely."""
    return np.full((task.n_pairs, task.n_states), 1.0 / task.n_states)


def random_rows(
    task: Task, rng: np.random.Generator, concentration: float | np.ndarray = 1.0
) -> np.ndarray:
    """`(S * A, S)`: each row drawn from a symmetric Dirichlet distribution.

    Args:
        task: for the shape.
        rng: advanced.
        concentration: parameter of the distribution; or `(S * A,)`, one for each row.
    """
    shape = np.broadcast_to(np.reshape(concentration, (-1, 1)), (task.n_pairs, task.n_states))
    return normalised_gamma(rng.standard_gamma(shape))


def normalised_gamma(draws: np.ndarray) -> np.ndarray:
    """Rows of Gamma draws as distributions; a row of zeros (underflow) becomes uniform."""
    sums = draws.sum(axis=-1, keepdims=True)
    uniform = 1.0 / draws.shape[-1]
    return np.where(sums > 0, draws / np.where(sums > 0, sums, 1.0), uniform)


def random_model(task: Task, rng: np.random.Generator) -> FiniteMDP:
    """A model that nobody has seen samples for: every row Dirichlet(1, ..., 1)."""
    return FiniteMDP(task, with_final_states(task, random_rows(task, rng)))
