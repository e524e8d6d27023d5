"""Values that change over a run: weight of the dense reward, noise of the victim."""

import operator
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError, unknown_name

_OPERATORS = {name: getattr(operator, name) for name in ("gt", "ge", "lt", "le")}


class Annealer(Protocol):
    """Maps the run's progress (0 at the start, 1 at the end of the *whole* run) to a value."""

    def __call__(self, progress: float) -> float:
        """The value at `progress`."""
        ...


class ConstantAnnealer:
    """Always the same value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, progress: float) -> float:
        """The value, whatever the progress."""
        return self.value


class LinearAnnealer:
    """From `start` to `end` over the first `end_frac` of the run, then `end`.

    Args:
        start: value at the start.
        end: value from `end_frac` on.
        end_frac: fraction of the run, in [0, 1]; 0 means `end` from the first step.

    Raises:
        ConfigError: `end_frac` outside [0, 1].
    """

    def __init__(self, start: float, end: float, end_frac: float) -> None:
        if not 0 <= end_frac <= 1:
            raise ConfigError(f"anneal_frac must be in [0, 1], got {end_frac}")
        self.start, self.end, self.end_frac = start, end, end_frac

    def __call__(self, progress: float) -> float:
        """Linear interpolation, clamped at `end`."""
        done = 1.0 if self.end_frac == 0 else min(1.0, progress / self.end_frac)
        return self.start + done * (self.end - self.start)


class EpisodeStatistics:
    """The newest finished episodes, for annealers that wait for a result.

    Args:
        window: episodes that are kept.
    """

    METRICS = ("sparse", "dense", "length")

    def __init__(self, window: int) -> None:
        self.total_episodes = 0
        self._newest: dict[str, deque[float]] = {m: deque(maxlen=window) for m in self.METRICS}

    def add(self, sparse: float, dense: float, length: float) -> None:
        """Take one finished episode into account: its returns, and its length in steps."""
        self.total_episodes += 1
        for metric, value in zip(self.METRICS, (sparse, dense, length), strict=True):
            self._newest[metric].append(value)

    def mean(self, metric: str, window: int) -> float:
        """Mean of a metric over at most `window` newest episodes; there is at least one."""
        newest = list(self._newest[metric])[-window:]
        return sum(newest) / len(newest)

    def state_dict(self) -> dict[str, Any]:
        """Everything, as JSON types."""
        newest = {metric: list(values) for metric, values in self._newest.items()}
        return {"total_episodes": self.total_episodes, "newest": newest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.total_episodes = state["total_episodes"]
        for metric, values in self._newest.items():
            values.clear()
            values.extend(state["newest"][metric])


@dataclass(frozen=True)
class ConditionalParams:
    """When a `ConditionalAnnealer` decays.

    Attributes:
        metric: sparse or dense return, or length, of the learner's episodes.
        thresh: what the metric's mean is compared with.
        operator: gt, ge, lt or le: mean `operator` threshold lets the value decay.
        window_size: episodes that the mean is over.
        min_wait: episodes between two decays, at least.
        max_wait: episodes after which the value decays whatever the metric says.
        decay_factor: what the value is multiplied by, in (0, 1).
        start_val: value at the start.
        end_val: value below which it does not fall.
    """

    metric: str = "sparse"
    thresh: float = 0.0
    operator: str = "gt"
    window_size: int = 1
    min_wait: int = 1
    max_wait: int = 10_000
    decay_factor: float = 0.98
    start_val: float = 1.0
    end_val: float = 0.0

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: unknown metric or operator, or a number out of range.
        """
        if self.metric not in EpisodeStatistics.METRICS:
            raise unknown_name("metric", self.metric, EpisodeStatistics.METRICS)
        if self.operator not in _OPERATORS:
            raise unknown_name("operator", self.operator, _OPERATORS)
        for name in ("window_size", "min_wait", "max_wait"):
            require_at_least(name, getattr(self, name), 1)
        for name in ("thresh", "decay_factor", "start_val", "end_val"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{name} must be a number, got {value!r}")
        if not 0 < self.decay_factor < 1:
            raise ConfigError(f"decay_factor must be in (0, 1), got {self.decay_factor}")
        if not self.end_val <= self.start_val:
            raise ConfigError(
                f"end_val must not exceed start_val, got {self.end_val} and {self.start_val}"
            )


class ConditionalAnnealer:
    """A value that decays step by step, each time that a metric of the episodes allows it.

    Args:
        params: when it decays.
        episodes: looked at in every call; it keeps at least `params.window_size` of them.

    Raises:
        ConfigError: see `ConditionalParams.check`.
    """

    def __init__(self, params: ConditionalParams, episodes: EpisodeStatistics) -> None:
        params.check()
        self.params = params
        self.value = params.start_val
        self._episodes = episodes
        self._episodes_at_decay = 0

    def __call__(self, progress: float) -> float:
        """The value now, whatever the progress; it may decay in this call."""
        params = self.params
        waited = self._episodes.total_episodes - self._episodes_at_decay
        if waited < params.min_wait:
            return self.value
        mean = self._episodes.mean(params.metric, params.window_size)
        if _OPERATORS[params.operator](mean, params.thresh) or waited > params.max_wait:
            self.value = max(params.end_val, self.value * params.decay_factor)
            self._episodes_at_decay = self._episodes.total_episodes
        return self.value

    def state_dict(self) -> dict[str, Any]:
        """The value, and when it last decayed."""
        return {"value": self.value, "episodes_at_decay": self._episodes_at_decay}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.value, self._episodes_at_decay = state["value"], state["episodes_at_decay"]
