"""The learner: a PPO agent from scratch or from a saved policy, and back to a saved policy."""

import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from aprl.errors import ConfigError
from aprl.policies.network import ActorCritic, ActorCriticMlp, MlpPolicy
from aprl.policies.spaces import width
from aprl.training.normalize import VecNormalize
from aprl.training.ppo import PPO

# Names of stable-baselines 2, which older configs use, and what SB3 calls them.
_SB2_NAMES = {
    "noptepochs": "n_epochs",
    "lam": "gae_lambda",
    "cliprange": "clip_range",
    "cliprange_vf": "clip_range_vf",
}
_PPO_ARGS = frozenset(
    {
        "n_epochs",
        "gamma",
        "gae_lambda",
        "clip_range",
        "clip_range_vf",
        "normalize_advantage",
        "ent_coef",
        "vf_coef",
        "max_grad_norm",
        "target_kl",
    }
)
_FRACTIONS = ("gamma", "gae_lambda")
_NOT_NEGATIVE = ("ent_coef", "vf_coef")
_LOG_STD_RANGE = (-20, 2)  # a standard deviation of e^2 already drowns any action
_POSITIVE = ("clip_range", "clip_range_vf", "max_grad_norm", "target_kl")
_OPTIONAL = ("clip_range_vf", "target_kl")  # None switches these off
_POLICY_ARGS = frozenset({"log_std_init", "net_arch"})
DEFAULT_LAYERS = (64, 64)


def ppo_arguments(rl_args: dict[str, Any], batch_size: int, num_env: int) -> dict[str, Any]:
    """Translate `rl_args` and the batch size into SB3's constructor arguments.

    Args:
        rl_args: SB3's or stable-baselines 2's names; `nminibatches` counts minibatches per update;
            also `log_std_init` and `net_arch` of the policy.
        batch_size: environment steps per update, over all environments.
        num_env: environments.

    Raises:
        ConfigError: unknown names, or sizes that do not divide.
    """
    args: dict[str, Any] = {"n_epochs": 4, "ent_coef": 0.0}
    policy_kwargs: dict[str, Any] = {"optimizer_kwargs": {"eps": 1e-5}}
    minibatches = 4
    for name, value in rl_args.items():
        sb3_name = _SB2_NAMES.get(name, name)
        if sb3_name != name and sb3_name in rl_args:
            raise ConfigError(f"rl_args has {name!r} and {sb3_name!r}, which mean the same")
        _check_argument(name, sb3_name, value)
        if name == "nminibatches":
            minibatches = value
        elif sb3_name in _POLICY_ARGS:
            policy_kwargs[sb3_name] = value
        elif sb3_name in _PPO_ARGS:
            args[sb3_name] = value
        else:
            known = sorted(_PPO_ARGS | _POLICY_ARGS | {"nminibatches"})
            raise ConfigError(f"unknown rl_args entry {name!r}; known: {', '.join(known)}")
    if batch_size % num_env:
        raise ConfigError(f"batch_size {batch_size} is not a multiple of num_env {num_env}")
    if type(minibatches) is not int or minibatches < 1 or batch_size % minibatches:
        raise ConfigError(f"nminibatches {minibatches!r} does not divide batch_size {batch_size}")
    if batch_size == minibatches and args.get("normalize_advantage", True):
        raise ConfigError(
            f"batch_size {batch_size} over {minibatches} minibatches leaves one step each, whose "
            "advantage cannot be normalised; give a larger batch_size or fewer nminibatches"
        )
    # As in stable-baselines 2, the value function is clipped like the policy unless told otherwise.
    args.setdefault("clip_range_vf", args.get("clip_range", 0.2))
    return {
        "n_steps": batch_size // num_env,
        "batch_size": batch_size // minibatches,
        "policy_kwargs": policy_kwargs,
        **args,
    }


def _check_argument(name: str, sb3_name: str, value: Any) -> None:
    """Refuse a value that SB3 would fail on late, or train nonsense with."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    whole = number and isinstance(value, int) and value >= 1
    if sb3_name == "n_epochs":
        fits, expected = whole, "a whole number of at least 1"
    elif sb3_name == "normalize_advantage":
        fits, expected = isinstance(value, bool), "True or False"
    elif sb3_name == "net_arch":
        fits, expected = _is_net_arch(value), "a list of layer sizes, or one each for pi and vf"
    elif sb3_name in _FRACTIONS:
        fits, expected = number and 0 <= value <= 1, "a number in [0, 1]"
    elif sb3_name in _NOT_NEGATIVE:
        fits, expected = number and value >= 0, "a number of at least 0"
    elif sb3_name == "log_std_init":
        low, high = _LOG_STD_RANGE
        fits, expected = number and low <= value <= high, f"a number in [{low}, {high}]"
    elif sb3_name in _POSITIVE:
        fits, expected = number and value > 0, "a number above 0"
        if sb3_name in _OPTIONAL:
            fits, expected = fits or value is None, f"{expected}, or None"
    elif sb3_name in _PPO_ARGS | _POLICY_ARGS:
        fits, expected = number, "a number"
    else:
        return
    if not fits:
        raise ConfigError(f"rl_args entry {name!r} must be {expected}, got {value!r}")


def _is_net_arch(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"pi", "vf"} and not any(
            isinstance(layers, dict) or not _is_net_arch(layers) for layers in value.values()
        )
    return isinstance(value, list | tuple) and all(type(n) is int and n >= 1 for n in value)


class FrozenNormaliser(BaseFeaturesExtractor):
    """Normalise observations as a loaded policy does; never updated while it is fine-tuned.

    Args:
        observation_space: Box `(d,)` or Discrete (one-hot).
        mean: `(d,)` float32.
        std: `(d,)` float32.
        clip: bound of a normalised observation, in standard deviations.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self, observation_space: spaces.Space, mean: np.ndarray, std: np.ndarray, clip: float
    ) -> None:
        super().__init__(observation_space, features_dim=width(observation_space))
        self.register_buffer("mean", torch.tensor(mean))  # a copy: the arrays are a policy's own
        self.register_buffer("std", torch.tensor(std))
        self.clip = clip

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """Normalised observations `(n, d)`."""
        flat = obs.flatten(start_dim=1)
        return flat.sub(self.mean).div_(self.std).clamp_(-self.clip, self.clip)


def require_one_normaliser(env: VecEnv) -> None:
    """Refuse an environment that normalises observations, for a policy that does so itself.

    Raises:
        ConfigError: it does.
    """
    if isinstance(env, VecNormalize) and env.norm_obs:
        raise ConfigError(
            "a loaded policy normalises observations itself; the environment must not (norm_obs)"
        )


def make_ppo(
    env: VecEnv,
    arguments: dict[str, Any],
    learning_rate: float | Schedule,
    seed: int,
    start: MlpPolicy | None = None,
) -> PPO:
    """Make the learner.

    Args:
        env: what it trains on.
        arguments: from `ppo_arguments`.
        learning_rate: constant, or a function of the progress that remains (1 to 0).
        seed: of initial weights, minibatches and exploration.
        start: fine-tune these weights; its normaliser goes on inside the learner, frozen. Its
            value head starts in the learner's units of normalised reward.
    """
    arguments = dict(arguments)
    policy_kwargs = {"activation_fn": nn.Tanh, **arguments.pop("policy_kwargs")}
    if start is not None:
        require_one_normaliser(env)
        network = start.network
        policy_kwargs["net_arch"] = {"pi": network.policy_layers, "vf": network.value_layers}
        policy_kwargs["features_extractor_class"] = FrozenNormaliser
        policy_kwargs["features_extractor_kwargs"] = {
            "mean": network.obs_mean.numpy(),
            "std": network.obs_std.numpy(),
            "clip": network.clip,
        }
    else:
        policy_kwargs.setdefault("net_arch", list(DEFAULT_LAYERS))
    learner = PPO(
        "MlpPolicy",
        env,
        learning_rate=learning_rate,
        seed=seed,
        device="cpu",
        policy_kwargs=policy_kwargs,
        **arguments,
    )
    if start is not None:
        _copy_weights(start.network, learner)
    return learner


def _linear_layers(tower: nn.Module) -> list[nn.Linear]:
    return [layer for layer in tower.modules() if isinstance(layer, nn.Linear)]


def _learner_towers(learner: PPO) -> tuple[list[nn.Linear], list[nn.Linear]]:
    policy = learner.policy
    extractor = policy.mlp_extractor
    action, value = policy.action_net, policy.value_net
    assert isinstance(action, nn.Linear) and isinstance(value, nn.Linear)
    return (
        [*_linear_layers(extractor.policy_net), action],
        [*_linear_layers(extractor.value_net), value],
    )


@torch.no_grad()
def _copy_weights(network: ActorCriticMlp, learner: PPO) -> None:
    towers = (network.policy_tower, network.value_tower)
    for source, target in zip(towers, _learner_towers(learner), strict=True):
        for layer, theirs in zip(_linear_layers(source), target, strict=True):
            theirs.weight.copy_(layer.weight)
            theirs.bias.copy_(layer.bias)
    if network.log_std is not None:
        learner.policy.log_std.copy_(network.log_std)


@torch.no_grad()
def policy_of(learner: PPO, normaliser: VecNormalize | None) -> MlpPolicy:
    """The learner's present policy, complete with its normaliser, as something that plays.

    Args:
        learner: its weights are copied.
        normaliser: whose running observation statistics and reward scale are copied in; None if
            the environment does not normalise.
    """
    raw = learner if normaliser is None else normaliser.venv
    observation_space, action_space = raw.observation_space, raw.action_space
    policy_tower, value_tower = _learner_towers(learner)
    extractor = learner.policy.features_extractor
    frozen = extractor if isinstance(extractor, FrozenNormaliser) else None
    running = normaliser if normaliser is not None and normaliser.norm_obs else None
    clip = frozen.clip if frozen else running.clip_obs if running else float("inf")
    network = ActorCriticMlp(
        width(observation_space),
        width(action_space),
        policy_layers=[layer.out_features for layer in policy_tower[:-1]],
        value_layers=[layer.out_features for layer in value_tower[:-1]],
        clip=clip,
        discrete=isinstance(action_space, spaces.Discrete),
    )
    for source, target in (
        (policy_tower, network.policy_tower),
        (value_tower, network.value_tower),
    ):
        for layer, ours in zip(source, _linear_layers(target), strict=True):
            ours.weight.copy_(layer.weight)
            ours.bias.copy_(layer.bias)
    if network.log_std is not None:
        network.log_std.copy_(learner.policy.log_std)
    copy_normaliser(network, frozen, normaliser)
    return MlpPolicy(network, observation_space, action_space)


@torch.no_grad()
def copy_normaliser(
    network: ActorCritic, frozen: FrozenNormaliser | None, normaliser: VecNormalize | None
) -> None:
    """Give a network the normaliser that the learner trained with, and the scale of its rewards.

    Args:
        network: what will play.
        frozen: of a policy that was fine-tuned; it goes before the running one.
        normaliser: of the environment.
    """
    if frozen is not None:
        network.obs_mean.copy_(frozen.mean)
        network.obs_std.copy_(frozen.std)
    elif normaliser is not None and normaliser.norm_obs:
        network.obs_mean.copy_(torch.as_tensor(normaliser.observation_moments.mean))
        network.obs_std.copy_(torch.as_tensor(normaliser.observation_std()))
    if normaliser is not None and normaliser.norm_reward:
        scale = np.sqrt(normaliser.ret_rms.var + normaliser.epsilon)
        network.value_std.copy_(torch.as_tensor(scale))
