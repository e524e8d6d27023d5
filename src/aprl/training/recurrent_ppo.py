"""The recurrent learner: sb3-contrib's PPO on the network of the published recurrent policies."""

from typing import Any

import numpy as np
import sb3_contrib
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from aprl.configs.checks import require_between
from aprl.errors import ConfigError
from aprl.policies.network import NetworkPolicy
from aprl.policies.recurrent import ActorCriticLstm, LstmPolicy, LstmTower
from aprl.policies.spaces import width
from aprl.training.learner import (
    FrozenNormaliser,
    copy_normaliser,
    ppo_arguments,
    require_one_normaliser,
)
from aprl.training.normalize import VecNormalize
from aprl.training.ppo import torch_threads

UNITS = 128  # of the first layer and of the LSTM, as published
MAX_UNITS = 4096


class RecurrentPPO(sb3_contrib.RecurrentPPO):
    """`sb3_contrib.RecurrentPPO` that collects on one torch thread: the physics needs the cores."""

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: RolloutBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Collect `n_rollout_steps` steps of every environment; False if a callback stopped it."""
        with torch_threads(1):
            return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)


class SequencePolicy(RecurrentActorCriticPolicy):
    """sb3-contrib's policy, with one LSTM call per sequence.

    The buffer cuts sequences where episodes start, so that a start can only be the first step of
    one. sb3-contrib then goes through all steps in a Python loop.
    """

    @staticmethod
    def _process_sequence(  # type: ignore[override]
        features: torch.Tensor,
        lstm_states: tuple[torch.Tensor, torch.Tensor],
        episode_starts: torch.Tensor,
        lstm: nn.LSTM,
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        sequences = lstm_states[0].shape[1]
        starts = episode_starts.reshape(sequences, -1)
        if (starts[:, 1:] != 0).any():
            return RecurrentActorCriticPolicy._process_sequence(  # type: ignore[return-value]
                features, lstm_states, episode_starts, lstm
            )
        kept = (1.0 - starts[:, 0]).view(1, sequences, 1)
        steps = features.reshape(sequences, -1, lstm.input_size).swapaxes(0, 1)
        output, after = lstm(steps, (kept * lstm_states[0], kept * lstm_states[1]))
        return torch.flatten(output.transpose(0, 1), 0, 1), after


class _DenseLayer(BaseFeaturesExtractor):
    """A frozen normaliser and the ReLU layer before the LSTM."""

    def __init__(
        self, observation_space: spaces.Space, units: int, normaliser: dict[str, Any]
    ) -> None:
        super().__init__(observation_space, features_dim=units)
        self.normaliser = FrozenNormaliser(observation_space, **normaliser)
        self.dense = nn.Linear(width(observation_space), units)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Features `(n, units)`."""
        return torch.relu(self.dense(self.normaliser(obs)))


def recurrent_ppo_arguments(
    rl_args: dict[str, Any], batch_size: int, num_env: int
) -> dict[str, Any]:
    """As `ppo_arguments`, but `lstm_units`, the published network's width, in place of `net_arch`.

    Raises:
        ConfigError: see `ppo_arguments`.
    """
    if "net_arch" in rl_args:
        raise ConfigError(
            "rl_args entry 'net_arch' does not apply to recurrent_ppo: lstm_units does"
        )
    others = dict(rl_args)
    units = others.pop("lstm_units", UNITS)
    require_between("rl_args.lstm_units", units, 1, MAX_UNITS)
    return {"lstm_units": units, **ppo_arguments(others, batch_size, num_env)}


def make_recurrent_ppo(
    env: VecEnv,
    arguments: dict[str, Any],
    learning_rate: float | Schedule,
    seed: int,
    start: NetworkPolicy | None = None,
) -> RecurrentPPO:
    """Make the learner; see `make_ppo`."""
    arguments = dict(arguments)
    layer = hidden = arguments.pop("lstm_units", UNITS)
    size = width(env.observation_space)
    normaliser = {
        "mean": np.zeros(size, np.float32),
        "std": np.ones(size, np.float32),
        "clip": float("inf"),
    }
    if start is not None:
        if not isinstance(start, LstmPolicy):
            raise ConfigError(f"recurrent_ppo cannot go on from a {type(start).__name__}")
        require_one_normaliser(env)
        network = start.network
        layer, hidden = network.layer, network.hidden_size
        normaliser = {
            "mean": network.obs_mean.numpy(),
            "std": network.obs_std.numpy(),
            "clip": network.clip,
        }
    learner = RecurrentPPO(
        SequencePolicy,
        env,
        learning_rate=learning_rate,
        seed=seed,
        device="cpu",
        policy_kwargs={
            **arguments.pop("policy_kwargs"),
            "net_arch": [],
            "features_extractor_class": _DenseLayer,
            "features_extractor_kwargs": {"units": layer, "normaliser": normaliser},
            "share_features_extractor": False,
            "lstm_hidden_size": hidden,
        },
        **arguments,
    )
    if start is not None:
        assert isinstance(learner.policy, RecurrentActorCriticPolicy)
        _exchange(learner.policy, start.network, into_learner=True)
    return learner


def recurrent_policy_of(learner: RecurrentPPO, normaliser: VecNormalize | None) -> LstmPolicy:
    """The learner's present policy, complete with its normaliser; see `policy_of`."""
    raw = learner if normaliser is None else normaliser.venv
    policy = learner.policy
    assert isinstance(policy, RecurrentActorCriticPolicy)
    extractor = policy.pi_features_extractor
    assert isinstance(extractor, _DenseLayer)
    frozen = extractor.normaliser  # does nothing unless the learner went on from a policy
    running = normaliser if normaliser is not None and normaliser.norm_obs else None
    network = ActorCriticLstm(
        width(raw.observation_space),
        width(raw.action_space),
        layer=extractor.dense.out_features,
        hidden=policy.lstm_actor.hidden_size,
        clip=running.clip_obs if running else frozen.clip,
        discrete=isinstance(raw.action_space, spaces.Discrete),
    )
    _exchange(policy, network, into_learner=False)
    copy_normaliser(network, None if running else frozen, normaliser)
    return LstmPolicy(network, raw.observation_space, raw.action_space)


@torch.no_grad()
def _exchange(
    policy: RecurrentActorCriticPolicy, network: ActorCriticLstm, into_learner: bool
) -> None:
    """Copy all weights from our network into the learner's, or back."""
    critic = policy.lstm_critic
    assert critic is not None
    towers = (
        (policy.pi_features_extractor, policy.lstm_actor, policy.action_net, network.policy_tower),
        (policy.vf_features_extractor, critic, policy.value_net, network.value_tower),
    )
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for extractor, lstm, head, tower in towers:
        assert isinstance(extractor, _DenseLayer) and isinstance(tower, LstmTower)
        assert isinstance(head, nn.Linear)
        for layer, own in ((extractor.dense, tower.dense), (head, tower.head)):
            pairs += [(layer.weight, own.weight), (layer.bias, own.bias)]
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            pairs.append((getattr(lstm, f"{name}_l0"), getattr(tower.cell, name)))
    if network.log_std is not None:
        pairs.append((policy.log_std, network.log_std))
    for theirs, ours in pairs:
        if into_learner:
            theirs.copy_(ours)
        else:
            ours.copy_(theirs)
