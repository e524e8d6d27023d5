"""The discriminator: a reward net trained to tell the expert's transitions from the generator's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from aprl.errors import ConfigError, DemonstrationError
from aprl.imitation.reward import LearnedReward, require_finite
from aprl.imitation.trajectories import Transitions
from aprl.rewards import RewardInputs
from aprl.training.learner_state import load_optimizer_state, optimizer_state


@dataclass(frozen=True)
class DiscriminatorConfig:
    """How the discriminator is trained."""

    batch_size: int = 512  # transitions of each side per update
    updates_per_round: int = 20  # gradient steps after each rollout
    learning_rate: float = 1e-3  # of Adam, constant
    gradient_penalty: float = 0.0  # weight of (|gradient| - 1)^2 between the sides; 0: none
    replay_rounds: int = 1  # newest rollouts that the generator's side is drawn from

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: a value out of range.
        """
        for name in ("batch_size", "updates_per_round", "replay_rounds"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not 0 < self.learning_rate < 1:
            raise ConfigError(f"disc_learning_rate must be in (0, 1), got {self.learning_rate}")
        if not self.gradient_penalty >= 0:
            raise ConfigError(f"gradient_penalty must not be negative: {self.gradient_penalty}")


class Discriminator:
    """Trains the net of a learned reward: expert 1, generator 0, binary cross-entropy.

    Args:
        reward: whose net is trained; how it makes logits is the difference of GAIL and AIRL.
        expert: transitions of the demonstrations.
        config: see `DiscriminatorConfig`.
        seed: of the draws of batches.

    Raises:
        ConfigError: the net has no weights.
        DemonstrationError: fewer demonstrated transitions than a batch.
    """

    def __init__(
        self,
        reward: LearnedReward,
        expert: Transitions,
        config: DiscriminatorConfig,
        seed: np.random.SeedSequence,
    ) -> None:
        config.check()
        if len(expert) < config.batch_size:
            raise DemonstrationError(
                f"{len(expert)} demonstrated transitions are fewer than the discriminator's batch "
                f"of {config.batch_size}; record more episodes or lower disc_batch_size"
            )
        if not list(reward.net.parameters()):
            raise ConfigError(f"{type(reward.net).__name__} has no weights to train")
        self.reward, self.config, self._expert = reward, config, expert
        self._expert_inputs = reward.encode(expert)
        # The expert's scale alone: a generator that fell over may be orders of magnitude off, and
        # on that scale nothing that the expert does could be told apart.
        reward.net.update_statistics(*self._expert_inputs)
        reward.net.requires_grad_(True)  # one that was loaded is frozen
        self._rng = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(reward.net.parameters(), lr=config.learning_rate)
        self._rollouts: list[Transitions] = []
        self._mixing = torch.Generator().manual_seed(int(self._rng.integers(2**31)))

    def train(self, rollout: Transitions) -> dict[str, float]:
        """One round of updates.

        Args:
            rollout: new transitions of the generator.

        Returns:
            Loss, accuracies, entropy (nats) and proportions over all rows of the round, each
            counted before the update that it took part in.

        Raises:
            AprlError: the net diverged.
        """
        config, reward = self.config, self.reward
        self._rollouts = [*self._rollouts, rollout][-config.replay_rounds :]
        sides = [(self._expert_inputs, reward.log_prob(self._expert))]
        generated = [(reward.encode(part), reward.log_prob(part)) for part in self._rollouts]
        sides.append(
            (
                RewardInputs(*(torch.cat(p) for p in zip(*(i for i, _ in generated), strict=True))),
                None
                if generated[0][1] is None
                else torch.cat([log_prob for _, log_prob in generated if log_prob is not None]),
            )
        )
        reward.net.train()
        logits, penalties = [], []
        for _ in range(config.updates_per_round):
            batches = [self._draw(inputs, log_prob) for inputs, log_prob in sides]
            logit = torch.cat([reward.logits(*batch) for batch in batches])
            loss = binary_cross_entropy_with_logits(logit, _labels(logit))
            if config.gradient_penalty:
                penalty = self._gradient_penalty(batches[0][0], batches[1][0])
                penalties.append(penalty.item())
                loss = loss + config.gradient_penalty * penalty
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            logits.append(logit.detach().view(2, -1))
        reward.net.eval()
        require_finite(torch.cat(logits))
        statistics = discriminator_statistics(*torch.cat(logits, dim=1))
        if penalties:
            statistics["gradient_penalty"] = float(np.mean(penalties))
        return statistics

    def _draw(
        self, inputs: RewardInputs, log_prob: torch.Tensor | None
    ) -> tuple[RewardInputs, torch.Tensor | None]:
        """A batch without repetition, or all rows with repetition if there are too few."""
        available, size = len(inputs.obs), self.config.batch_size
        rows = torch.from_numpy(self._rng.choice(available, size, replace=available < size))
        return inputs.rows(rows), None if log_prob is None else log_prob[rows]

    def _gradient_penalty(self, expert: RewardInputs, generated: RewardInputs) -> torch.Tensor:
        """Mean of (|gradient| - 1)^2 between the sides (Gulrajani et al., NeurIPS 2017)."""
        share = torch.rand(len(expert.obs), generator=self._mixing)
        mixed = []
        for ours, theirs in zip(expert, generated, strict=True):
            weight = share if ours.ndim == 1 else share[:, None]
            mixed.append((weight * ours + (1 - weight) * theirs).requires_grad_())
        output = self.reward.net(*mixed).sum()
        gradients = torch.autograd.grad(output, mixed, create_graph=True, allow_unused=True)
        parts = [g if g.ndim == 2 else g[:, None] for g in gradients if g is not None]
        if not parts:
            raise ConfigError(
                "gradient_penalty needs a reward net that is differentiable in its inputs; "
                f"{type(self.reward.net).__name__} is not: set it to 0"
            )
        return ((torch.cat(parts, dim=1).norm(dim=1) - 1) ** 2).mean()

    def state_dict(self) -> dict[str, Any]:
        """Optimiser, kept rollouts and generators; the net belongs to the learned reward."""
        return {
            "optimizer": optimizer_state(self.optimizer),
            "rollouts": [rollout.arrays() for rollout in self._rollouts],
            "rng": self._rng.bit_generator.state,
            "mixing": self._mixing.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        load_optimizer_state(self.optimizer, state["optimizer"])
        self._rollouts = [Transitions(**arrays) for arrays in state["rollouts"]]
        self._rng.bit_generator.state = state["rng"]
        self._mixing.set_state(state["mixing"])


def _labels(logits: torch.Tensor) -> torch.Tensor:
    """1 for the first half, the expert's, 0 for the second."""
    labels = torch.zeros_like(logits)
    labels[: len(logits) // 2] = 1
    return labels


def discriminator_statistics(expert: torch.Tensor, generated: torch.Tensor) -> dict[str, float]:
    """What there is to know about logits of both sides, `(n,)` each; a logit of 0 is undecided."""
    logits = torch.cat([expert, generated])
    probabilities = torch.sigmoid(logits)
    entropy = torch.distributions.Bernoulli(probs=probabilities).entropy()
    return {
        "loss": binary_cross_entropy_with_logits(logits, _labels(logits)).item(),
        "accuracy": 0.5 * ((expert > 0).float().mean() + (generated < 0).float().mean()).item(),
        "accuracy_expert": (expert > 0).float().mean().item(),
        "accuracy_generator": (generated < 0).float().mean().item(),
        "entropy": entropy.mean().item(),
        "proportion_called_expert": (logits > 0).float().mean().item(),
        "logit_expert": expert.mean().item(),
        "logit_generator": generated.mean().item(),
    }
