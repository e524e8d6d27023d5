"""Adversarial imitation: a generator learns on the reward of a discriminator that learns with it.

GAIL (Ho and Ermon, NeurIPS 2016) and AIRL (Fu et al., ICLR 2018) are one trainer: they differ in
the discriminator's logit and in the transform that makes a reward of it (`aprl.imitation.reward`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from aprl.errors import ConfigError, DemonstrationError, unknown_name
from aprl.imitation.discriminator import Discriminator, DiscriminatorConfig
from aprl.imitation.generator import (
    find_recorder,
    log_prob_of,
    relabel_replay,
    relabel_rollout,
)
from aprl.imitation.reward import ALWAYS_POSITIVE, LearnedReward
from aprl.imitation.trajectories import Trajectory, flatten, require_fixed_horizon
from aprl.rewards import MlpRewardNet, PerceptronOptions, RewardNet, ShapedRewardNet
from aprl.rewards.potentials import MlpPotential
from aprl.training.incremental import IncrementalSession, incremental
from aprl.training.learner_state import learner_state, load_learner_state
from aprl.training.random_state import PrivateRandomState

DEFAULT_TRANSFORMS = {"gail": "softplus", "airl": "airl"}
ALGORITHMS = tuple(DEFAULT_TRANSFORMS)


@dataclass(frozen=True)
class AdversarialConfig:
    """Everything about the adversarial game that is not the generator's own."""

    algorithm: str = "gail"  # gail or airl
    reward_transform: str | None = None  # see aprl.imitation.reward; None: softplus, airl
    normalize_reward: bool = True  # by running statistics, after the transform
    round_timesteps: int | None = None  # environment steps between discriminator updates; None: one
    # rollout of an on-policy generator, 1000 steps of an off-policy one
    allow_variable_horizon: bool = False  # accept episodes of different lengths
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: an unknown name or a value out of range.
        """
        if self.algorithm not in ALGORITHMS:
            raise unknown_name("algorithm", self.algorithm, ALGORITHMS)
        if self.round_timesteps is not None and self.round_timesteps < 1:
            raise ConfigError(f"round_timesteps must be at least 1, got {self.round_timesteps}")
        self.discriminator.check()


def default_reward_net(
    algorithm: str,
    observation_space: spaces.Space,
    action_space: spaces.Space,
    gamma: float,
    *,
    hidden: Sequence[int] = (32, 32),
    spectral_norm: bool = False,
) -> RewardNet:
    """The net that is usual for an algorithm: plain for GAIL, shaped for AIRL.

    Its initial weights are drawn from PyTorch's global generator.

    Args:
        algorithm: gail or airl.
        observation_space: of the generator, before any normalisation.
        action_space: of the generator.
        gamma: the learner's discount factor, for the shaping.
        hidden: units per hidden layer.
        spectral_norm: bound the net's slope.
    """
    options: PerceptronOptions = {
        "activation": "tanh",
        "input_scaling": "running",
        "spectral_norm": spectral_norm,
        "precision": "float32",
    }
    basic = MlpRewardNet(observation_space, action_space, hidden_sizes=hidden, seed=None, **options)
    if algorithm == "gail":
        return basic
    potential = MlpPotential(observation_space, hidden, seed=None, start_at_zero=False, **options)
    return ShapedRewardNet(basic, potential, gamma)


class AdversarialTrainer:
    """Trains a generator against a discriminator.

    A round is: the generator acts, the discriminator learns to tell its transitions from the
    expert's, the transitions get their rewards, the generator learns on them. Schedules see the
    progress of the whole training.

    Args:
        generator: an on-policy algorithm of SB3 or sb3-contrib, or an off-policy one with the plain
            replay buffer, whose environment is a `TransitionRecorder` or wraps one.
        demonstrations: episodes of the expert.
        config: see `AdversarialConfig`.
        reward_net: None for `default_reward_net`.
        seed: of everything that is drawn here; the generator's weights have been drawn before.

    Attributes:
        round: rounds completed.
        statistics: of the discriminator's last round.

    Raises:
        ConfigError: parts that do not fit together.
        DemonstrationError: too few demonstrations, of other shapes, or of variable horizon.
    """

    def __init__(
        self,
        generator: BaseAlgorithm,
        demonstrations: Sequence[Trajectory],
        config: AdversarialConfig | None = None,
        reward_net: RewardNet | None = None,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        config = config or AdversarialConfig()
        config.check()
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        global_seed, net_seed, batch_seed = seed.spawn(3)
        self.config, self.generator = config, generator
        self.recorder = find_recorder(generator)
        self.random_state = PrivateRandomState(global_seed)
        gamma = float(generator.gamma)  # type: ignore[attr-defined]
        observation_space = self.recorder.observation_space
        if reward_net is None:
            with PrivateRandomState(net_seed).lent():
                reward_net = default_reward_net(
                    config.algorithm, observation_space, generator.action_space, gamma
                )
        _check_net(reward_net, observation_space, generator.action_space, gamma)
        self._horizon = self._expert_horizon(demonstrations)
        self.reward = LearnedReward(
            reward_net,
            config.reward_transform or DEFAULT_TRANSFORMS[config.algorithm],
            log_prob_of(generator) if config.algorithm == "airl" else None,
            normalize=config.normalize_reward,
            centre=self._horizon is not None,
        )
        self.discriminator = Discriminator(
            self.reward, flatten(demonstrations), config.discriminator, batch_seed
        )
        self.round_timesteps = self._round_timesteps()
        if isinstance(generator, OffPolicyAlgorithm):
            relabel_replay(generator, self.reward)
        self.round = 0
        self.statistics: dict[str, float] = {}

    def _expert_horizon(self, demonstrations: Sequence[Trajectory]) -> int | None:
        """Steps of every episode; None if they may differ."""
        if self.config.allow_variable_horizon:
            return None
        if not demonstrations:
            raise DemonstrationError("there are no demonstrations")
        lengths = [len(t) for t in demonstrations if t.complete] or [len(demonstrations[0])]
        require_fixed_horizon(lengths, "the demonstrated")
        return lengths[0]

    def _round_timesteps(self) -> int:
        generator, asked = self.generator, self.config.round_timesteps
        if isinstance(generator, OnPolicyAlgorithm):
            rollout = generator.n_steps * generator.n_envs
            if asked not in (None, rollout):
                raise ConfigError(
                    f"round_timesteps is {asked}, but a rollout of the generator has {rollout} "
                    "steps; leave it out, or change the rollout"
                )
            return rollout
        if not isinstance(generator, OffPolicyAlgorithm):
            raise ConfigError(f"{type(generator).__name__} cannot be a generator")
        return asked or 1000

    def train(
        self,
        total_timesteps: int,
        *,
        callback: BaseCallback | None = None,
        on_round: Callable[["AdversarialTrainer"], bool | None] | None = None,
        resume: bool = False,
    ) -> None:
        """Train for `total_timesteps` environment steps in all.

        Args:
            total_timesteps: of the whole training, earlier rounds included when resuming.
            callback: of the generator; starts and ends once, may stop the training.
            on_round: called after each round, when `state_dict` is valid; False stops.
            resume: go on after the rounds made so far.

        Raises:
            ConfigError: resumed towards another total.
            DemonstrationError: episodes of variable horizon.
            AprlError: the discriminator diverged.
        """
        rounds = _RoundCallback(self)
        callbacks = CallbackList([rounds] if callback is None else [rounds, callback])
        with (
            self.random_state.lent(),
            incremental(
                self.generator, total_timesteps, callbacks, resume=resume, log_interval=None
            ) as session,
        ):
            while session.running:
                session.step(self.round_timesteps)
                if session.stopped:  # in the middle of a round
                    self.recorder.discard()
                    return
                self.round += 1
                self._log(session)
                if on_round is not None and on_round(self) is False:
                    return

    def train_discriminator(self) -> np.ndarray:
        """Learn from what the generator just did; returns its rewards, in the recorder's order."""
        lengths = self.recorder.episode_lengths
        if self._horizon is not None and lengths:
            require_fixed_horizon([self._horizon, *lengths], "the expert's and the generator's")
        rollout = self.recorder.take()
        self.statistics = self.discriminator.train(rollout)
        self.reward.update(rollout)
        rewards = self.reward(rollout)
        self.statistics["reward_mean"] = float(rewards.mean())
        self.statistics["reward_std"] = float(rewards.std())
        return rewards

    def _log(self, session: IncrementalSession) -> None:
        logger = self.generator.logger
        for name, value in self.statistics.items():
            logger.record(f"discriminator/{name}", value)
        logger.record("time/rounds", self.round)
        logger.record("time/steps_per_second", session.steps_per_second)
        always_positive = self.reward.transform in ALWAYS_POSITIVE
        logger.record("discriminator/reward_always_positive", int(always_positive))
        self.generator.dump_logs()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the environment and its normaliser; valid between rounds."""
        return {
            "round": self.round,
            "statistics": dict(self.statistics),
            "generator": learner_state(self.generator),
            "reward": self.reward.state_dict(),
            "discriminator": self.discriminator.state_dict(),
            "recorder": self.recorder.state_dict(),
            "random_state": self.random_state.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a trainer made with the same arguments."""
        self.round, self.statistics = state["round"], dict(state["statistics"])
        load_learner_state(self.generator, state["generator"])
        self.reward.load_state_dict(state["reward"])
        self.discriminator.load_state_dict(state["discriminator"])
        self.recorder.load_state_dict(state["recorder"])
        self.random_state.load_state_dict(state["random_state"])


def _check_net(
    net: RewardNet, observation_space: spaces.Space, action_space: spaces.Space, gamma: float
) -> None:
    if (net.observation_space, net.action_space) != (observation_space, action_space):
        raise ConfigError("the reward net was made for other spaces than the generator's")
    for part in net.modules():
        if isinstance(part, ShapedRewardNet) and part.gamma != gamma:
            raise ConfigError(
                f"the reward net shapes with gamma {part.gamma}, the generator learns with "
                f"{gamma}; shaping is harmless only where they are equal"
            )


class _RoundCallback(BaseCallback):
    """Trains the discriminator at the end of rollouts, before the generator learns on them."""

    def __init__(self, trainer: AdversarialTrainer) -> None:
        super().__init__()
        self._trainer = trainer

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        trainer, generator = self._trainer, self._trainer.generator
        if isinstance(generator, OnPolicyAlgorithm):
            relabel_rollout(generator, self, trainer.train_discriminator())
        elif trainer.recorder.steps >= trainer.round_timesteps:
            trainer.train_discriminator()
