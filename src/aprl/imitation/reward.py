"""From the discriminator's outputs to the reward that the generator learns on."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

from aprl.errors import AprlError, ConfigError, unknown_name
from aprl.imitation.trajectories import Transitions
from aprl.rewards import RewardInputs, RewardNet, RunningNorm

# With D the discriminator's probability that a transition is the expert's, logit its log-odds, and
# f the reward net's output: for GAIL logit = f, for AIRL logit = f - log pi(a | s).
Transform = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of f and logit
TRANSFORMS: dict[str, Transform] = {
    "softplus": lambda f, logit: softplus(logit),  # -log(1 - D), never negative
    "logit": lambda f, logit: logit,  # log D - log(1 - D), of either sign
    "airl": lambda f, logit: f,  # entropy is left to the learner's own bonus
    "airl_with_entropy": lambda f, logit: logit,  # f - log pi, Fu et al. (ICLR 2018)
}
ALWAYS_POSITIVE = frozenset({"softplus"})  # long episodes are good whatever was learned

LogProb = Callable[[np.ndarray, np.ndarray], torch.Tensor]  # of observations and actions, `(n,)`


def require_finite(outputs: torch.Tensor) -> None:
    """Check outputs of the reward net.

    Raises:
        AprlError: one is not finite.
    """
    if not torch.isfinite(outputs).all():
        raise AprlError(
            "the learned reward is not finite: the discriminator has diverged; lower "
            "disc_learning_rate, or set gradient_penalty or spectral_norm"
        )


class LearnedReward:
    """The one way from transitions to rewards, for rollouts as they end and replay alike.

    Args:
        net: the reward net.
        transform: one of `TRANSFORMS`.
        log_prob: log pi of the generator; None for GAIL, whose logit does without.
        normalize: scale rewards to unit standard deviation, after the transform, by running
            statistics that change in `update` only.
        centre: and shift them to mean zero, which is harmless when all episodes are equally long.

    Attributes:
        norm: the running statistics of transformed rewards.
    """

    def __init__(
        self,
        net: RewardNet,
        transform: str,
        log_prob: LogProb | None,
        normalize: bool = True,
        centre: bool = True,
    ) -> None:
        if transform not in TRANSFORMS:
            raise unknown_name("reward_transform", transform, TRANSFORMS)
        if log_prob is None and transform.startswith("airl"):
            raise ConfigError(
                f"reward_transform {transform!r} needs AIRL's discriminator; for GAIL give "
                "softplus or logit"
            )
        self.net, self.transform = net, transform
        self.normalize, self.centre = normalize, centre
        self._log_prob = log_prob
        self.norm = RunningNorm(1)

    def logits(self, inputs: RewardInputs, log_prob: torch.Tensor | None) -> torch.Tensor:
        """The discriminator's log-odds `(n,)` that transitions are the expert's."""
        output = self.net(*inputs)
        return output if log_prob is None else output - log_prob

    def log_prob(self, transitions: Transitions) -> torch.Tensor | None:
        """The generator's present log pi of transitions, `(n,)`; None for GAIL."""
        if self._log_prob is None:
            return None
        with torch.no_grad():
            return self._log_prob(transitions.obs, transitions.actions)

    def transformed(self, transitions: Transitions) -> torch.Tensor:
        """Rewards `(n,)` before normalisation.

        Raises:
            AprlError: a reward is not finite.
        """
        # AIRL's plain reward is f alone: spare the generator's forward pass.
        log_prob = None if self.transform == "airl" else self.log_prob(transitions)
        with torch.no_grad():
            output = self.net(*self.encode(transitions))
            logit = output if log_prob is None else output - log_prob
            rewards = TRANSFORMS[self.transform](output, logit)
        require_finite(rewards)
        return rewards

    def encode(self, transitions: Transitions) -> RewardInputs:
        """Transitions as the net takes them."""
        return self.net.encode(
            transitions.obs, transitions.actions, transitions.next_obs, transitions.terminated
        )

    def update(self, transitions: Transitions) -> None:
        """Let the statistics take the rewards of new transitions into account."""
        self.norm.update(self.transformed(transitions)[:, None])

    def __call__(self, transitions: Transitions) -> np.ndarray:
        """Rewards `(n,)` float32 for the learner; changes nothing."""
        rewards = self.transformed(transitions)
        if self.normalize and self.norm.count > 0:
            scale = torch.rsqrt(self.norm.var + self.norm.epsilon)
            rewards = (rewards - self.norm.mean * self.centre) * scale
        return rewards.float().numpy()

    def state_dict(self) -> dict[str, Any]:
        """Copies of the net's weights and of the statistics."""
        parts = {"net": self.net, "norm": self.norm}
        return {name: copy.deepcopy(dict(part.state_dict())) for name, part in parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.net.load_state_dict(state["net"])
        self.norm.load_state_dict(state["norm"])
