"""Checks that every configuration shares."""

import difflib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from aprl.errors import ConfigError

_Config = TypeVar("_Config")

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

    Numbers in fields for text become text: command lines read `exp_name=5` as a number. Fields that
    are config dataclasses themselves, or of any type, are left as they are.

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
        if str not in kinds or not _passes(value, float):
            expected = " or ".join(_described(kind) for kind in kinds)
            raise ConfigError(f"{name} must be {expected}, got {value!r}")
        texts[name] = str(value)
    return replace(config, **texts)  # type: ignore[type-var]


def _is_union(hint: Any) -> bool:
    return isinstance(hint, UnionType)


def _described(kind: type) -> str:
    return _TYPES[kind][0] if kind in _TYPES else f"a {kind.__name__}"


def _passes(value: Any, kind: type) -> bool:
    accepted = _TYPES[kind][1] if kind in _TYPES else (kind,)
    return isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))


def require_at_least(name: str, value: Any, least: int) -> None:
    """Check for a whole number of at least `least`.

    Raises:
        ConfigError: anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")


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
