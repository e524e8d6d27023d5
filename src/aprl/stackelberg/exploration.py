"""What tabular MAL believes of pairs it has never tried, and how that makes it explore.

Each rule answers two questions: which model the leader commits to (its follower's best response is
the policy that is deployed), and which policy collects the next samples.
"""

from typing import Protocol

import numpy as np

from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.model import TransitionCounts, random_rows, uniform_rows
from aprl.stackelberg.oracle import ExactOracle, Oracle
from aprl.stackelberg.planning import backward_induction


class UnseenRule(Protocol):
    """A way to handle pairs without samples.

    Attributes:
        needs_planner: the exploring policy is planned with bonuses, which a learned follower
            cannot be told of.
    """

    needs_planner: bool

    def leader_model(self, counts: TransitionCounts, rng: np.random.Generator) -> FiniteMDP:
        """The model that the leader commits to."""
        ...

    def exploring_policy(
        self,
        counts: TransitionCounts,
        model: FiniteMDP,
        response: np.ndarray,
        oracle: Oracle,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The policy that collects the next samples; `response` is the follower's to `model`."""
        ...


class _PlayTheResponse:
    """Explores with the follower's best response to the leader's model, as first proposed."""

    needs_planner = False

    def exploring_policy(
        self,
        counts: TransitionCounts,
        model: FiniteMDP,
        response: np.ndarray,
        oracle: Oracle,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The response itself."""
        return response


class FixedRows(_PlayTheResponse):
    """Unseen rows are drawn at random once and for all: the original proposal.

    A row that makes its pair look bad is never corrected, since nobody goes there.
    """

    def __init__(self) -> None:
        self._rows: np.ndarray | None = None

    def leader_model(self, counts: TransitionCounts, rng: np.random.Generator) -> FiniteMDP:
        """See `UnseenRule`."""
        if self._rows is None:
            self._rows = random_rows(counts.task, rng)
        return counts.mean_model(self._rows)


class RedrawnRows(_PlayTheResponse):
    """Unseen rows are drawn anew in each iteration, so that no bad belief lasts."""

    def leader_model(self, counts: TransitionCounts, rng: np.random.Generator) -> FiniteMDP:
        """See `UnseenRule`."""
        return counts.mean_model(random_rows(counts.task, rng))


class _UniformRows:
    """The leader commits to the mean of what it might draw: unseen rows are uniform."""

    def leader_model(self, counts: TransitionCounts, rng: np.random.Generator) -> FiniteMDP:
        """See `UnseenRule`."""
        return counts.mean_model(uniform_rows(counts.task))


class PosteriorSampling(_UniformRows):
    """Explores with the response to a model drawn from the Dirichlet posterior (Strens, 2000).

    Args:
        prior: pseudo-count of every transition.
    """

    needs_planner = False

    def __init__(self, prior: float = 1.0) -> None:
        self.prior = prior

    def exploring_policy(
        self,
        counts: TransitionCounts,
        model: FiniteMDP,
        response: np.ndarray,
        oracle: Oracle,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """See `UnseenRule`."""
        return oracle.best_response(counts.posterior_draw(self.prior, rng))


class _Bonuses(_UniformRows):
    """Explores with a plan that is paid a bonus for uncertain pairs; unseen ones promise most."""

    needs_planner = True

    def bonuses(
        self, counts: TransitionCounts, model: FiniteMDP, oracle: ExactOracle
    ) -> np.ndarray:
        """`(S * A,)`, in units of reward; those of unseen pairs are not used."""
        raise NotImplementedError

    def exploring_policy(
        self,
        counts: TransitionCounts,
        model: FiniteMDP,
        response: np.ndarray,
        oracle: Oracle,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """See `UnseenRule`."""
        assert isinstance(oracle, ExactOracle)  # `TabularMal` refuses others
        task = model.task
        bound = task.reward_bounds[1] * np.arange(task.horizon + 1)
        bonus = np.where(counts.unseen, bound[-1], self.bonuses(counts, model, oracle))
        bonus[task.final_pairs] = 0.0
        rewards = model.expected_rewards + bonus
        return backward_induction(model.transitions, rewards, task.horizon, bound).actions


class OptimisticRows(_Bonuses):
    """Unseen pairs promise the greatest reward for ever: R-max (Brafman and Tennenholtz, 2002).

    One sample makes a pair known, which in R-max is the parameter m = 1.
    """

    def bonuses(
        self, counts: TransitionCounts, model: FiniteMDP, oracle: ExactOracle
    ) -> np.ndarray:
        """None for pairs that were tried."""
        return np.zeros(model.task.n_pairs)


class CountBonus(_Bonuses):
    """A bonus of `scale * reward range / sqrt(visits)` (Strehl and Littman, 2008).

    Args:
        scale: 0 or more.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def bonuses(
        self, counts: TransitionCounts, model: FiniteMDP, oracle: ExactOracle
    ) -> np.ndarray:
        """See the class."""
        least, greatest = model.task.reward_bounds
        return self.scale * (greatest - least) / np.sqrt(np.maximum(counts.visits, 1))


class ValueBonus(_Bonuses):
    """A bonus as large as the value that is at stake: the default.

    `scale * (sd / sqrt(visits) + range / visits)`, where sd and range are those of reward plus
    value of the next state, under the leader's own model. A pair whose outcome hardly matters is
    left alone, one that decides between a rich and a poor part of the world is tried again. The
    shape is that of Bernstein bonuses (Azar et al., 2017), the constants are not: without their
    factors of horizon and log(1 / delta) it needs far fewer samples, and proves less.

    Args:
        scale: 0 or more.
    """

    def __init__(self, scale: float = 2.0) -> None:
        self.scale = scale

    def bonuses(
        self, counts: TransitionCounts, model: FiniteMDP, oracle: ExactOracle
    ) -> np.ndarray:
        """See the class."""
        task = model.task
        values = oracle.plan(model).values[min(1, task.horizon)]
        outcomes = task.rewards + values
        prior = 1.0 / task.n_states
        rows = (counts.counts + prior) / (counts.visits + 1)[:, None]
        mean = np.einsum("ij,ij->i", rows, outcomes)
        variance = np.einsum("ij,ij->i", rows, (outcomes - mean[:, None]) ** 2)
        visits = np.maximum(counts.visits, 1)
        return self.scale * (np.sqrt(variance / visits) + np.ptp(outcomes, axis=1) / visits)
