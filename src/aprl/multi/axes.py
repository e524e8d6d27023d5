"""Axes of a sweep: grids, distributions, and several entries that change together.

An axis is keyed by the config entry that it sets, `learning_rate` or, within one, `rl_args.gamma`.
Entries that change together are joined by `:`, and their values are lists of as many:
`{"env_name:embed_path": [["multicomp/SumoAnts-v1", "1"], ["multicomp/SumoAnts-v1", "2"]]}`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar, get_origin

import numpy as np

from aprl.errors import ConfigError, unknown_name
from aprl.training.config import TrainConfig

JOINT = ":"


class Distribution(ABC):
    """What a sampled axis draws from. Subclasses are dataclasses of their bounds."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Any:
        """One value."""

    @abstractmethod
    def ray_domain(self) -> Any:
        """The same as a domain of Ray Tune, for its search algorithms."""

    def to_json(self) -> dict[str, list[Any]]:
        """As `axis_from_json` reads it."""
        return {self.name: list(astuple(self))}  # type: ignore[call-overload]

    def __str__(self) -> str:
        return f"{self.name}{tuple(self.to_json()[self.name])}"


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform on [low, high)."""

    name: ClassVar[str] = "uniform"
    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """See `Distribution.draw`."""
        return float(rng.uniform(self.low, self.high))

    def ray_domain(self) -> Any:
        """See `Distribution.ray_domain`."""
        from ray import tune

        return tune.uniform(self.low, self.high)


@dataclass(frozen=True)
class LogUniform(Distribution):
    """The logarithm is uniform; 0 < low < high."""

    name: ClassVar[str] = "loguniform"
    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """See `Distribution.draw`."""
        return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def ray_domain(self) -> Any:
        """See `Distribution.ray_domain`."""
        from ray import tune

        return tune.loguniform(self.low, self.high)


@dataclass(frozen=True)
class RandInt(Distribution):
    """Whole numbers from low to high - 1, equally likely."""

    name: ClassVar[str] = "randint"
    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """See `Distribution.draw`."""
        return int(rng.integers(self.low, self.high))

    def ray_domain(self) -> Any:
        """See `Distribution.ray_domain`."""
        from ray import tune

        return tune.randint(self.low, self.high)


@dataclass(frozen=True)
class PowerOfTwo(Distribution):
    """2 to the power of a whole number from low to high - 1, equally likely."""

    name: ClassVar[str] = "power_of_two"
    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """See `Distribution.draw`."""
        return int(2 ** rng.integers(self.low, self.high))

    def ray_domain(self) -> Any:
        """See `Distribution.ray_domain`."""
        from ray import tune

        return tune.choice([2**exponent for exponent in range(self.low, self.high)])


DISTRIBUTIONS: dict[str, type[Distribution]] = {
    kind.name: kind for kind in (Uniform, LogUniform, RandInt, PowerOfTwo)
}

Axis = Sequence[Any] | Distribution

_HOLDING_OTHERS = {field.name for field in fields(TrainConfig) if get_origin(field.type) is dict}


def axis_from_json(key: str, value: Any) -> Axis:
    """An axis from plain values: a list for a grid, `{"uniform": [low, high]}` for a distribution.

    Args:
        key: of the axis, for messages and to check joint values.
        value: see above; see `DISTRIBUTIONS` for the names. A `Distribution` is returned as it is.

    Raises:
        ConfigError: neither, bounds that cannot be, or joint values of another number than entries.
    """
    if isinstance(value, Distribution):
        return value
    if isinstance(value, Mapping):
        return _distribution(key, value)
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(
            f"axis {key!r} must be a list of values, or a distribution such as "
            f"{{'loguniform': [1e-5, 1e-2]}}, got {value!r}"
        )
    entries = key.split(JOINT)
    if len(entries) > 1:
        for each in value:
            if not isinstance(each, list | tuple) or len(each) != len(entries):
                raise ConfigError(
                    f"axis {key!r} sets {len(entries)} entries at a time, so that each of its "
                    f"values is a list of as many; got {each!r}"
                )
    return list(value)


def flat_axes(axes: Mapping[str, Any]) -> dict[str, Any]:
    """Axes by the complete name of the entry: `{"rl_args": {"gamma": [...]}}` is `rl_args.gamma`.

    Sacred splits names at their dots, in config files and on the command line. Only entries of
    `aprl.train` that hold others are looked into: all else that is a mapping is a distribution.
    """
    found: dict[str, Any] = {}
    for key, value in axes.items():
        holds_others = key.split(JOINT)[-1].split(".")[0] in _HOLDING_OTHERS
        if holds_others and isinstance(value, Mapping) and not set(value) <= set(DISTRIBUTIONS):
            found |= flat_axes({f"{key}.{inner}": each for inner, each in value.items()})
        else:
            found[key] = value
    return found


def _distribution(key: str, value: Mapping[str, Any]) -> Distribution:
    if len(value) != 1:
        raise ConfigError(f"axis {key!r} must name one distribution, got {sorted(value)}")
    [(name, bounds)] = value.items()
    if name not in DISTRIBUTIONS:
        raise unknown_name(f"distribution of axis {key!r}:", name, DISTRIBUTIONS)
    if JOINT in key:
        raise ConfigError(f"axis {key!r} sets several entries; a distribution draws one")
    kind = DISTRIBUTIONS[name]
    whole = kind in (RandInt, PowerOfTwo)
    numbers = (int,) if whole else (int, float)
    usable = isinstance(bounds, list | tuple) and len(bounds) == 2
    if not usable or not all(isinstance(b, numbers) and not isinstance(b, bool) for b in bounds):
        what = "two whole numbers" if whole else "two numbers"
        raise ConfigError(f"axis {key!r}: {name} needs {what}, low and high, got {bounds!r}")
    low, high = bounds
    least = {LogUniform: "above 0", PowerOfTwo: "at least 0"}.get(kind)
    too_low = (kind is LogUniform and low <= 0) or (kind is PowerOfTwo and low < 0)
    if too_low or not low < high or not all(math.isfinite(b) for b in bounds):
        raise ConfigError(
            f"axis {key!r}: {name} needs low < high{f', low {least}' if least else ''}, "
            f"got {low} and {high}"
        )
    return kind(low, high)  # type: ignore[call-arg]


def axis_to_json(axis: Axis) -> Any:
    """The reverse of `axis_from_json`."""
    return axis.to_json() if isinstance(axis, Distribution) else list(axis)


def spread(values: Mapping[str, Any]) -> dict[str, Any]:
    """Take joint keys apart: `{"a:b": (1, 2), "c": 3}` becomes `{"a": 1, "b": 2, "c": 3}`.

    Raises:
        ConfigError: an entry that is set twice.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        entries = key.split(JOINT)
        parts = value if len(entries) > 1 else [value]
        for entry, part in zip(entries, parts, strict=True):
            if entry in found:
                raise ConfigError(f"two axes set {entry!r}")
            found[entry] = part
    return found


def merged(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested config with entries set; dots in a key lead into nested ones.

    A dict replaces what is there, except where a later key reaches into it.

    Raises:
        ConfigError: a key that leads into something that has no entries.
    """
    result = _copied(base)
    for key, value in values.items():
        *way, last = key.split(".")
        place = result
        for step in way:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{key!r} leads into {step!r}, which has no entries")
        place[last] = _copied(value)
    return result


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value
