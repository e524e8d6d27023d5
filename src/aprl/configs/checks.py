"""Checks that every configuration shares."""

import difflib
from dataclasses import fields
from typing import Any

from aprl.errors import ConfigError


def check_entries(config_class: type, values: dict[str, Any]) -> None:
    """Check that all keys are fields of a config dataclass.

    Raises:
        ConfigError: an unknown one, with the nearest known ones.
    """
    known = {f.name for f in fields(config_class)}
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"unknown config entry {name!r}{hint}")


def require_at_least(name: str, value: Any, least: int) -> None:
    """Check for a whole number of at least `least`.

    Raises:
        ConfigError: anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")
