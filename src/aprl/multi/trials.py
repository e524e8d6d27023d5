"""From a grid to the list of its trials, each complete before anything is trained."""

import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aprl.errors import AprlError
from aprl.multi.axes import Axis, Distribution, merged, spread
from aprl.multi.grids import Grid
from aprl.train import choose_opponents
from aprl.training.config import TrainConfig
from aprl.training.used_policies import check_against_game

if TYPE_CHECKING:
    import pandas as pd

_NAME_LENGTH = 120


@dataclass(frozen=True)
class Trial:
    """One run of a sweep.

    Attributes:
        number: position in the sweep, from 0.
        values: what its axes set, by config entry.
        train: all entries of its `TrainConfig` that are set.
    """

    number: int
    values: dict[str, Any]
    train: dict[str, Any]

    @property
    def name(self) -> str:
        """Short, unique in the sweep, fit for a file name."""
        return trial_name(f"{self.number:04d}", self.values)

    def config(self) -> TrainConfig:
        """Its config, not resolved.

        Raises:
            ConfigError: unknown entries.
        """
        return TrainConfig.from_dict(self.train)


def trial_name(stem: str, values: Mapping[str, Any]) -> str:
    """A file name that begins with `stem` and shows the values as far as there is room."""
    shown = [f"{key.rpartition('.')[2]}={_short(value)}" for key, value in values.items()]
    text = re.sub(r"[^\w.=+-]+", "_", f"{stem}-{','.join(shown).replace(',', '-')}")
    if len(text) <= _NAME_LENGTH:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: _NAME_LENGTH - 9]}-{digest}"


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "+".join(_short(v) for v in value.values() if v is not None)
    if isinstance(value, list | tuple):
        return "+".join(_short(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value).rpartition("/")[2]


def expand(grid: Grid, seed: int) -> list[Trial]:
    """All trials of a grid: every combination, `num_samples` times, sampled axes drawn anew.

    Args:
        grid: what is swept.
        seed: of the draws.

    Raises:
        ConfigError: axes that set the same entry, or reach into what has no entries.
    """
    rng = np.random.default_rng(seed)
    trials: list[Trial] = []
    for _ in range(grid.num_samples):
        for combination in combinations(grid.axes):
            drawn = {
                key: axis.draw(rng) if isinstance(axis, Distribution) else combination[key]
                for key, axis in grid.axes.items()
            }
            values = spread(drawn)
            trials.append(Trial(len(trials), values, merged(grid.train, values)))
    return trials


def combinations(axes: Mapping[str, Axis]) -> list[dict[str, Any]]:
    """Every combination of the values of the axes that are lists; the last one varies fastest."""
    lists = {key: axis for key, axis in axes.items() if not isinstance(axis, Distribution)}
    return [dict(zip(lists, each, strict=True)) for each in itertools.product(*lists.values())]


def check_trials(trials: list[Trial]) -> tuple[list[Trial], list[tuple[Trial, AprlError]]]:
    """Check every trial as its run would, with lookups of adversaries, but without building games.

    Trials that share all that is checked are checked once.

    Returns:
        Those that can run, and the others with their errors.
    """
    usable, unusable = [], []
    verdicts: dict[str, AprlError | None] = {}
    for trial in trials:
        key = json.dumps({k: v for k, v in trial.train.items() if k != "seed"}, sort_keys=True)
        if key not in verdicts:
            verdicts[key] = _verdict(trial)
        error = verdicts[key]
        if error is None:
            usable.append(trial)
        else:
            unusable.append((trial, error))
    return usable, unusable


def _verdict(trial: Trial) -> AprlError | None:
    try:
        config = trial.config()
        if config.defence == "alternating":
            return None  # its rounds are checked when it starts
        check_against_game(choose_opponents(config).resolve())
    except AprlError as error:
        return error
    return None


def trials_frame(trials: list[Trial]) -> "pd.DataFrame":
    """One row per trial: `trial`, and a column per config entry that an axis sets."""
    import pandas as pd

    rows = [{"trial": trial.number, **map_plain(trial.values)} for trial in trials]
    return pd.DataFrame(rows)


def map_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for a table: containers as short text."""
    return {k: _short(v) if isinstance(v, dict | list | tuple) else v for k, v in values.items()}
