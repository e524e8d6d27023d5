"""Errors that are the user's to mend: one line, naming the value and what to do."""

import difflib
from collections.abc import Iterable


class AprlError(Exception):
    """Bad input or an unusable file. Command lines print it as one line and exit with code 1."""


class ConfigError(AprlError):
    """A configuration value that cannot work; raised before any environment is built."""


class PolicyError(AprlError):
    """A policy that cannot be found, read, or does not fit the game."""


class DemonstrationError(AprlError):
    """Demonstrations that cannot be read, or do not fit what is to be learned from them."""


class RewardError(AprlError):
    """A reward net or potential that cannot be read, or does not fit the environment."""


class RunError(AprlError):
    """A run directory that is missing, unfinished or damaged."""


class AprlWarning(UserWarning):
    """Something that works, and that the user should know; command lines print it as one line."""


class DeprecatedName(AprlWarning, DeprecationWarning):
    """An old name that still works; command lines show it, as a library it follows Python."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """Build the error for a name that is not registered, with the nearest known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(names)}"
    return ConfigError(f"unknown {kind} {name!r}; {hint}")


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the name of its type if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
