"""Exact tools on finite MDPs: planning, policy evaluation, occupancy. All vectorised.

Policies are arrays. Integers are actions, `(S,)` or, depending on the step, `(H, S)`; floats are
action probabilities, `(S, A)` or `(H, S, A)`.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from aprl.errors import ConfigError
from aprl.stackelberg.mdp import FiniteMDP, Matrix, Task

MOST_LISTED = 5000  # stationary policies


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal policy and its values.

    Attributes:
        actions: `(H, S)` for a finite horizon, `(S,)` for a discounted one; the least of several
            best actions.
        values: `(H + 1, S)` values with H, H - 1, ..., 0 steps to go, or `(S,)`.
    """

    actions: np.ndarray
    values: np.ndarray


def backward_induction(
    transitions: Matrix,
    rewards: np.ndarray,
    horizon: int,
    upper_bound: np.ndarray | None = None,
) -> Plan:
    """Optimal finite-horizon policy; O(horizon * non-zero transitions).

    Args:
        transitions: `(S * A, S)`.
        rewards: `(S * A,)` expected reward of each pair.
        horizon: H, steps to go at the start.
        upper_bound: `(H + 1,)`, greatest value with that many steps to go; None: no bound. Used
            by optimistic planners, whose bonuses may promise more than any world can pay.
    """
    n_states = transitions.shape[1]
    values = np.zeros((horizon + 1, n_states))
    q = np.empty((horizon, n_states, len(rewards) // n_states))
    for step in range(horizon - 1, -1, -1):
        q[step].flat = transitions @ values[step + 1] + rewards
        np.maximum.reduce(q[step], axis=1, out=values[step])
        if upper_bound is not None:
            np.minimum(values[step], upper_bound[horizon - step], out=values[step])
    return Plan(q.argmax(axis=2), values)


def best_response(model: FiniteMDP) -> Plan:
    """The exact follower: an optimal policy of a model over its task's horizon."""
    return backward_induction(model.transitions, model.expected_rewards, model.task.horizon)


def discounted_plan(model: FiniteMDP, gamma: float) -> Plan:
    """Optimal stationary policy by policy iteration, exact up to the linear solver.

    Args:
        model: the horizon is ignored.
        gamma: discount in [0, 1).

    Raises:
        ConfigError: gamma out of range.
    """
    if not 0 <= gamma < 1:
        raise ConfigError(f"gamma must be in [0, 1), got {gamma}")
    task = model.task
    rewards = model.expected_rewards
    states = np.arange(task.n_states)
    actions = rewards.reshape(task.n_states, -1).argmax(axis=1)
    while True:
        rows = states * task.n_actions + actions
        values = _solve(model.transitions[rows], rewards[rows], gamma)
        q = (rewards + gamma * (model.transitions @ values)).reshape(task.n_states, -1)
        better = q.max(axis=1) > q[states, actions] + 1e-10 * (1 + np.abs(values))
        if not better.any():
            return Plan(actions, values)
        actions = np.where(better, q.argmax(axis=1), actions)


def _solve(transitions: Matrix, rewards: np.ndarray, gamma: float) -> np.ndarray:
    if sparse.issparse(transitions):
        system = sparse.eye_array(len(rewards), format="csc") - gamma * transitions.tocsc()
        return np.asarray(linalg.spsolve(system.tocsc(), rewards))
    return np.linalg.solve(np.eye(len(rewards)) - gamma * transitions, rewards)


def action_probabilities(task: Task, policy: np.ndarray) -> np.ndarray:
    """Any policy as `(H, S, A)` probabilities, a view where possible.

    Raises:
        ConfigError: a shape that is none of those in the module's docstring.
    """
    policy = np.asarray(policy)
    horizon, states, actions = task.horizon, task.n_states, task.n_actions
    if policy.dtype.kind in "iu" and policy.shape in ((states,), (horizon, states)):
        policy = np.eye(actions)[policy]
    if policy.shape == (states, actions):
        return np.broadcast_to(policy, (horizon, states, actions))
    if policy.shape != (horizon, states, actions):
        raise ConfigError(
            f"a policy for {states} states, {actions} actions and {horizon} steps cannot have "
            f"shape {policy.shape}"
        )
    return policy


def policy_values(world: FiniteMDP, policy: np.ndarray) -> np.ndarray:
    """Exact values of a policy, `(H + 1, S)`: with H, ..., 0 steps to go."""
    task = world.task
    rewards = world.expected_rewards
    values = np.zeros((task.horizon + 1, task.n_states))
    pairs = _pairs_played(task, policy)
    if pairs is not None and pairs.ndim == 1:
        transitions, paid = world.transitions[pairs], rewards[pairs]
        for step in range(task.horizon - 1, -1, -1):
            values[step] = paid + transitions @ values[step + 1]
        return values
    probabilities = None if pairs is not None else action_probabilities(task, policy)
    for step in range(task.horizon - 1, -1, -1):
        q = rewards + world.transitions @ values[step + 1]
        if pairs is not None:
            values[step] = q[pairs[step]]
        elif probabilities is not None:
            values[step] = (probabilities[step] * q.reshape(task.n_states, -1)).sum(axis=1)
    return values


def _pairs_played(task: Task, policy: np.ndarray) -> np.ndarray | None:
    """Numbers of the pairs that a policy of actions plays, `(S,)` or `(H, S)`; None for others."""
    shapes = ((task.n_states,), (task.horizon, task.n_states))
    if policy.dtype.kind not in "iu" or policy.shape not in shapes:
        return None
    return np.arange(task.n_states) * task.n_actions + policy


def policy_return(world: FiniteMDP, policy: np.ndarray) -> float:
    """Exact expected return J of a policy from the start state, undiscounted."""
    return float(policy_values(world, policy)[0, world.task.start])


def visit_probabilities(world: FiniteMDP, policy: np.ndarray) -> np.ndarray:
    """`(H, S, A)`: probability that step h is made in a state with an action; 0 after the end."""
    task = world.task
    probabilities = action_probabilities(task, policy)
    visits = np.zeros(probabilities.shape)
    present = np.zeros(task.n_states)
    present[task.start] = 1.0
    for step in range(task.horizon):
        present = np.where(task.final, 0.0, present)
        visits[step] = present[:, None] * probabilities[step]
        present = world.transitions.T @ visits[step].ravel()
    return visits


def occupancy(world: FiniteMDP, policy: np.ndarray) -> np.ndarray:
    """`(S, A)`: how often each pair is played, as a share of the expected episode length."""
    visits = visit_probabilities(world, policy).sum(axis=0)
    return visits / visits.sum()


def expected_episode_mean(world: FiniteMDP, policy: np.ndarray, cost: np.ndarray) -> float:
    """Exact expectation of an episode's mean cost per step.

    Episodes differ in length, so this is not the cost under `occupancy`: short ones weigh as much
    as long ones.

    Args:
        world: dense transitions.
        policy: see the module's docstring.
        cost: `(S * A, S)`, cost of a transition.
    """
    task = world.task
    probabilities = action_probabilities(task, policy)
    present = np.zeros(task.n_states)
    present[task.start] = 1.0
    spent = np.zeros(task.n_states)  # cost so far, weighted by the probability of being here
    mean = 0.0
    for step in range(task.horizon):
        played = (present[:, None] * probabilities[step]).ravel()
        carried = (spent[:, None] * probabilities[step]).ravel()
        present = world.transitions.T @ played
        spent = world.transitions.T @ carried + (world.transitions * cost).T @ played
        ended = task.final if step + 1 < task.horizon else np.ones(task.n_states, dtype=bool)
        mean += float(spent[ended].sum()) / (step + 1)
        present, spent = np.where(ended, 0.0, present), np.where(ended, 0.0, spent)
    return mean


def stationary_policies(task: Task) -> np.ndarray:
    """All deterministic stationary policies, `(A ** S', S)`; actions in final states are 0.

    S' is the number of states that are not final.

    Raises:
        ConfigError: more than `MOST_LISTED` of them.
    """
    playable = np.flatnonzero(~task.final)
    count = task.n_actions ** len(playable)
    if count > MOST_LISTED:
        raise ConfigError(
            f"{task.n_actions} ** {len(playable)} stationary policies are too many to list; "
            f"{MOST_LISTED:,} are the most"
        )
    policies = np.zeros((count, task.n_states), dtype=np.int64)
    choices = itertools.product(range(task.n_actions), repeat=len(playable))
    policies[:, playable] = np.array(list(choices), dtype=np.int64)
    return policies


def best_stationary(world: FiniteMDP) -> tuple[np.ndarray, float]:
    """The best deterministic stationary policy over the horizon, and its return; by listing.

    Raises:
        ConfigError: too many policies to list.
    """
    policies = stationary_policies(world.task)
    returns = [policy_return(world, policy) for policy in policies]
    best = int(np.argmax(returns))
    return policies[best], returns[best]


def max_return(world: FiniteMDP) -> float:
    """The optimum: greatest expected return from the start state."""
    return float(best_response(world).values[0, world.task.start])
