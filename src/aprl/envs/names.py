"""Names of games: the id a user types, and the game behind it."""

import re

from aprl.errors import ConfigError

_ID = re.compile(r"(?:[^/]*/)?(?P<game>[A-Za-z0-9_]+?)(?:AutoContact)?(?:-v\d+)?")


def canonical_game(env_name: str) -> str:
    """Name of the game without namespace, version and variant.

    Variants of one game share policies: every version of it, and the sumo games whose agents count
    as having touched from the start (`AutoContact`).

    >>> canonical_game("multicomp/SumoHumansAutoContact-v1")
    'SumoHumans'

    Args:
        env_name: environment id such as `multicomp/SumoAnts-v0`, or the bare name of a game.

    Raises:
        ConfigError: `env_name` does not have the form of an environment id.
    """
    match = _ID.fullmatch(env_name)
    if match is None:
        raise ConfigError(
            f"{env_name!r} is no environment id; expected the form namespace/Game-v0, "
            "for example multicomp/YouShallNotPassHumans-v0"
        )
    return match["game"]


def victim_index(env_name: str) -> int:
    """Index of the agent that the victim plays by convention (Gleave et al., ICLR 2020).

    It is the runner of You Shall Not Pass (1), and agent 0 of every other game.

    Raises:
        ConfigError: `env_name` does not have the form of an environment id.
    """
    return 1 if canonical_game(env_name) == "YouShallNotPassHumans" else 0
