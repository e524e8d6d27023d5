"""Hiding a player's opponent from it, as a test of what a victim's defeat depends on.

Masked victims: Gleave et al., ICLR 2020, section 5. Everything in an observation that is computed
from the opponent's qpos is computed from what the mask shows instead: the qpos itself, the position
relative to the own torso, and in sumo the opponent's distance from the edge. Contact forces, which
the player feels, and the ball stay true.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from aprl.errors import ConfigError, unknown_name

MASKING_TYPES = ("initialization", "zeros", "additive_noise", "debug")
DEBUG_VALUE = -4.2


def opponent_mask(
    options: Mapping[str, Any], seed: int | np.random.SeedSequence = 0
) -> "OpponentMask":
    """Make a mask from a config's entry.

    Args:
        options: `masking_type` and `noise_magnitude`, both optional.
        seed: of the noise.

    Raises:
        ConfigError: unknown entries or values.
    """
    known = {"masking_type", "noise_magnitude"}
    for name in options:
        if name not in known:
            raise unknown_name("entry of the mask", name, known)
    return OpponentMask(**options, seed=seed)


class OpponentMask:
    """What one player sees in place of its opponent's qpos.

    Args:
        masking_type: `initialization`: the opponent's pose at qpos0, the same in all episodes;
            `zeros`; `additive_noise`: the truth plus independent Gaussian noise, drawn anew for
            each observation; `debug`: -4.2 everywhere.
        noise_magnitude: standard deviation of `additive_noise` (metres, radians; quaternions have
            no unit); None for the other types.
        seed: of the noise.

    Raises:
        ConfigError: unknown type, or a noise magnitude that is missing, negative or not wanted.
    """

    def __init__(
        self,
        masking_type: str = "initialization",
        noise_magnitude: float | None = None,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        if masking_type not in MASKING_TYPES:
            raise unknown_name("masking type", masking_type, MASKING_TYPES)
        if masking_type == "additive_noise":
            if not isinstance(noise_magnitude, int | float) or not 0 <= noise_magnitude < np.inf:
                raise ConfigError(
                    "masking type 'additive_noise' needs a noise_magnitude of at least 0, "
                    f"got {noise_magnitude!r}"
                )
        elif noise_magnitude is not None:
            raise ConfigError(
                f"masking type {masking_type!r} has no noise; noise_magnitude must be None, "
                f"got {noise_magnitude!r}"
            )
        self.masking_type = masking_type
        self.noise_magnitude = noise_magnitude or 0.0
        self.rng = np.random.default_rng(seed)

    def view(self, qpos0: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The mask as a function of the true qpos `(k, n)`; `qpos0` `(n,)` is the initial one."""
        if self.masking_type == "additive_noise":
            return self._noisy
        shown = {
            "initialization": qpos0,
            "zeros": np.zeros_like(qpos0),
            "debug": np.full_like(qpos0, DEBUG_VALUE),
        }[self.masking_type]
        return lambda qpos: np.broadcast_to(shown, qpos.shape)

    def _noisy(self, qpos: np.ndarray) -> np.ndarray:
        return qpos + self.noise_magnitude * self.rng.standard_normal(qpos.shape)

    def state_dict(self) -> dict[str, Any]:
        """The noise generator's state, as JSON types."""
        return {"rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.rng.bit_generator.state = state["rng"]
