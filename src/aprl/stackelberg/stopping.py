"""When tabular MAL has seen enough: the model is at rest, and nothing unknown can be reached."""

from dataclasses import dataclass

import numpy as np

from aprl.errors import ConfigError
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.model import TransitionCounts
from aprl.stackelberg.planning import backward_induction


def reach_probability(model: FiniteMDP, targets: np.ndarray) -> float:
    """Greatest probability, over all policies, of playing one of some pairs within the horizon.

    Args:
        model: in which the plan is made.
        targets: `(S * A,)` bool, the pairs.
    """
    transitions = np.where(targets[:, None], 0.0, model.transitions)
    plan = backward_induction(transitions, targets.astype(float), model.task.horizon)
    return float(plan.values[0, model.task.start])


@dataclass(frozen=True)
class StoppingRule:
    """Stop once the model moves by at most `eps` and no under-visited pair can be reached.

    A small step alone says little: steps shrink like 1/n whatever the error, and an agent that
    repeats itself takes no large ones. Hence the second test.

    Attributes:
        eps: greatest change of a transition probability per iteration, in [0, 1].
        min_visits: samples below which a pair is under-visited; 0 switches the second test off,
            which is the rule as first proposed.
        reach: probability up to which a pair counts as out of reach, in [0, 1).
        patience: iterations in a row that must pass.

    Raises:
        ConfigError: a value out of range.
    """

    eps: float = 0.05
    min_visits: int = 10
    reach: float = 0.05
    patience: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1:
            raise ConfigError(f"eps must be in [0, 1], got {self.eps!r}")
        if not 0 <= self.reach < 1:
            raise ConfigError(f"reach must be in [0, 1), got {self.reach!r}")
        for name, least in (("min_visits", 0), ("patience", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)!r}")

    def at_rest(self, old: FiniteMDP | None, new: FiniteMDP, counts: TransitionCounts) -> bool:
        """Whether no row that rests on samples moved by more than `eps`; False without `old`."""
        if old is None:
            return False
        seen = counts.visits > 0
        change = np.abs(new.transitions[seen] - old.transitions[seen])
        return bool(change.size) and float(change.max()) <= self.eps

    def explored(self, model: FiniteMDP, counts: TransitionCounts) -> bool:
        """Whether no plan reaches an under-visited pair with more than probability `reach`."""
        if self.min_visits == 0:
            return True
        under_visited = (counts.visits < self.min_visits) & ~model.task.final_pairs
        return reach_probability(model, under_visited) <= self.reach
