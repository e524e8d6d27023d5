"""The follower that best-responds at once: exact, by planning."""

from typing import Protocol

import numpy as np

from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.planning import Plan, best_response


class Oracle(Protocol):
    """A follower that answers a model, the leader's strategy, with a best response."""

    def best_response(self, model: FiniteMDP) -> np.ndarray:
        """A policy for `model`, as `aprl.stackelberg.planning` describes policies."""
        ...


class ExactOracle:
    """The planner as follower."""

    def plan(self, model: FiniteMDP) -> Plan:
        """The best response with its values."""
        return best_response(model)

    def best_response(self, model: FiniteMDP) -> np.ndarray:
        """`(H, S)` optimal actions in `model`."""
        return self.plan(model).actions
