"""Checks that every configuration shares."""

import difflib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from aprl.errors import ConfigError, DeprecatedName

_Config = TypeVar("_Config")

MAX_SEED = 2**32 - 1  # what every random generator in use takes
MAX_THREADS = 4096  # far beyond what helps
MAX_COUNT = 2**63 - 1  # what fits into the 64 bits of NumPy and safetensors

# How a type is called in a message, and the values that pass for it.
_TYPES: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    bool: ("True or False", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    list: ("a list", (list, tuple)),
    dict: ("named entries (a dict)", (Mapping,)),
    type(None): ("None", (type(None),)),
}


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


def with_types(config: _Config) -> _Config:
    """A copy of a config dataclass, each value of the type that its field is declared with.

    Numbers, and lists of numbers, in fields for text become text, see `as_text`. Fields that are
    config dataclasses themselves, or of any type, are left as they are.

    Raises:
        ConfigError: a value of another type.
    """
    hints = get_type_hints(type(config))
    texts = {}
    for name in (f.name for f in fields(config)):  # type: ignore[arg-type]
        value, hint = getattr(config, name), hints[name]
        if is_dataclass(hint) or hint is Any:
            continue
        kinds = [get_origin(h) or h for h in (get_args(hint) if _is_union(hint) else (hint,))]
        if any(_passes(value, kind) for kind in kinds):
            continue
        text = as_text(value) if str in kinds else None
        if text is None:
            expected = " or ".join(_described(kind) for kind in kinds)
            raise ConfigError(f"{name} must be {expected}, got {value!r}")
        texts[name] = text
    return replace(config, **texts)  # type: ignore[type-var]


def _is_union(hint: Any) -> bool:
    return isinstance(hint, UnionType)


def _described(kind: type) -> str:
    return _TYPES[kind][0] if kind in _TYPES else f"a {kind.__name__}"


def _passes(value: Any, kind: type) -> bool:
    accepted = _TYPES[kind][1] if kind in _TYPES else (kind,)
    return isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))


def require_at_least(name: str, value: Any, least: int) -> None:
    """Check for a whole number of at least `least`, and at most `MAX_COUNT`.

    Raises:
        ConfigError: anything else.
    """
    if _is_whole(value) and value > MAX_COUNT:
        raise ConfigError(f"{name} must be a whole number of at most 2**63 - 1, got {value!r}")
    if not _is_whole(value) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")


def require_between(name: str, value: Any, least: int, most: int) -> None:
    """Check for a whole number from `least` to `most`.

    Raises:
        ConfigError: anything else.
    """
    require_at_least(name, value, least)
    if value > most:
        raise ConfigError(f"{name} must be a whole number of at most {most}, got {value!r}")


def require_nonempty(config: Any, names: Iterable[str]) -> None:
    """Refuse empty texts, which as a path would silently mean the working directory.

    Args:
        config: a config dataclass.
        names: of the fields to check; None passes.

    Raises:
        ConfigError: an empty one.
    """
    for name in names:
        value = getattr(config, name)
        if isinstance(value, str) and not value.strip():
            raise ConfigError(f"{name} is empty; give a value, or leave it out")


def current_name(name: Any, old_names: Mapping[str, str], what: str) -> Any:
    """Replace an old name that is still accepted by its present one, with a warning.

    Args:
        name: as given; anything but an old name is returned as it is.
        old_names: old name to present name.
        what: is named, for the message.
    """
    if not isinstance(name, str) or name not in old_names:
        return name
    message = f"{what} {name!r} is deprecated; use {old_names[name]!r}"
    warnings.warn(message, DeprecatedName, stacklevel=3)
    return old_names[name]


def as_text(value: Any) -> str | None:
    """A value of a text field as text: numbers, and lists of numbers joined by commas.

    Command lines read `5` as a number and `0.1,0.2` as a list. None if it is neither.
    """
    if isinstance(value, str):
        return value
    if _passes(value, float):
        return str(value)
    if isinstance(value, list | tuple) and value and all(_passes(v, float) for v in value):
        return ",".join(map(str, value))
    return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def require_within(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Check for a number in an interval.

    Args:
        name: of the entry.
        value: its value.
        low: lower end, which belongs to the interval unless `open_low`.
        high: upper end, which belongs to it unless `open_high`; may be infinite.
        open_low: the lower end does not belong to it.
        open_high: the upper end does not belong to it.

    Raises:
        ConfigError: anything else.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    above = number and (value > low if open_low else value >= low)
    below = number and (value < high if open_high else value <= high)
    if above and below:
        return
    if high == float("inf"):
        raise ConfigError(
            f"{name} must be {'above' if open_low else 'at least'} {low}, got {value!r}"
        )
    interval = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
    raise ConfigError(f"{name} must be in {interval}, got {value!r}")
