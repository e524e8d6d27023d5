"""Types of config values, as a command line or a notebook may give them."""

from dataclasses import dataclass, field

import pytest

from aprl.configs.checks import check_entries, require_at_least, require_within, with_types
from aprl.errors import ConfigError


@dataclass
class Options:
    name: str = "a"
    tag: str | None = None
    count: int = 1
    limit: int | None = None
    rate: float = 0.5
    flag: bool = False
    items: list[str] | None = None
    args: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"name": "b", "tag": "c", "count": 0, "limit": 3, "rate": 2, "flag": True},
        {"items": ["x"], "args": {"y": 1}},
        {"items": ("x",)},
    ],
)
def test_right_types_pass_unchanged(values):
    assert with_types(Options(**values)) == Options(**values)


def test_numbers_in_text_fields_become_text_in_a_copy():
    given = Options(name=5, tag=1.5)
    assert with_types(given) == Options(name="5", tag="1.5")
    assert given.name == 5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": None}, "name must be text, got None"),
        ({"name": True}, "name must be text, got True"),
        ({"name": ["a"]}, "name must be text"),
        ({"tag": {}}, "tag must be text or None"),
        ({"count": 1.0}, "count must be a whole number, got 1.0"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"count": "3"}, "count must be a whole number, got '3'"),
        ({"limit": "x"}, "limit must be a whole number or None"),
        ({"rate": "x"}, "rate must be a number, got 'x'"),
        ({"rate": False}, "rate must be a number, got False"),
        ({"flag": 1}, "flag must be True or False, got 1"),
        ({"items": "x"}, "items must be a list or None, got 'x'"),
        ({"args": None}, "args must be named entries"),
        ({"args": 3}, "args must be named entries"),
    ],
)
def test_wrong_types_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        with_types(Options(**values))


def test_unknown_entries():
    check_entries(Options, {"name": 1, "flag": 2})
    with pytest.raises(ConfigError, match="'cuont'; did you mean count"):
        check_entries(Options, {"cuont": 1})


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "1"])
def test_least_whole_numbers(value):
    require_at_least("x", 1, 1)
    with pytest.raises(ConfigError, match="x must be a whole number of at least 1"):
        require_at_least("x", value, 1)


@dataclass
class _Inner:
    size: int = 1


@dataclass
class _Outer:
    inner: _Inner | None = None


def test_configs_within_configs():
    assert with_types(_Outer(_Inner(3))).inner == _Inner(3)
    assert with_types(_Outer()).inner is None
    with pytest.raises(ConfigError, match="inner must be a _Inner or None, got 5"):
        with_types(_Outer(5))


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (1.5, {}, r"x must be in \[0, 1\], got 1.5"),
        (0, {"open_low": True}, r"x must be in \(0, 1\], got 0"),
        (1, {"open_high": True}, r"x must be in \[0, 1\), got 1"),
        ("half", {}, "got 'half'"),
        (True, {}, "got True"),
        (float("nan"), {}, "got nan"),
    ],
)
def test_intervals(value, options, message):
    require_within("x", 0.5, 0, 1, **options)
    with pytest.raises(ConfigError, match=message):
        require_within("x", value, 0, 1, **options)


def test_intervals_without_an_upper_end():
    require_within("x", 10**9, 0, float("inf"))
    with pytest.raises(ConfigError, match="x must be at least 0, got -1"):
        require_within("x", -1, 0, float("inf"))
    with pytest.raises(ConfigError, match="x must be above 0, got 0"):
        require_within("x", 0, 0, float("inf"), open_low=True)
