"""How a sweep goes, on the terminal."""

from typing import Any

from ray import tune

from aprl.multi.worker import COMPLETED, METRIC, STEPS
from aprl.training.records import ProgressDisplay


class Watcher(tune.Callback):
    """Follows the trials of a sweep.

    Args:
        trials: how many there will be.
        timesteps: environment steps of all of them.
        enabled: show anything at all.

    Attributes:
        display: to be closed at the end.
        ended: ids of trials that came to their end, or were stopped by the scheduler.
    """

    def __init__(self, trials: int, timesteps: int, enabled: bool) -> None:
        self._trials = trials
        self.display = ProgressDisplay(timesteps, enabled=enabled, verb="sweep")
        self.ended: set[str] = set()
        self._failed = 0
        self._steps: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._wins: dict[str, float] = {}

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A rollout of a trial, or its end."""
        self._steps[trial.trial_id] = result.get(STEPS, 0)
        if not result.get(COMPLETED):
            self._wins[trial.trial_id] = result.get(METRIC, 0.0)
        self._show()

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A trial's end."""
        self.ended.add(trial.trial_id)
        self._wins.pop(trial.trial_id, None)
        self._show()

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A trial's last failure."""
        self._failed += 1
        self._wins.pop(trial.trial_id, None)
        self._show()

    def _show(self) -> None:
        running = ", ".join(f"{100 * rate:.0f} %" for rate in list(self._wins.values())[:8])
        text = f"{len(self.ended)}/{self._trials} trials done"
        if self._failed:
            text += f", {self._failed} failed"
        if running:
            text += f", running win {running}"
        self.display.update(sum(self._steps.values()), text)
