"""The Stackelberg game of model-based RL, with queries and an oracle as explicit objects.

A follower that reacts to the leader's whole strategy can be had within one episode: the leader is
first asked for its strategy, query by query and for no reward, and the follower then acts on the
answers (Gerstgrasser and Parkes, 2023). In MAL the leader is the model, asked for the next-state
distribution of every pair; in PAL it is the policy, asked for its action in every state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from aprl.errors import ConfigError
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.model import with_final_states

Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)


class Query(NamedTuple):
    """A question to the leader: what happens, or what it does, here?

    Attributes:
        state: number of the state.
        action: number of the action in a question to a model; None in one to a policy.
    """

    state: int
    action: int | None = None


class Leader(Protocol):
    """A strategy that can be asked."""

    def answer(self, query: Query) -> np.ndarray:
        """`(S,)` next-state distribution of a model; `(A,)` one-hot action of a policy."""
        ...


class Follower(Protocol[Response_co]):
    """The oracle: responds at once to the answers of a leader."""

    def respond(self, context: np.ndarray) -> Response_co:
        """The best response to the leader that gave these answers, in the order of the queries."""
        ...


def model_queries(task: Task) -> tuple[Query, ...]:
    """The query set of MAL: all pairs, final states included."""
    return tuple(Query(s, a) for s in range(task.n_states) for a in range(task.n_actions))


def policy_queries(task: Task) -> tuple[Query, ...]:
    """The query set of PAL: all states."""
    return tuple(Query(state) for state in range(task.n_states))


@dataclass(frozen=True)
class ModelLeader:
    """A leader that is committed to a model."""

    model: FiniteMDP

    def answer(self, query: Query) -> np.ndarray:
        """See `Leader.answer`."""
        if query.action is None:
            raise ConfigError(f"a model cannot tell which action is taken in state {query.state}")
        return self.model.row(query.state, query.action)


@dataclass(frozen=True)
class PolicyLeader:
    """A leader that is committed to a stationary policy.

    Attributes:
        actions: `(S,)` action numbers.
        n_actions: A.
    """

    actions: np.ndarray
    n_actions: int

    def answer(self, query: Query) -> np.ndarray:
        """See `Leader.answer`."""
        return np.eye(self.n_actions)[self.actions[query.state]]


def context_of(answers: Sequence[np.ndarray]) -> np.ndarray:
    """Answers in the order of the queries as one vector."""
    return np.concatenate(answers)


def model_from_context(task: Task, context: np.ndarray) -> FiniteMDP:
    """The model that answered all model queries; final states are absorbing whatever it said.

    Raises:
        ConfigError: a context of another length.
    """
    if context.size != task.n_pairs * task.n_states:
        raise ConfigError(
            f"a model's context has {task.n_pairs * task.n_states} entries, got {context.size}"
        )
    rows = np.array(context, dtype=np.float64).reshape(task.n_pairs, task.n_states)
    return FiniteMDP(task, with_final_states(task, rows))


@dataclass(frozen=True)
class StackelbergGame(Generic[Response]):
    """Queries and the oracle that acts on their answers.

    Attributes:
        queries: what the leader is asked, in this order.
        follower: the oracle.
    """

    queries: tuple[Query, ...]
    follower: Follower[Response]

    def ask(self, leader: Leader) -> np.ndarray:
        """The leader's answers to all queries, concatenated."""
        return context_of([leader.answer(query) for query in self.queries])

    def play(self, leader: Leader) -> Response:
        """The follower's response to what the leader commits to."""
        return self.follower.respond(self.ask(leader))
