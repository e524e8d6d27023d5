"""From a policy's type and path, as they stand in a config, to a policy that plays a game."""

import numbers
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.configs.checks import current_name
from aprl.envs.names import canonical_game
from aprl.errors import AprlWarning, ConfigError, PolicyError, unknown_name
from aprl.policies.base import Policy
from aprl.policies.simple import ConstantPolicy, RandomPolicy, ZeroPolicy
from aprl.policies.spaces import describe, fits
from aprl.policies.store import HEADER_FILE, load_saved, read_header
from aprl.policies.zoo import DEFAULT_ZOO_DIR, zoo_directory

POLICY_TYPES = ("zoo", "ppo", "recurrent_ppo", "sac", "zero", "random", "constant")
TRAINED = ("ppo", "recurrent_ppo", "sac")  # policy directories; the header says what is inside
ALIASES = {"ppo2": "ppo"}  # names of the TensorFlow era


def load_policy(
    policy_type: str,
    path: Any,
    *,
    observation_space: spaces.Space,
    action_space: spaces.Space,
    env_name: str,
    index: int,
    seed: int | np.random.SeedSequence = 0,
    zoo_dir: str | Path = DEFAULT_ZOO_DIR,
) -> Policy:
    """Load a policy for one agent of a game.

    Args:
        policy_type: one of `POLICY_TYPES`; the old name `ppo2` stands for `ppo`.
        path: for `zoo` the tag of a published policy, such as "1"; for `ppo`, `recurrent_ppo` and
            `sac`, which mean the same, a policy directory, or a run directory with `final_model/`
            in it; for `constant` a number, or several (comma separated or a list); ignored for
            `zero` and `random`.
        observation_space: of the agent in the game.
        action_space: of the agent in the game; actions are clipped to it.
        env_name: environment id, such as `multicomp/YouShallNotPassHumans-v1`.
        index: of the agent in the game.
        seed: of the policy's random generator.
        zoo_dir: root of the imported zoo.

    Raises:
        ConfigError: unknown type, or a game without zoo policies.
        PolicyError: the policy cannot be found or read, or does not fit the game.
    """
    policy_type = _canonical_type(policy_type)
    if policy_type == "zero":
        return ZeroPolicy(observation_space, action_space, seed)
    if policy_type == "random":
        return RandomPolicy(observation_space, action_space, seed)
    if policy_type == "constant":
        return ConstantPolicy(observation_space, action_space, _parse_constant(path), seed)
    directory = resolve_policy_directory(policy_type, path, env_name, index, zoo_dir)
    assert directory is not None
    policy = load_saved(directory, seed)
    for what, ours, games in (
        ("observations", policy.observation_space, observation_space),
        ("actions", policy.action_space, action_space),
    ):
        if not fits(ours, games):
            raise PolicyError(
                f"{directory} does not fit agent {index} of {env_name}: its {what} are "
                f"{describe(ours)}, the game's {describe(games)}"
            )
    _warn_if_foreign(directory, env_name, index)
    # The bounds that count are those of the game that is played.
    policy.observation_space, policy.action_space = observation_space, action_space
    return policy


def _warn_if_foreign(directory: Path, env_name: str, index: int) -> None:
    """Warn of a policy that was trained for another game or side and only happens to fit."""
    provenance = read_header(directory)["provenance"]
    game, side = provenance.get("env_name"), provenance.get("agent_index")
    try:
        same_game = not isinstance(game, str) or canonical_game(game) == canonical_game(env_name)
    except ConfigError:  # nothing that can be compared
        same_game = True
    if not same_game or (isinstance(side, int) and side != index):
        trained = f"agent {side} of {game}" if isinstance(side, int) else str(game)
        message = f"{directory} was trained as {trained}, and now plays agent {index} of {env_name}"
        warnings.warn(message, AprlWarning, stacklevel=3)


def resolve_policy_directory(
    policy_type: str,
    path: Any,
    env_name: str,
    index: int,
    zoo_dir: str | Path = DEFAULT_ZOO_DIR,
) -> Path | None:
    """Find the directory that a policy's weights are in, without reading them.

    Args:
        policy_type: see `load_policy`.
        path: see `load_policy`.
        env_name: see `load_policy`.
        index: see `load_policy`.
        zoo_dir: see `load_policy`.

    Returns:
        The policy directory; None for types without weights (`zero`, `random`, `constant`).

    Raises:
        ConfigError: unknown type, or a game without zoo policies.
        PolicyError: there is no policy, or it is of a format that cannot be read.
    """
    policy_type = _canonical_type(policy_type)
    if policy_type == "zoo":
        return _zoo_policy(path, env_name, index, zoo_dir)
    if policy_type in TRAINED:
        return _trained_policy(path)
    return None


def _canonical_type(policy_type: Any) -> str:
    policy_type = current_name(policy_type, ALIASES, "policy type")
    if policy_type not in POLICY_TYPES:
        raise unknown_name("policy type", str(policy_type), POLICY_TYPES)
    return policy_type


def _zoo_policy(tag: Any, env_name: str, index: int, zoo_dir: str | Path) -> Path:
    directory = zoo_directory(zoo_dir, env_name, index, tag)
    if not directory.is_dir():
        raise PolicyError(
            f"zoo policy {tag} of {canonical_game(env_name)} is not at {directory}; download the "
            "folder agent_zoo (github.com/HumanCompatibleAI/multiagent-competition) and run: "
            f"python -m aprl.policies.import_zoo agent_zoo --out {zoo_dir}"
        )
    return directory


def _trained_policy(path: Any) -> Path:
    if path is None or str(path) in ("", "none"):
        raise PolicyError(f"type 'ppo' needs the path of a policy directory, got {path!r}")
    root = Path(path)
    if root.is_file():
        raise PolicyError(f"{root} is {_foreign(root)}")
    if not root.is_dir():
        raise PolicyError(f"policy directory {root} does not exist")
    places = (root, root / "final_model")
    for place in places:
        if (place / HEADER_FILE).is_file():
            return place
    for place in places:
        for name in ("model.zip", "model.pkl"):
            if (place / name).is_file():
                raise PolicyError(f"{place / name} is {_foreign(place / name)}")
    raise PolicyError(f"no policy in {root}: neither {HEADER_FILE} nor final_model/{HEADER_FILE}")


def _foreign(path: Path) -> str:
    """Say what a file is that is no policy of this library, and what to do about it."""
    if path.name == HEADER_FILE or path.suffix == ".safetensors":
        return f"part of a policy; give the directory {path.parent}"
    with open(path, "rb") as handle:
        start = handle.read(4)
    if start == b"PK\x03\x04" or path.suffix == ".zip":
        return (
            "a zip archive, as Stable-Baselines3 writes; type 'ppo' does not read these: load it "
            "with Stable-Baselines3, copy its weights into an aprl.policies.ActorCriticMlp and "
            "call aprl.policies.save_policy"
        )
    if start[:1] == b"\x80" or path.suffix == ".pkl":
        return (
            "a Python pickle, which could run code; published zoo weights are converted by "
            "python -m aprl.policies.import_zoo, other pickles are not supported"
        )
    return "a file of unknown format; type 'ppo' needs a policy directory"


def _parse_constant(value: Any) -> Any:
    if isinstance(value, numbers.Real | list | tuple | np.ndarray):
        return value
    try:
        parts = [float(part) for part in str(value).split(",")]
    except ValueError:
        raise PolicyError(
            f"type 'constant' needs a number or comma-separated numbers as its path, got {value!r}"
        ) from None
    return parts[0] if len(parts) == 1 else parts
