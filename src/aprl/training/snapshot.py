"""The complete state of a run between two updates: taken, and put back."""

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aprl.errors import AprlError
from aprl.training.checkpoints import CheckpointError
from aprl.training.learner_state import learner_state, load_learner_state
from aprl.training.random_state import global_random_state

if TYPE_CHECKING:
    from aprl.training.run import TrainingRun


def capture(run: "TrainingRun") -> dict[str, Any]:
    """Everything needed to continue exactly, copied; valid between two updates."""
    return {
        "config": copy.deepcopy(run.config.to_dict()),
        "num_timesteps": run.learner.num_timesteps,
        "learner": learner_state(run.learner),
        "pending_log": dict(run.learner.logger.name_to_value),
        "random_state": copy.deepcopy(global_random_state()),
        "stack": copy.deepcopy(run.stack.state_dict()),
        "wall_time_s": run.directory.wall_time_s,
    }


def restore(run: "TrainingRun", state: dict[str, Any], source: Path) -> None:
    """Put back what `capture` returned, into a run of the same config.

    Args:
        run: just built.
        state: its `pending_log` and `random_state` are left to the caller.
        source: the checkpoint, for the message.

    Raises:
        CheckpointError: the state is not that of such a run.
    """
    try:
        for name in ("config", "pending_log", "random_state"):
            state[name]
        load_learner_state(run.learner, state["learner"])
        run.stack.load_state_dict(state["stack"])
        run.directory.continue_from(state["num_timesteps"], state["wall_time_s"])
    except (AprlError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        first_line = (reason.splitlines() or ["unknown"])[0]
        raise CheckpointError(f"{source} does not fit this run: {first_line}") from None
