"""Evidence that a preprocessed reward asks for what the original did, checked after the fact."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from aprl.reward_preprocessing.errors import CertificateError
from aprl.reward_preprocessing.mdp import TabularMDP, optimal_actions
from aprl.reward_preprocessing.objectives import Objective
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import RewardNet, ShapedRewardNet

TOLERANCE = 1e-9  # of the identities, relative to the largest number in them


@dataclass(frozen=True)
class Check:
    """One property and how well it holds.

    Attributes:
        name: the property.
        error: how far off it is, in units of reward unless `measure` says otherwise.
        tolerance: how far off it may be.
        measure: what the error is.
    """

    name: str
    error: float
    tolerance: float
    measure: str

    @property
    def passed(self) -> bool:
        """Whether the property holds; an error that is not a number fails."""
        return bool(self.error <= self.tolerance)


@dataclass(frozen=True)
class Certificate:
    """What was verified about a preprocessed reward.

    Attributes:
        objective: name.
        method: "exact", "reweighted" or "gradient".
        gamma: discount under which the two rewards are equivalent.
        transitions: number of transitions checked.
        objective_before: of the original reward.
        objective_after: of the preprocessed reward.
        lower_bound: no potential of the family gets below it; None where that is not known.
        checks: the properties.
    """

    objective: str
    method: str
    gamma: float
    transitions: int
    objective_before: float
    objective_after: float
    lower_bound: float | None
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def optimum_gap(self) -> float | None:
        """How far the objective may be above the best possible; None where that is not known."""
        if self.lower_bound is None:
            return None
        return max(0.0, self.objective_after - self.lower_bound)

    def require(self) -> None:
        """Check that the certificate holds.

        Raises:
            CertificateError: a check failed; the message names it.
        """
        for check in self.checks:
            if not check.passed:
                raise CertificateError(
                    f"the reward preprocessed for {self.objective} is not certified: {check.name} "
                    f"is off by {check.error:.3g} ({check.measure}), allowed is "
                    f"{check.tolerance:.3g}"
                )

    def to_json(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            **asdict(self),
            "checks": [{**asdict(check), "passed": check.passed} for check in self.checks],
            "optimum_gap": self.optimum_gap,
            "passed": self.passed,
        }

    def table(self) -> Table:
        """For the terminal."""
        title = f"{self.objective} ({self.method}), {self.transitions:,} transitions"
        table = Table(title=title, title_justify="left")
        for heading in ("property", "value", "allowed", ""):
            table.add_column(heading)
        after = f"{self.objective_before:.6f} -> {self.objective_after:.6f}"
        gap = "unknown" if self.optimum_gap is None else f"{self.optimum_gap:.1e}"
        table.add_row("objective", after, "", "")
        table.add_row("above the optimum by at most", gap, "", "")
        for check in self.checks:
            verdict = "ok" if check.passed else "FAILED"
            error = f"{check.error:.1e} ({check.measure})"
            table.add_row(check.name, error, f"{check.tolerance:.1e}", verdict)
        return table


def certify(
    original: RewardNet,
    preprocessed: ShapedRewardNet,
    transitions: Transitions,
    objective: Objective,
    *,
    method: str,
    lower_bound: float | None = None,
    mdp: TabularMDP | None = None,
) -> Certificate:
    """Check a preprocessed reward against its original, computing everything anew.

    Args:
        original: before preprocessing.
        preprocessed: after, best as it was read back from its file.
        transitions: rows to check on.
        objective: that was minimised.
        method: that was used, for the record.
        lower_bound: of the objective, where it is known.
        mdp: dynamics of a finite environment: optimal policies are then compared exactly. Without
            it, or for a discount of 1, where optimal values may be infinite, returns are compared
            trajectory by trajectory (with it, along random walks).

    Returns:
        The certificate, which may fail: see `Certificate.require`.
    """
    t, gamma, phi = transitions, preprocessed.gamma, preprocessed.potential.of
    before, after = original.rewards(t), preprocessed.rewards(t)
    phi_now, phi_next = phi(t.states), phi(t.next_states)
    size = max(1.0, *(float(np.abs(x).max()) for x in (before, phi_now, phi_next)))
    tolerance = TOLERANCE * size
    expected = before + gamma * np.where(t.terminated, 0, phi_next) - phi_now
    ended = np.ones(len(t), bool)
    at_end = preprocessed.predict(t.states, t.actions, t.next_states, ended) - (
        original.predict(t.states, t.actions, t.next_states, ended) - phi_now
    )
    values = [objective.value(rewards, t) for rewards in (before, after)]
    checks = [
        Check(
            "reward is r + gamma phi(s') - phi(s)",
            _largest(after - expected),
            tolerance,
            "largest difference",
        ),
        Check("potential of terminal states is 0", _largest(at_end), tolerance, "largest phi(s')"),
        Check(
            "objective is not worse",
            max(0.0, values[1] - values[0]),
            TOLERANCE * size,
            "increase",
        ),
    ]
    if mdp is not None and gamma < 1:
        checks += _compare_policies(mdp, original.rewards, preprocessed.rewards, phi, gamma)
    else:
        walks = t if mdp is None else mdp.walks(count=1000, steps=100)
        checks.append(_compare_returns(original, preprocessed, walks, tolerance))
    return Certificate(
        objective=objective.name,
        method=method,
        gamma=gamma,
        transitions=len(t),
        objective_before=values[0],
        objective_after=values[1],
        lower_bound=lower_bound,
        checks=tuple(checks),
    )


def _largest(differences: np.ndarray) -> float:
    return float(np.abs(differences).max(initial=0))


def _compare_policies(
    mdp: TabularMDP,
    before: Callable[[Transitions], np.ndarray],
    after: Callable[[Transitions], np.ndarray],
    phi: Callable[[np.ndarray], np.ndarray],
    gamma: float,
) -> list[Check]:
    q_before, q_after = (mdp.solve(rewards(mdp.table), gamma) for rewards in (before, after))
    possible = np.isfinite(q_before)
    possible[~mdp.has_choices] = False
    size = max(1.0, *(_largest(q[possible]) for q in (q_before, q_after)))
    potential = phi(np.arange(mdp.num_states))[:, None]
    off = np.where(possible, q_after, 0) - np.where(possible, q_before - potential, 0)
    sets = [optimal_actions(q, margin=1e-7 * size) for q in (q_before, q_after)]
    changed = (sets[0] != sets[1]).any(axis=1) & mdp.has_choices
    return [
        Check("optimal actions are the same", float(changed.sum()), 0, "states that differ"),
        Check("Q' is Q - phi", _largest(off), TOLERANCE * size, "largest difference"),
    ]


def _compare_returns(
    original: RewardNet, preprocessed: ShapedRewardNet, t: Transitions, tolerance: float
) -> Check:
    """Per trajectory, the discounted returns differ by gamma^T phi(s_T) - phi(s_0) only."""
    gamma, phi = preprocessed.gamma, preprocessed.potential.of
    first = np.flatnonzero(np.diff(t.trajectory, prepend=-1))
    last = np.append(first[1:], len(t)) - 1
    step = np.arange(len(t)) - np.repeat(first, last - first + 1)
    difference = preprocessed.rewards(t) - original.rewards(t)
    gained = np.add.reduceat(gamma**step * difference, first)
    phi_first, phi_last = phi(t.states[first]), phi(t.next_states[last])
    end = np.where(t.terminated[last], 0, gamma ** (step[last] + 1) * phi_last)
    off = gained - (end - phi_first)
    longest = int(step.max()) + 1
    steps = longest if gamma == 1 else min(longest, 1 / (1 - gamma))
    return Check(
        f"returns differ by the potential alone ({len(first)} trajectories)",
        _largest(off),
        tolerance * steps,
        "largest difference",
    )
