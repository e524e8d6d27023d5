"""The policies that a run uses: found, checked against the game, and recognised again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.description import describe_game
from aprl.errors import ConfigError, RunError
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy, resolve_policy_directory
from aprl.policies.store import fingerprint
from aprl.training.algorithms import ALGORITHMS
from aprl.training.config import TrainConfig
from aprl.training.shaping import KINDS
from aprl.training.transparent import check_transparency


@dataclass(frozen=True)
class UsedPolicy:
    """A policy as a config names it.

    Attributes:
        role: "embedded", "loaded", "base" (of an attack) or "normal_opponent".
        kind: see `aprl.policies.load_policy`.
        path: see `aprl.policies.load_policy`.
        index: of the agent that it plays.
    """

    role: str
    kind: str
    path: str
    index: int

    def directory(self, config: TrainConfig) -> Path | None:
        """Where its weights are; None for types without weights."""
        return resolve_policy_directory(
            self.kind, self.path, config.env_name, self.index, config.zoo_dir
        )

    def load(self, config: TrainConfig, seed: int | np.random.SeedSequence = 0) -> Policy:
        """The policy, for the config's game.

        Raises:
            AprlError: it is missing, damaged, or does not fit the game.
        """
        game = describe_game(config.env_name)
        return load_policy(
            self.kind,
            self.path,
            observation_space=game.observation_spaces[self.index],
            action_space=game.action_spaces[self.index],
            env_name=config.env_name,
            index=self.index,
            seed=seed,
            zoo_dir=config.zoo_dir,
        )


def used_policies(config: TrainConfig) -> list[UsedPolicy]:
    """All policies that the run of a resolved config needs, sooner or later."""
    assert config.embed_types is not None and config.embed_paths is not None
    other = config.resolved_embed_index
    used = [
        UsedPolicy("embedded", kind, path, other)
        for kind, path in zip(config.embed_types, config.embed_paths, strict=True)
    ]
    load, normal = config.load_policy, config.normal_opponent
    if load["path"] is not None:
        used.append(UsedPolicy("loaded", load["type"], load["path"], config.agent_idx))
    attack = config.make_attack()
    if attack is not None and attack.base_policy is not None:
        used.append(UsedPolicy("base", *attack.base_policy, config.agent_idx))
    if config.eval_episodes and normal["path"] is not None:
        used.append(UsedPolicy("normal_opponent", normal["type"], normal["path"], other))
    return used


def check_against_game(config: TrainConfig) -> None:
    """Check what depends on the game: every policy, the reward terms, the learner's noise.

    Args:
        config: resolved.

    Raises:
        AprlError: something that would fail later; the message names it.
    """
    game = describe_game(config.env_name)
    wanted = ALGORITHMS[config.rl_algo].policy_class
    for used in used_policies(config):
        policy = used.load(config)
        if used.role == "loaded" and not isinstance(policy, wanted):
            if used.directory(config) is None:
                raise ConfigError(f"load_policy.type {used.kind!r} has no weights to fine-tune")
            raise ConfigError(
                f"{config.rl_algo} fine-tunes a {wanted.__name__}, but {used.path} is a "
                f"{type(policy).__name__}"
            )
        if used.role == "embedded" and config.transparent_params is not None:
            check_transparency(config.transparent_params, policy)
    if config.rew_shape:
        known = game.reward_terms[config.agent_idx]
        for kind in KINDS:
            for term in config.rew_shape_params["weights"][kind]:
                if term not in known:
                    raise ConfigError(
                        f"{config.env_name} reports no reward term {term!r} (it reports "
                        f"{sorted(known)}); change rew_shape_params or set rew_shape=False"
                    )
    discrete = isinstance(game.action_spaces[config.agent_idx], spaces.Discrete)
    if discrete and not ALGORITHMS[config.rl_algo].discrete:
        raise ConfigError(f"{config.rl_algo} needs continuous actions, not {config.env_name}'s")
    if config.embed_noise and isinstance(
        game.action_spaces[config.resolved_embed_index], spaces.Discrete
    ):
        raise ConfigError(f"embed_noise needs continuous actions, not {config.env_name}'s")
    if discrete and config.rl_args.get("log_std_init") is not None:
        raise ConfigError(
            f"rl_args entry 'log_std_init' is the noise of continuous actions; {config.env_name} "
            "has a choice of actions"
        )


def fingerprints(config: TrainConfig) -> dict[str, Any]:
    """Hash of the weights of every policy used, None for those without weights.

    Returns:
        `embedded`: a list; `loaded`, `base` and `normal_opponent`: one each, None also if not used.
    """
    found: dict[str, Any] = {"embedded": [], "loaded": None, "base": None, "normal_opponent": None}
    for used in used_policies(config):
        directory = used.directory(config)
        value = None if directory is None else fingerprint(directory)
        if used.role == "embedded":
            found["embedded"].append(value)
        else:
            found[used.role] = value
    return found


def require_unchanged(config: TrainConfig, recorded: dict[str, Any], run_dir: Path) -> None:
    """Refuse to go on with policies that are not those that a run began with.

    Args:
        config: resolved.
        recorded: what `fingerprints` returned then; an absent entry is not compared.
        run_dir: for the message.

    Raises:
        AprlError: a policy is missing or has changed; both hashes are named.
    """
    present = fingerprints(config)
    earlier: dict[str, Any] = {"embedded": present["embedded"], **recorded}
    for number, used in enumerate(used_policies(config)):
        now, then = present[used.role], earlier.get(used.role)
        if used.role == "embedded":
            now = now[number]
            then = then[number] if isinstance(then, list) and number < len(then) else None
        if then is not None and now != then:
            raise RunError(
                f"{run_dir} was begun with another {used.role.replace('_', ' ')} policy: "
                f"{used.kind} {used.path} has the hash {now}, it had {then}; put the old policy "
                "back, or train anew"
            )
