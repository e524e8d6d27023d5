"""When tabular MAL has seen enough: the model is at rest, and nothing unknown can be reached."""

from dataclasses import dataclass

import numpy as np

from aprl.configs.checks import require_at_least, require_within
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.model import TransitionCounts
from aprl.stackelberg.planning import Plan, backward_induction


def reaching_plan(model: FiniteMDP, targets: np.ndarray) -> Plan:
    """The policy that most probably plays one of some pairs within the horizon.

    Args:
        model: in which the plan is made.
        targets: `(S * A,)` bool, the pairs.

    Returns:
        Its values are probabilities.
    """
    transitions = np.where(targets[:, None], 0.0, model.transitions)
    return backward_induction(transitions, targets.astype(float), model.task.horizon)


@dataclass(frozen=True)
class StoppingRule:
    """Stop once the model moves by at most `eps` and no under-visited pair can be reached.

    A small step alone says little: steps shrink like 1/n whatever the error, and an agent that
    repeats itself takes no large ones. Hence the second test, whose failure tells where to go next.

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
        require_within("eps", self.eps, 0, 1)
        require_within("reach", self.reach, 0, 1, open_high=True)
        require_at_least("min_visits", self.min_visits, 0)
        require_at_least("patience", self.patience, 1)

    def at_rest(self, old: FiniteMDP | None, new: FiniteMDP, counts: TransitionCounts) -> bool:
        """Whether no row that rests on samples moved by more than `eps`; False without `old`."""
        if old is None:
            return False
        seen = counts.visits > 0
        change = np.abs(new.transitions[seen] - old.transitions[seen])
        return bool(change.size) and float(change.max()) <= self.eps

    def way_to_unexplored(self, model: FiniteMDP, counts: TransitionCounts) -> np.ndarray | None:
        """`(H, S)` actions towards under-visited pairs; None if all are out of reach."""
        if self.min_visits == 0:
            return None
        under_visited = (counts.visits < self.min_visits) & ~model.task.final_pairs
        plan = reaching_plan(model, under_visited)
        return plan.actions if plan.values[0, model.task.start] > self.reach else None
