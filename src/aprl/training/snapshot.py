"""The complete state of a run between two updates: taken, and put back."""

import copy
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aprl.errors import AprlError
from aprl.training.checkpoints import CheckpointError

if TYPE_CHECKING:
    from aprl.training.run import TrainingRun


def capture(run: "TrainingRun") -> dict[str, Any]:
    """Everything needed to continue exactly, copied; valid between two updates."""
    learner = run.learner
    optimizer = learner.policy.optimizer.state_dict()
    state = {
        "config": run.config.to_dict(),
        "num_timesteps": learner.num_timesteps,
        "n_updates": learner._n_updates,
        "policy": learner.policy.state_dict(),
        "optimizer": {
            "state": [optimizer["state"][i] for i in sorted(optimizer["state"])],
            "param_groups": optimizer["param_groups"],
        },
        "last_obs": learner._last_obs,
        "last_episode_starts": learner._last_episode_starts,
        "episode_infos": list(learner.ep_info_buffer or []),
        "pending_log": dict(learner.logger.name_to_value),
        "random_state": global_random_state(),
        "game": run.game.state_dict(),
        "shaping": None if run.shaping is None else run.shaping.state_dict(),
        "normaliser": None if run.normaliser is None else run.normaliser.state_dict(),
        "wall_time_s": run.directory.wall_time_s,
    }
    return copy.deepcopy(state)


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
        _restore(run, state)
    except (AprlError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        first_line = (reason.splitlines() or ["unknown"])[0]
        raise CheckpointError(f"{source} does not fit this run: {first_line}") from None


def _restore(run: "TrainingRun", state: dict[str, Any]) -> None:
    learner = run.learner
    for name in ("config", "pending_log", "random_state"):
        state[name]  # noqa: B018 - a missing one is an error here, not later
    learner.num_timesteps = state["num_timesteps"]
    learner._n_updates = state["n_updates"]
    learner.policy.load_state_dict(state["policy"])
    learner.policy.optimizer.load_state_dict(
        {
            "state": dict(enumerate(state["optimizer"]["state"])),
            "param_groups": state["optimizer"]["param_groups"],
        }
    )
    learner._last_obs = state["last_obs"]
    learner._last_episode_starts = state["last_episode_starts"]
    learner.ep_info_buffer = deque(state["episode_infos"], maxlen=learner._stats_window_size)
    learner.ep_success_buffer = deque(maxlen=learner._stats_window_size)
    run.game.load_state_dict(state["game"])
    for part, saved in ((run.shaping, state["shaping"]), (run.normaliser, state["normaliser"])):
        if part is not None:
            part.load_state_dict(saved)
    run.directory.continue_from(state["num_timesteps"], state["wall_time_s"])


def global_random_state() -> dict[str, Any]:
    """State of PyTorch's and NumPy's global generators, which SB3 draws from."""
    kind, keys, *position = np.random.get_state()  # noqa: NPY002 - SB3 shuffles with it
    return {
        "torch": torch.get_rng_state(),
        "numpy": {"kind": kind, "keys": keys, "position": position},
    }


def set_global_random_state(state: dict[str, Any]) -> None:
    """Put back what `global_random_state` returned."""
    torch.set_rng_state(state["torch"])
    saved = state["numpy"]
    np.random.set_state((saved["kind"], saved["keys"], *saved["position"]))  # noqa: NPY002
