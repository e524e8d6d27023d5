"""One method, one world, one seed, one budget of real samples: every method is run by this."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from aprl.errors import ConfigError
from aprl.stackelberg.envs import BudgetSpent, CountedEnv, FiniteMDPEnv
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.planning import max_return, policy_return

SOLVED_WITHIN = 0.01  # of the optimum

Report = Callable[[np.ndarray], None]


class Method(Protocol):
    """Something that learns a policy from real samples."""

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> Any:
        """Learn until done, or until `env` raises `BudgetSpent`.

        Args:
            env: the only access to the true world.
            seed: of everything that the method draws.
            report: to be told the policy that would be deployed, whenever it changes.
        """
        ...


@dataclass(frozen=True, eq=False)
class Run:
    """A learning curve, exact: returns are computed, not sampled.

    Attributes:
        samples: `(n,)` real samples taken when each policy was reported; ascending.
        returns: `(n,)` exact expected return of that policy in the true world.
        policy: the last one, as it was reported.
        optimum: greatest possible return.
        used: real samples taken in all.
        budget: real samples allowed.
        wall_time_s: of learning and exact evaluation.
        result: what `Method.learn` returned; None if `BudgetSpent` ended it.
    """

    samples: np.ndarray
    returns: np.ndarray
    policy: np.ndarray
    optimum: float
    used: int
    budget: int
    wall_time_s: float
    result: Any = None

    @property
    def near_optimal(self) -> np.ndarray:
        """`(n,)` bool: return within 1 % of the optimum."""
        return self.returns >= self.optimum - SOLVED_WITHIN * abs(self.optimum)

    @property
    def solved_at(self) -> float:
        """Samples from which on every policy is within 1 % of the optimum; infinite if never."""
        wrong = np.flatnonzero(~self.near_optimal)
        if not wrong.size:
            return float(self.samples[0])
        last = int(wrong[-1])
        return float(self.samples[last + 1]) if last + 1 < len(self.samples) else np.inf

    @property
    def final_return(self) -> float:
        """Exact return of the last policy."""
        return float(self.returns[-1])

    def returns_at(self, samples: np.ndarray) -> np.ndarray:
        """Return of the policy that was deployed after so many samples; NaN before the first."""
        index = np.searchsorted(self.samples, samples, side="right") - 1
        return np.where(index >= 0, self.returns[np.maximum(index, 0)], np.nan)


def check_budget(budget: int, horizon: int) -> None:
    """Check that an episode fits into the budget.

    Raises:
        ConfigError: it does not.
    """
    if budget < horizon:
        raise ConfigError(
            f"a horizon of {horizon} steps is unreachable with a budget of {budget} samples; "
            "raise budget or lower horizon"
        )


def run_method(
    method: Method,
    world: FiniteMDP,
    budget: int,
    seed: int | np.random.SeedSequence,
    env: gym.Env[Any, Any] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Run:
    """Let a method learn, and evaluate exactly every policy that it reports.

    Args:
        method: what learns.
        world: the true one; only its task is shown to the method.
        budget: real samples, at least the world's horizon.
        seed: of the world's transitions and of the method.
        env: what to step instead of a fresh `FiniteMDPEnv` of the world, as a test's spy does.
        on_progress: told the number of samples at each report.

    Raises:
        ConfigError: a budget in which no episode fits.
    """
    check_budget(budget, world.task.horizon)
    sequence = np.random.SeedSequence(seed) if isinstance(seed, int) else seed
    env_seed, method_seed = sequence.spawn(2)
    inner = FiniteMDPEnv(world, env_seed) if env is None else env
    counted = CountedEnv(inner, world.task, budget)
    samples: list[int] = []
    returns: list[float] = []
    known: dict[bytes, float] = {}
    deployed = np.zeros(world.task.n_states, dtype=np.int64)

    def report(policy: np.ndarray) -> None:
        nonlocal deployed
        deployed = policy.copy()
        key = policy.tobytes()
        if key not in known:
            known[key] = policy_return(world, policy)
        if samples and samples[-1] == counted.samples:
            returns[-1] = known[key]
        else:
            samples.append(counted.samples)
            returns.append(known[key])
        if on_progress is not None:
            on_progress(counted.samples)

    started = time.monotonic()
    result = None
    with contextlib.suppress(BudgetSpent):
        result = method.learn(counted, method_seed, report)
    return Run(
        np.array(samples),
        np.array(returns),
        deployed,
        max_return(world),
        counted.samples,
        budget,
        time.monotonic() - started,
        result,
    )
