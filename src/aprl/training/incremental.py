"""Learning in increments: many short calls that add up to one run.

Stable-Baselines3 computes schedules from the progress of the present `learn()` call. Trained by
repeated `learn(chunk, reset_num_timesteps=False)`, a linear learning rate falls to zero within each
chunk: with one rollout per chunk it is zero at every update, and nothing is learned. A session
declares the whole run first, and each step of it continues where the last one ended:

    with incremental(model, total_timesteps=1_000_000, callback=callback) as session:
        while session.step(10_000):
            ...  # anything else: train a discriminator, exchange an opponent

Schedules, callbacks, logs, exploration noise and weights are then those of a single `learn()`.
"""

import contextlib
import copy
import functools
import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback

from aprl.errors import ConfigError

_Algorithm = TypeVar("_Algorithm", bound=BaseAlgorithm)
_SCHEDULES = ("lr_schedule", "clip_range", "clip_range_vf", "exploration_schedule")


def varying_schedules(model: BaseAlgorithm) -> list[str]:
    """Names of the model's schedules that depend on progress, such as `lr_schedule`."""
    found = []
    for name in _SCHEDULES:
        schedule = getattr(model, name, None)
        if (
            callable(schedule)
            and len({float(schedule(p)) for p in (1.0, 0.75, 0.5, 0.25, 0.0)}) > 1
        ):
            found.append(name)
    return found


def warn_if_schedules_jump(model: BaseAlgorithm, new_total: int) -> None:
    """Warn, once per model, that training on towards another total makes its schedules jump.

    Args:
        model: about to be trained on without resetting its steps.
        new_total: steps of the run, earlier ones included, as the next call will see them.
    """
    declared = model._total_timesteps  # 0: none yet, as in a model whose weights were restored
    if model.num_timesteps == 0 or declared in (0, new_total) or in_session(model):
        return
    names = varying_schedules(model)
    if names and not getattr(model, "_warned_of_schedules", False):
        model._warned_of_schedules = True  # type: ignore[attr-defined]
        warnings.warn(
            f"repeated learn() calls make {', '.join(names)} follow each call's own progress, not "
            "the run's; use aprl.training.incremental, which declares the whole run",
            stacklevel=2,
        )


class IncrementalSession:
    """A training run in progress; made by `incremental`.

    Attributes:
        model: what is trained.
        total_timesteps: environment steps of the whole run, those before a resumption included.
        stopped: whether a callback ended the run; further steps do nothing.
    """

    def __init__(
        self,
        model: BaseAlgorithm,
        total_timesteps: int,
        callback: MaybeCallback,
        *,
        resume: bool,
        log_interval: int | None,
        learn_options: dict[str, Any],
    ) -> None:
        self.model = model
        self.total_timesteps = total_timesteps
        self.stopped = False
        self._user_callback = callback
        self._resume = resume
        self._log_interval = log_interval
        self._learn_options = learn_options
        self._callback: _SessionCallback | None = None
        self._stepping = False
        self._iterations = 0
        self._first = model.num_timesteps if resume else 0
        self._planned = self._first
        self._started_ns = time.time_ns()

    @property
    def num_timesteps(self) -> int:
        """Environment steps made so far, those before a resumption included."""
        return self._first if self._callback is None else self.model.num_timesteps

    @property
    def running(self) -> bool:
        """Whether there is anything left to do."""
        return not self.stopped and self.num_timesteps < self.total_timesteps

    @property
    def progress(self) -> float:
        """Fraction of the whole run that is done, in [0, 1]."""
        return min(1.0, self.num_timesteps / self.total_timesteps)

    @property
    def seconds(self) -> float:
        """Wall time since the session began, in and between steps."""
        return (time.time_ns() - self._started_ns) / 1e9

    @property
    def steps_per_second(self) -> float:
        """Environment steps of this session over all of its wall time."""
        return (self.num_timesteps - self._first) / max(self.seconds, 1e-9)

    def step(self, timesteps: int | None = None) -> bool:
        """Train for the next `timesteps` of the run.

        Algorithms collect whole rollouts. What one call overshoots is taken off the next, so that
        the run as a whole makes as many steps as a single `learn()`.

        Args:
            timesteps: environment steps, at least 1; None for all that are left.

        Returns:
            Whether there is anything left to do.

        Raises:
            ConfigError: fewer than 1 step.
        """
        if timesteps is not None and timesteps < 1:
            raise ConfigError(f"timesteps must be at least 1, got {timesteps}")
        planned = self.total_timesteps if timesteps is None else self._planned + timesteps
        self._planned = min(planned, self.total_timesteps)
        if self.stopped or self.num_timesteps >= self._planned:
            return self.running
        # On-policy algorithms count iterations from 1 in each call: `_dump` counts on.
        every = 1 if isinstance(self.model, OnPolicyAlgorithm) else self._log_interval
        self._stepping = True
        try:
            self.model.learn(
                self._planned - self.num_timesteps,
                log_interval=every,  # type: ignore[arg-type]
                reset_num_timesteps=False,
                **self._learn_options,
            )
        finally:
            self._stepping = False
        return self.running

    def _set_up(
        self, base: Callable[..., tuple[int, BaseCallback]], **options: Any
    ) -> tuple[int, BaseCallback]:
        """Stand in for `_setup_learn`: the real one for the first step, nothing for later ones."""
        if not self._stepping:
            raise ConfigError("the model is trained by a session; call session.step, not learn()")
        if self._callback is None:
            model = self.model
            noise = getattr(model, "action_noise", None)
            kept = copy.deepcopy(noise) if self._resume else None
            options |= {"callback": self._user_callback, "reset_num_timesteps": not self._resume}
            options["total_timesteps"] = self.total_timesteps - self._first
            _, callback = base(**options)
            if kept is not None and type(kept) is type(model.action_noise):
                model.action_noise = kept
            model.start_time = self._started_ns
            self._callback = _SessionCallback(self, callback)
        return self._planned, self._callback

    def _dump(self, base: Callable[..., None], *args: Any) -> None:
        """Stand in for `dump_logs`; on-policy algorithms pass their count of iterations."""
        if not args:
            base()
            return
        self._iterations += 1
        if self._log_interval and self._iterations % self._log_interval == 0:
            base(self._iterations)

    def _end(self) -> None:
        if self._callback is not None:
            self._callback.wrapped.on_training_end()


class _SessionCallback(BaseCallback):
    """Passes events on, except that training starts and ends once per session."""

    def __init__(self, session: IncrementalSession, wrapped: BaseCallback) -> None:
        super().__init__()
        self._session = session
        self._started = False
        self.wrapped = wrapped

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        if not self._started:
            self._started = True
            whole = {**locals_, "total_timesteps": self._session.total_timesteps}
            self.wrapped.on_training_start(whole, globals_)

    def on_training_end(self) -> None:
        """The session calls the wrapped callback's own when it ends."""

    def on_rollout_start(self) -> None:
        self.wrapped.on_rollout_start()

    def on_rollout_end(self) -> None:
        self.wrapped.on_rollout_end()

    def update_locals(self, locals_: dict[str, Any]) -> None:
        self.wrapped.update_locals(locals_)

    def on_step(self) -> bool:
        go_on = self.wrapped.on_step()
        self._session.stopped = not go_on
        return go_on

    def _on_step(self) -> bool:
        raise AssertionError("on_step is overridden")


@functools.cache
def _session_class(algorithm: type[BaseAlgorithm]) -> type[BaseAlgorithm]:
    """The class that a model of class `algorithm` has for the time of a session.

    The class is exchanged, rather than methods of the instance, because `save()` pickles the
    instance's attributes.
    """

    class InSession(algorithm):  # type: ignore[valid-type, misc]
        _session: IncrementalSession

        def _setup_learn(
            self,
            total_timesteps: int,
            callback: MaybeCallback = None,
            reset_num_timesteps: bool = True,
            tb_log_name: str = "run",
            progress_bar: bool = False,
        ) -> tuple[int, BaseCallback]:
            return self._session._set_up(
                super()._setup_learn, tb_log_name=tb_log_name, progress_bar=progress_bar
            )

        def _update_current_progress_remaining(
            self, num_timesteps: int, total_timesteps: int
        ) -> None:
            done = num_timesteps / self._session.total_timesteps
            self._current_progress_remaining = min(1.0, max(0.0, 1.0 - done))

        def dump_logs(self, *args: Any) -> None:
            self._session._dump(super().dump_logs, *args)

        def _excluded_save_params(self) -> list[str]:
            return [*super()._excluded_save_params(), "_session"]

    InSession.__name__, InSession.__qualname__ = algorithm.__name__, algorithm.__qualname__
    return InSession


def in_session(model: BaseAlgorithm) -> bool:
    """Whether a session trains the model at present."""
    return hasattr(model, "_session")


@contextlib.contextmanager
def incremental(
    model: BaseAlgorithm,
    total_timesteps: int,
    callback: MaybeCallback = None,
    *,
    resume: bool = False,
    change_total: bool = False,
    log_interval: int | Literal["default"] | None = "default",
    **learn_options: Any,
) -> Iterator[IncrementalSession]:
    """Train a model in steps as if in one call of `learn(total_timesteps, callback)`.

    Bit for bit the same, with two exceptions: progress stays in [0, 1] where SB3 lets the last,
    overshooting rollout bring it below 0, and `time/fps` counts all of the session's wall time.
    Callbacks start with the first step and end with the block (not if it raises, as in SB3). A
    callback that returns False ends the run, not only the step. The model may be saved at any time.

    Args:
        model: any algorithm of Stable-Baselines3 or sb3-contrib.
        total_timesteps: environment steps of the whole run, earlier ones included when resuming.
        callback: as for `learn()`.
        resume: go on from `model.num_timesteps` instead of counting from 0.
        change_total: allow resuming towards another total than the one that the model was trained
            towards; its schedules jump to the progress that the new total implies.
        log_interval: rollouts (off-policy: episodes) between dumps of the log; None: never.
        **learn_options: further arguments of the algorithm's `learn()`, such as `tb_log_name`.

    Yields:
        The session.

    Raises:
        ConfigError: total below 1, another total than the model's when resuming, or a model that
            is in a session already.
    """
    if total_timesteps < 1:
        raise ConfigError(f"total_timesteps must be at least 1, got {total_timesteps}")
    if in_session(model):
        raise ConfigError("the model is in a session already; a model is trained by one at a time")
    declared = model._total_timesteps
    if resume and model.num_timesteps and declared != total_timesteps and not change_total:
        raise ConfigError(
            f"the model stands at {model.num_timesteps:,} of {declared:,} steps; resuming towards "
            f"{total_timesteps:,} would make its schedules jump; give total_timesteps={declared}, "
            "or change_total=True if that is meant"
        )
    default = inspect.signature(model.learn).parameters["log_interval"].default
    session = IncrementalSession(
        model,
        total_timesteps,
        callback,
        resume=resume,
        log_interval=default if isinstance(log_interval, str) else log_interval,
        learn_options=learn_options,
    )
    algorithm = type(model)
    model.__class__ = _session_class(algorithm)
    model._session = session  # type: ignore[attr-defined]
    try:
        yield session
        session._end()
    finally:
        model.__class__ = algorithm
        del model._session  # type: ignore[attr-defined]


def fit(
    model: _Algorithm, total_timesteps: int, callback: MaybeCallback = None, **options: Any
) -> _Algorithm:
    """Train a model in one go; see `incremental` for the arguments. Returns the model."""
    with incremental(model, total_timesteps, callback, **options) as session:
        session.step()
    return model
