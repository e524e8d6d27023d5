"""Find the potential that makes a reward easiest to read, by the best method that applies."""

import copy
import math
from dataclasses import dataclass

from aprl.errors import ConfigError, unknown_name
from aprl.reward_preprocessing.exact import exact_applies, solve_exactly, solve_reweighted
from aprl.reward_preprocessing.gradient import (
    GradientOptions,
    OnProgress,
    descend,
    reward_scale,
)
from aprl.reward_preprocessing.objectives import Objective
from aprl.reward_preprocessing.transitions import Transitions, TransitionTable
from aprl.rewards import RewardNet, ShapedRewardNet, require_gamma
from aprl.rewards.potentials import LinearInParameters, Potential

METHODS = ("auto", "exact", "gradient")
STEPS = 2000  # of the gradient, at least


@dataclass(frozen=True)
class Preprocessed:
    """A reward that was made readable.

    Attributes:
        reward: the original, shaped by the potential that was found.
        method: "exact", "reweighted" or "gradient".
        lower_bound: of the objective over this family of potentials; None if not known.
    """

    reward: ShapedRewardNet
    method: str
    lower_bound: float | None


def default_gradient_options(
    transitions: Transitions, potential: Potential, batch_size: int = 200
) -> GradientOptions:
    """Settings that suit the data and the potential: 2000 steps, or 5 epochs where that is more."""
    whole = isinstance(transitions, TransitionTable)
    batches = 1 if whole else math.ceil(len(transitions) / batch_size)
    lr = 0.1 if isinstance(potential, LinearInParameters) else 1e-2
    return GradientOptions(max(5, math.ceil(STEPS / batches)), batch_size, lr)


def preprocess(
    model: RewardNet,
    transitions: Transitions,
    objective: Objective,
    potential: Potential,
    gamma: float,
    method: str = "auto",
    options: GradientOptions | None = None,
    on_progress: OnProgress | None = None,
) -> Preprocessed:
    """Rewrite a reward by potential shaping so that an objective becomes as small as it can be.

    Args:
        model: the reward; left as it is.
        transitions: what the objective averages over.
        objective: how readability is measured.
        potential: the family to search, at zero; it is not changed.
        gamma: discount, in (0, 1]; to undo a shaping it must be the one that was shaped with.
        method: "exact" is linear programming, for L1 objectives and potentials linear in their
            parameters; "gradient" is for all; "auto" is exact where that applies, for logarithmic
            objectives of such potentials linear programs with the gradient between them
            ("reweighted"), and the gradient otherwise.
        options: of the gradient; None chooses by data and potential.
        on_progress: told gradient steps and the best objective.

    Raises:
        ConfigError: gamma out of range, an unknown method, or one that does not apply.
        RewardError: rewards that are not finite.
    """
    require_gamma(gamma)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    applies = exact_applies(objective, potential)
    if method == "exact" and not applies:
        raise ConfigError(
            f"method=exact needs sparse_l1 or smooth_l1 and a tabular, linear or critic potential, "
            f"not {objective.name} with a {potential.kind} one; use method=auto"
        )
    rewards = model.rewards(transitions)
    potential = copy.deepcopy(potential)
    potential.fit_scale(transitions.states, reward_scale(rewards))
    if applies and method != "gradient":
        assert isinstance(potential, LinearInParameters)
        solution = solve_exactly(rewards, transitions, objective, potential, gamma)
        potential.set_coefficients(solution.coefficients)
        shaped = ShapedRewardNet(model, potential, gamma)
        return Preprocessed(shaped, "exact", solution.lower_bound)
    options = options or default_gradient_options(transitions, potential)

    def train() -> None:
        descend(rewards, transitions, objective, potential, gamma, options, on_progress)

    if method == "gradient" or not isinstance(potential, LinearInParameters):
        train()
        return Preprocessed(ShapedRewardNet(model, potential, gamma), "gradient", None)
    # Linear programs end in a corner, which a descent may leave for a better one.
    problem = (rewards, transitions, objective, potential, gamma)
    potential.set_coefficients(solve_reweighted(*problem))
    train()
    potential.set_coefficients(solve_reweighted(*problem, start=potential.coefficients()))
    return Preprocessed(ShapedRewardNet(model, potential, gamma), "reweighted", None)
