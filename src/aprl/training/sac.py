"""The off-policy learner: Stable-Baselines3's SAC, for many environments and whole runs."""

from typing import Any

import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from aprl.errors import ConfigError
from aprl.policies.network import NetworkPolicy
from aprl.policies.spaces import width
from aprl.policies.squashed import SquashedActorCritic, SquashedPolicy
from aprl.training.learner import FrozenNormaliser, copy_normaliser, require_one_normaliser
from aprl.training.normalize import VecNormalize

_SAC_ARGS = frozenset(
    {
        "gamma",
        "tau",
        "ent_coef",
        "target_entropy",
        "buffer_size",
        "learning_starts",
        "gradient_steps",
        "minibatch_size",
        "net_arch",
    }
)
DEFAULT_LAYERS = (256, 256)
STEPS_PER_GRADIENT_STEP = 32  # environment steps, unless rl_args says otherwise


def sac_arguments(rl_args: dict[str, Any], batch_size: int, num_env: int) -> dict[str, Any]:
    """Translate `rl_args` and the batch size into SB3's constructor arguments.

    Args:
        rl_args: SB3's names; `minibatch_size` is the replayed batch, `gradient_steps` how many of
            them follow each `batch_size` environment steps; also `net_arch`.
        batch_size: environment steps between updates, over all environments.
        num_env: environments.

    Raises:
        ConfigError: unknown names, or values out of range.
    """
    for name, value in rl_args.items():
        if name not in _SAC_ARGS:
            known = ", ".join(sorted(_SAC_ARGS))
            raise ConfigError(f"unknown rl_args entry {name!r} of sac; known: {known}")
        _check_argument(name, value)
    if batch_size % num_env:
        raise ConfigError(f"batch_size {batch_size} is not a multiple of num_env {num_env}")
    args: dict[str, Any] = {"buffer_size": 300_000, "learning_starts": 10_000, **rl_args}
    layers = list(args.pop("net_arch", DEFAULT_LAYERS))
    return {
        "train_freq": (batch_size // num_env, "step"),
        "gradient_steps": args.pop("gradient_steps", max(1, batch_size // STEPS_PER_GRADIENT_STEP)),
        "batch_size": args.pop("minibatch_size", 256),
        "policy_kwargs": {"net_arch": layers},
        **args,
    }


def _check_argument(name: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = isinstance(value, int) and number and value >= 1
    if name in ("buffer_size", "gradient_steps", "minibatch_size"):
        fits, expected = whole, "a whole number of at least 1"
    elif name == "learning_starts":
        fits, expected = isinstance(value, int) and number and value >= 0, "a whole number"
    elif name in ("gamma", "tau"):
        fits, expected = number and 0 <= value <= 1, "a number in [0, 1]"
    elif name == "net_arch":
        fits = (
            isinstance(value, list | tuple)
            and bool(value)
            and all(type(n) is int and n >= 1 for n in value)
        )
        expected = "a list of layer sizes"
    else:  # ent_coef, target_entropy
        automatic = isinstance(value, str) and value.startswith("auto")
        fits, expected = automatic or number, "a number or 'auto'"
    if not fits:
        raise ConfigError(f"rl_args entry {name!r} must be {expected}, got {value!r}")


def make_sac(
    env: VecEnv,
    arguments: dict[str, Any],
    learning_rate: float | Schedule,
    seed: int,
    start: NetworkPolicy | None = None,
) -> stable_baselines3.SAC:
    """Make the learner.

    Args:
        env: what it trains on; continuous actions.
        arguments: from `sac_arguments`.
        learning_rate: constant, or a function of the progress that remains (1 to 0).
        seed: of initial weights, replayed batches and exploration.
        start: a policy that SAC trained, to go on from: its actor, its critics, which also become
            the target critics, and its normaliser, frozen.

    Raises:
        ConfigError: actions that are choices, or a start that SAC did not train.
    """
    if not isinstance(env.action_space, spaces.Box):
        raise ConfigError("sac needs continuous actions; this game's are choices")
    arguments = dict(arguments)
    policy_kwargs = arguments.pop("policy_kwargs")
    if start is not None:
        if not isinstance(start, SquashedPolicy):
            raise ConfigError(f"sac cannot go on from a {type(start).__name__}")
        require_one_normaliser(env)
        network = start.network
        policy_kwargs = {
            "net_arch": {"pi": network.policy_layers, "qf": network.value_layers},
            "features_extractor_class": FrozenNormaliser,
            "features_extractor_kwargs": {
                "mean": network.obs_mean.numpy(),
                "std": network.obs_std.numpy(),
                "clip": network.clip,
            },
        }
    learner = stable_baselines3.SAC(
        "MlpPolicy",
        env,
        learning_rate=learning_rate,
        seed=seed,
        device="cpu",
        policy_kwargs=policy_kwargs,
        **arguments,
    )
    if start is not None:
        _copy(_ours(start.network), _theirs(learner))
        learner.critic_target.load_state_dict(learner.critic.state_dict())
    return learner


def sac_policy_of(
    learner: stable_baselines3.SAC, normaliser: VecNormalize | None
) -> SquashedPolicy:
    """The learner's present policy, complete with its normaliser; see `policy_of`."""
    raw = learner if normaliser is None else normaliser.venv
    extractor = learner.actor.features_extractor
    frozen = extractor if isinstance(extractor, FrozenNormaliser) else None
    running = normaliser if normaliser is not None and normaliser.norm_obs else None
    actor, _, _, critic, *_ = _theirs(learner)
    network = SquashedActorCritic(
        width(raw.observation_space),
        width(raw.action_space),
        policy_layers=[layer.out_features for layer in _linear(actor)],
        value_layers=[layer.out_features for layer in _linear(critic)[:-1]],
        clip=frozen.clip if frozen else running.clip_obs if running else float("inf"),
    )
    _copy(_theirs(learner), _ours(network))
    copy_normaliser(network, frozen, normaliser)
    return SquashedPolicy(network, raw.observation_space, raw.action_space)


def _ours(network: SquashedActorCritic) -> list[nn.Module]:
    return [network.actor, network.mean_head, network.log_std_head, *network.critics]


def _theirs(learner: stable_baselines3.SAC) -> list[nn.Module]:
    actor = learner.actor
    assert isinstance(actor.log_std, nn.Linear)
    return [actor.latent_pi, actor.mu, actor.log_std, *learner.critic.q_networks]


@torch.no_grad()
def _copy(sources: list[nn.Module], targets: list[nn.Module]) -> None:
    for source, target in zip(sources, targets, strict=True):
        for one, other in zip(_linear(source), _linear(target), strict=True):
            other.weight.copy_(one.weight)
            other.bias.copy_(one.bias)


def _linear(module: nn.Module) -> list[nn.Linear]:
    return [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
