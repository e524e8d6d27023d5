"""Global random generators, which Stable-Baselines3 draws from: saved, set, and lent to a run."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch


def global_random_state() -> dict[str, Any]:
    """States of PyTorch's, NumPy's and Python's global generators, in types a checkpoint holds."""
    kind, keys, *position = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
    version, internal, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": {"kind": kind, "keys": keys, "position": position},
        "python": {"version": version, "internal": list(internal), "gauss": gauss},
    }


def set_global_random_state(state: dict[str, Any]) -> None:
    """Restore what `global_random_state` returned."""
    torch.set_rng_state(state["torch"])
    saved = state["numpy"]
    np.random.set_state((saved["kind"], saved["keys"], *saved["position"]))  # noqa: NPY002
    python = state["python"]
    random.setstate((python["version"], tuple(python["internal"]), python["gauss"]))


class PrivateRandomState:
    """A run's own state of the global generators: lent to them while the run computes.

    Whoever else draws from the global generators sees them untouched, and does not disturb the run.

    Args:
        seed: of all three.
    """

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        torch_seed, numpy_seed, python_seed = (int(n) for n in seed.generate_state(3))
        outside = global_random_state()
        torch.manual_seed(torch_seed)
        np.random.seed(numpy_seed)  # noqa: NPY002
        random.seed(python_seed)
        self._state = global_random_state()
        set_global_random_state(outside)
        self._lent = False

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Within the block, draws from the global generators are the run's own."""
        outside = global_random_state()
        set_global_random_state(self._state)
        self._lent = True
        try:
            yield
        finally:
            self._lent = False
            self._state = global_random_state()
            set_global_random_state(outside)

    def state_dict(self) -> dict[str, Any]:
        """The present state, within and outside of `lent`."""
        return global_random_state() if self._lent else self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; not within `lent`."""
        self._state = state
