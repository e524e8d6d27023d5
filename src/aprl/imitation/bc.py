"""Behavioural cloning: a policy fitted to demonstrated actions by maximum likelihood."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.errors import ConfigError, DemonstrationError
from aprl.imitation.demonstrations import Demonstrations
from aprl.imitation.trajectories import flatten
from aprl.policies.network import ActorCriticMlp, MlpPolicy
from aprl.policies.spaces import one_hot, width

OBSERVATION_CLIP = 10.0  # standard deviations of the demonstrated observations
_STD_FLOOR = 1e-3  # of the demonstrated observations' largest component
_LEAST_SPREAD = 0.01  # of a clone's actions, relative to the spread of the demonstrated ones


@dataclass(frozen=True)
class BCConfig:
    """How a clone is fitted."""

    epochs: int = 100  # passes over the demonstrations, at most
    batch_size: int = 256  # transitions per update
    learning_rate: float = 1e-3  # of Adam
    weight_decay: float = 1e-5  # of Adam
    validation_fraction: float = 0.1  # of the transitions, held out to choose the best epoch
    patience: int = 10  # epochs without a better validation loss before it stops

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: a value out of range.
        """
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not 0 < self.learning_rate < 1:
            raise ConfigError(f"learning_rate must be in (0, 1), got {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise ConfigError(f"weight_decay must not be negative, got {self.weight_decay}")
        if not 0 < self.validation_fraction < 1:
            raise ConfigError(
                f"validation_fraction must be in (0, 1), got {self.validation_fraction}"
            )


@dataclass(frozen=True)
class Clone:
    """A fitted policy.

    Attributes:
        policy: its weights are those of the best epoch.
        train_loss: negative log-likelihood per transition, nats, by epoch.
        validation_loss: the same on the transitions held out.
        best_epoch: index into both.
    """

    policy: MlpPolicy
    train_loss: list[float]
    validation_loss: list[float]
    best_epoch: int


def fresh_policy(
    demonstrations: Demonstrations,
    seed: int | np.random.SeedSequence,
    hidden: Sequence[int] = (64, 64),
) -> MlpPolicy:
    """An untrained policy that normalises observations as the demonstrations are distributed.

    Whoever is far from where the expert ever was sees observations clipped to 10 standard
    deviations, not a scale on which the expert's own states all look the same.

    Args:
        demonstrations: their observations make the normaliser.
        seed: of the initial weights, which are orthogonal, and of the policy's actions.
        hidden: units per layer, of policy and value.
    """
    observation_space, action_space = (
        demonstrations.observation_space,
        demonstrations.action_space,
    )
    network = ActorCriticMlp(
        width(observation_space),
        width(action_space),
        policy_layers=hidden,
        value_layers=hidden,
        clip=OBSERVATION_CLIP,
        discrete=isinstance(action_space, spaces.Discrete),
    )
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    generator = torch.Generator().manual_seed(int(seed.generate_state(1)[0]))
    for tower, last_gain in ((network.policy_tower, 0.01), (network.value_tower, 1.0)):
        for index, layer in enumerate(tower):
            assert isinstance(layer, nn.Linear)
            gain = last_gain if index == len(tower) - 1 else float(np.sqrt(2))
            nn.init.orthogonal_(layer.weight, gain, generator=generator)
            nn.init.zeros_(layer.bias)
    if isinstance(observation_space, spaces.Box):
        obs = np.concatenate([t.obs for t in demonstrations.trajectories]).astype(np.float64)
        std = obs.std(axis=0)
        network.obs_mean.copy_(torch.from_numpy(obs.mean(axis=0)))
        network.obs_std.copy_(torch.from_numpy(np.maximum(std, _STD_FLOOR * max(std.max(), 1e-6))))
    return MlpPolicy(network, observation_space, action_space, seed)


def clone(
    demonstrations: Demonstrations,
    config: BCConfig | None = None,
    seed: int | np.random.SeedSequence = 0,
    hidden: Sequence[int] = (64, 64),
    on_epoch: Callable[[int, float, float], None] | None = None,
) -> Clone:
    """Fit a policy to demonstrations.

    Args:
        demonstrations: whom to clone.
        config: see `BCConfig`.
        seed: of weights, held-out transitions and batches; the same seed gives the same clone.
        hidden: units per layer.
        on_epoch: told the number of epochs done, the training and the validation loss.

    Raises:
        DemonstrationError: too few transitions for one batch and one held out.
    """
    config = config or BCConfig()
    config.check()
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    weight_seed, batch_seed = seed.spawn(2)
    policy = fresh_policy(demonstrations, weight_seed, hidden)
    network = policy.network
    obs, actions = _tensors(demonstrations)
    rng = np.random.default_rng(batch_seed)
    order = torch.from_numpy(rng.permutation(len(obs)))
    held_out = max(1, round(config.validation_fraction * len(obs)))
    train, validation = order[held_out:], order[:held_out]
    if len(train) < config.batch_size:
        raise DemonstrationError(
            f"{len(obs)} demonstrated transitions, {held_out} of them held out, are too few for "
            f"batches of {config.batch_size}; record more or lower batch_size"
        )
    optimizer = torch.optim.Adam(
        network.policy_tower.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    history: tuple[list[float], list[float]] = ([], [])
    best, best_weights = 0, {}
    fit_spread(network, obs[train], actions[train])
    for epoch in range(config.epochs):
        shuffled = train[torch.from_numpy(rng.permutation(len(train)))]
        losses = []
        for start in range(0, len(shuffled) - config.batch_size + 1, config.batch_size):
            rows = shuffled[start : start + config.batch_size]
            loss = negative_log_likelihood(network, obs[rows], actions[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        fit_spread(network, obs[train], actions[train])
        with torch.no_grad():
            held = negative_log_likelihood(network, obs[validation], actions[validation]).mean()
        history[0].append(float(np.mean(losses)))
        history[1].append(held.item())
        if on_epoch is not None:
            on_epoch(epoch + 1, history[0][-1], history[1][-1])
        if epoch == 0 or history[1][-1] < history[1][best]:
            best = epoch
            best_weights = {name: value.clone() for name, value in network.state_dict().items()}
        elif epoch - best >= config.patience:
            break
    network.load_state_dict(best_weights)
    return Clone(policy, *history, best)


def negative_log_likelihood(
    network: ActorCriticMlp, obs: torch.Tensor, actions: torch.Tensor
) -> torch.Tensor:
    """`-log pi(action | obs)` in nats, `(n,)`.

    Args:
        network: Gaussian, or over discrete actions.
        obs: `(n, obs_dim)`.
        actions: `(n, action_dim)`, or `(n,)` indices from 0.
    """
    head = network.policy(obs)
    if network.log_std is None:
        return nn.functional.cross_entropy(head, actions, reduction="none")
    normal = torch.distributions.Normal(head, network.log_std.detach().exp())
    return -normal.log_prob(actions).sum(dim=1)


@torch.no_grad()
def fit_spread(network: ActorCriticMlp, obs: torch.Tensor, actions: torch.Tensor) -> None:
    """Set a Gaussian policy's spread to the likeliest one, given its means.

    That is the root mean square of what the means are off by; for an expert who never varies, a
    hundredth of the spread of its actions over all states. Nothing is done for discrete actions.
    """
    if network.log_std is None:
        return
    residual = (actions - network.policy(obs)).square().mean(dim=0).sqrt()
    least = _LEAST_SPREAD * actions.std(dim=0, unbiased=False)
    network.log_std.copy_(torch.maximum(residual, least).clamp(min=1e-3).log())


def _tensors(demonstrations: Demonstrations) -> tuple[torch.Tensor, torch.Tensor]:
    steps = flatten(demonstrations.trajectories)
    space = demonstrations.observation_space
    rows = one_hot(steps.obs, space) if isinstance(space, spaces.Discrete) else steps.obs
    obs = torch.from_numpy(np.array(rows, dtype=np.float32))
    action_space = demonstrations.action_space
    if isinstance(action_space, spaces.Discrete):
        return obs, torch.from_numpy(steps.actions.astype(np.int64) - int(action_space.start))
    if len(action_space.shape or ()) != 1:
        raise ConfigError(f"actions must be Discrete or one-dimensional, not {action_space}")
    return obs, torch.from_numpy(np.array(steps.actions, dtype=np.float32))
