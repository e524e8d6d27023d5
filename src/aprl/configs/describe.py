"""What a command's `--help` says about its configuration, read from where it is declared."""

import inspect
import io
import textwrap
import tokenize
from collections.abc import Container, Mapping
from dataclasses import MISSING, fields
from typing import Any

_WIDTH = 100


def field_comments(config_class: type) -> dict[str, str]:
    """The comment of each field of a config dataclass: beside it, or else right above it.

    Fields without a comment, and classes without source, have none.
    """
    try:
        source = textwrap.dedent(inspect.getsource(config_class))
    except (OSError, TypeError):
        return {}
    comments: dict[int, tuple[str, bool]] = {}  # by line: text, whether the line is nothing else
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            comments[token.start[0]] = (token.string.lstrip("# "), alone)
    names = {f.name for f in fields(config_class)}
    found = {}
    for number, line in enumerate(source.splitlines(), start=1):
        name = line.partition(":")[0].strip()
        if name not in names or name in found:
            continue
        if number in comments:
            found[name] = comments[number][0]
            continue
        above: list[str] = []
        while comments.get(number - 1, ("", False))[1]:
            number -= 1
            above.insert(0, comments[number][0])
        if above:
            found[name] = " ".join(above)
    return found


def describe_entries(config_class: type, without: Container[str] = ()) -> str:
    """One paragraph per field of a config dataclass: name, default, comment.

    Args:
        config_class: a dataclass.
        without: fields that are left out.
    """
    comments = field_comments(config_class)
    lines = []
    for entry in fields(config_class):
        if entry.name not in without:
            made = entry.default_factory
            value = made() if made is not MISSING else entry.default
            lines.append(describe_entry(entry.name, value, comments.get(entry.name, "")))
    return "\n".join(lines)


def describe_entry(name: str, default: Any, comment: str = "") -> str:
    """One paragraph."""
    return _paragraph(f"{name} = {default!r}" + (f"  # {comment}" if comment else ""))


def describe_named_configs(named_configs: Mapping[str, Mapping[str, Any]]) -> str:
    """One paragraph per named config: its name, and the entries that it sets."""
    return "\n".join(
        _paragraph(f"{name}: " + ", ".join(f"{key}={value!r}" for key, value in values.items()))
        for name, values in named_configs.items()
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
    )
