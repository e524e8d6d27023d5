"""The best of the potentials that are linear in their parameters, by linear programming.

Minimising sum_i w_i |r_i + (A x)_i| over the coefficients x is the dual of
    maximise  r . y   subject to   A' y = 0,  -w <= y <= w,
which has as many constraints as the potential has coefficients, and bounds otherwise. HiGHS solves
it; the coefficients are the multipliers of the constraints, and r . y bounds every objective value
from below.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from aprl.errors import ConfigError
from aprl.reward_preprocessing.objectives import Objective
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards.potentials import LinearInParameters, Potential

MAX_REWEIGHTINGS = 50  # linear programs per logarithmic objective


@dataclass(frozen=True)
class ExactSolution:
    """The result of linear programming.

    Attributes:
        coefficients: `(k,)` of the potential.
        objective: its objective value.
        lower_bound: no potential of this family gets below this.
    """

    coefficients: np.ndarray
    objective: float
    lower_bound: float


def exact_applies(objective: Objective, potential: Potential) -> bool:
    """Whether linear programming finds the global optimum."""
    return not objective.logarithmic and isinstance(potential, LinearInParameters)


def solve_exactly(
    rewards: np.ndarray,
    transitions: Transitions,
    objective: Objective,
    potential: LinearInParameters,
    gamma: float,
) -> ExactSolution:
    """Find the coefficients that minimise an L1 objective.

    Args:
        rewards: `(n,)` unshaped rewards of the transitions.
        transitions: `n` rows.
        objective: one that is not logarithmic.
        potential: gives the features; it is not changed.
        gamma: discount, in (0, 1].

    Raises:
        ConfigError: the objective is logarithmic, or HiGHS finds no optimum.
    """
    if objective.logarithmic:
        raise ConfigError(
            f"{objective.name} is not convex: linear programming does not apply; use method=auto, "
            "or the objectives sparse_l1 or smooth_l1"
        )
    terms, change, weights = _linear_terms(rewards, transitions, objective, potential, gamma)
    return _least_absolute_deviations(change, terms, weights)


def solve_reweighted(
    rewards: np.ndarray,
    transitions: Transitions,
    objective: Objective,
    potential: LinearInParameters,
    gamma: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Find coefficients of a local minimum of a logarithmic objective, by reweighted L1.

    log(1 + |x|) lies below its tangent in |x|, so minimising the L1 objective with each term
    weighted by that slope, 1 / (1 + |x|), never raises the logarithmic one (Candes, Wakin and Boyd,
    J. Fourier Anal. Appl. 2008).

    Args:
        rewards: see `solve_exactly`.
        transitions: see `solve_exactly`.
        objective: a logarithmic one.
        potential: see `solve_exactly`.
        gamma: see `solve_exactly`.
        start: coefficients `(k,)` that give the first weights; None weighs all terms alike, which
            makes the L1 optimum the start.

    Returns:
        Coefficients `(k,)`, never worse than `start`, or than zeros.

    Raises:
        ConfigError: HiGHS finds no optimum.
    """
    terms, change, weights = _linear_terms(rewards, transitions, objective, potential, gamma)
    best = np.zeros(change.shape[1]) if start is None else start
    shaped = terms + change @ best
    lowest = float(weights @ objective.penalty(shaped))
    slopes = np.ones(len(terms)) if start is None else 1 / (1 + np.abs(shaped))
    for solved in range(MAX_REWEIGHTINGS):
        solution = _least_absolute_deviations(change, terms, weights * slopes)
        shaped = terms + change @ solution.coefficients
        value = float(weights @ objective.penalty(shaped))
        converged = value > lowest * (1 - 1e-6) and solved > 0
        if value < lowest:
            lowest, best = value, solution.coefficients
        if converged:
            break
        slopes = 1 / (1 + np.abs(shaped))
    return best


def _linear_terms(
    rewards: np.ndarray,
    transitions: Transitions,
    objective: Objective,
    potential: LinearInParameters,
    gamma: float,
) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray]:
    """What the objective penalises, how coefficients change it, and the weights."""
    change = shaping_matrix(transitions, potential, gamma)
    weights, pairs = objective.weights(transitions)
    if pairs is None:
        return rewards, change, weights
    terms = rewards[pairs.first] - rewards[pairs.second]
    return terms, sp.csr_matrix(change[pairs.first] - change[pairs.second]), weights


def shaping_matrix(
    transitions: Transitions, potential: LinearInParameters, gamma: float
) -> sp.csr_matrix:
    """Matrix `(n, k)` that maps coefficients to what the potential adds to each reward."""
    continues = sp.diags_array(gamma * ~transitions.terminated)
    after = sp.csr_matrix(potential.features(transitions.next_states))
    before = sp.csr_matrix(potential.features(transitions.states))
    return sp.csr_matrix(continues @ after - before)


def _least_absolute_deviations(
    change: sp.csr_matrix, terms: np.ndarray, weights: np.ndarray
) -> ExactSolution:
    """Minimise sum of weights * |terms + change @ x| over x."""
    # Columns and terms of size one suit the solver's absolute tolerances.
    norms = np.sqrt(np.asarray(change.multiply(change).sum(axis=0)).ravel())
    used = norms > 1e-12 * max(1.0, norms.max(initial=0))
    scale = float(np.abs(terms).max(initial=0)) or 1.0
    constraints = sp.csr_matrix(change[:, used] @ sp.diags_array(1 / norms[used])).T.tocsr()
    share = weights / weights.max()
    coefficients = np.zeros(change.shape[1])
    bound = float(weights @ np.abs(terms))
    if used.any():
        result = linprog(
            -terms / scale,
            A_eq=constraints,
            b_eq=np.zeros(constraints.shape[0]),
            bounds=np.column_stack([-share, share]),
            method="highs-ipm",
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        if result.status != 0:
            raise ConfigError(f"linear programming found no optimum: {result.message}")
        # scipy's multipliers are those of the minimisation of -r . y: the negative of x.
        coefficients[used] = result.eqlin.marginals * scale / norms[used]
        bound = -float(result.fun) * scale * float(weights.max())
    value = float(weights @ np.abs(terms + change @ coefficients))
    return ExactSolution(coefficients, value, bound)
