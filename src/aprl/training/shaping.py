"""Reward shaping from the terms that games report: sparse outcome, dense movement, or a blend."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aprl.errors import ConfigError
from aprl.training.embedding import FlattenSingletonVecEnv
from aprl.training.schedules import Annealer, ConstantAnnealer, LinearAnnealer

KINDS = ("sparse", "dense")
Weights = Mapping[str, Mapping[str, float]]


def annealer_from_params(params: Mapping[str, Any]) -> Annealer:
    """The dense reward's share `c` over the run, as `rew_shape_params` asks for it.

    `anneal_frac` given: from 1 to 0 over that fraction of the run (0: purely sparse throughout).
    Absent: one half throughout.
    """
    unknown = set(params) - {"anneal_frac", "weights"}
    if unknown:
        raise ConfigError(f"rew_shape_params has no entry {sorted(unknown)[0]!r}")
    frac = params.get("anneal_frac")
    if frac is not None and not isinstance(frac, int | float):
        raise ConfigError(f"anneal_frac must be a number in [0, 1], got {frac!r}")
    return ConstantAnnealer(0.5) if frac is None else LinearAnnealer(1.0, 0.0, float(frac))


def check_weights(weights: Weights) -> None:
    """Check the shape of `rew_shape_params['weights']`.

    Raises:
        ConfigError: kinds other than sparse and dense, a term of both kinds, or no number.
    """
    if not isinstance(weights, Mapping) or set(weights) != set(KINDS):
        raise ConfigError(f"reward weights need the kinds {KINDS}, got {weights!r}")
    for kind in KINDS:
        if not isinstance(weights[kind], Mapping):
            raise ConfigError(
                f"{kind} reward weights need a number per term, got {weights[kind]!r}"
            )
    both = set(weights["sparse"]) & set(weights["dense"])
    if both:
        raise ConfigError(f"reward terms {sorted(both)} are both sparse and dense")
    for kind in KINDS:
        for term, weight in weights[kind].items():
            if not isinstance(weight, int | float) or not np.isfinite(weight):
                raise ConfigError(
                    f"weight of reward term {term!r} must be a number, got {weight!r}"
                )


class RewardShapingVecWrapper(VecEnvWrapper):
    """Replace the reward by `(1 - c) * sparse + c * dense`.

    `sparse` and `dense` are weighted sums of the learner's reward terms; `c` is the annealer's
    value at the run's progress.

    Args:
        venv: the learner's environment, which reports terms.
        weights: per kind, per term, its weight.
        annealer: share of the dense part, within [0, 1].
        progress: tells the progress of the whole run, in [0, 1].

    Raises:
        ConfigError: malformed weights.
    """

    venv: FlattenSingletonVecEnv

    def __init__(
        self,
        venv: FlattenSingletonVecEnv,
        weights: Weights,
        annealer: Annealer,
        progress: Callable[[], float],
    ) -> None:
        super().__init__(venv)
        check_weights(weights)
        self._weights = weights
        self._annealer = annealer
        self._progress = progress
        self._sums = {kind: np.zeros(venv.num_envs) for kind in KINDS}
        self._lengths = np.zeros(venv.num_envs, dtype=np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget the finished episodes that `log_values` averages over."""
        self._finished: dict[str, list[float]] = {"sparse": [], "dense": [], "length": []}

    @property
    def dense_share(self) -> float:
        """Present value of `c`."""
        share = self._annealer(self._progress())
        if not 0 <= share <= 1:
            raise ConfigError(
                f"the dense reward's share must be in [0, 1], the annealer gave {share}"
            )
        return share

    def reset(self) -> np.ndarray:
        """Start new episodes."""
        for sums in self._sums.values():
            sums[:] = 0.0
        self._lengths[:] = 0
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step, with the shaped reward `(num_envs,)`."""
        obs, _, dones, infos = self.venv.step_wait()
        terms = self.venv.terms()
        parts = {kind: self._weighted(terms, kind) for kind in KINDS}
        share = self.dense_share
        self._lengths += 1
        for kind in KINDS:
            self._sums[kind] += parts[kind]
            if dones.any():
                self._finished[kind].extend(self._sums[kind][dones].tolist())
                self._sums[kind][dones] = 0.0
        if dones.any():
            self._finished["length"].extend(self._lengths[dones].tolist())
            self._lengths[dones] = 0
        return obs, (1 - share) * parts["sparse"] + share * parts["dense"], dones, infos

    def _weighted(self, terms: Mapping[str, np.ndarray], kind: str) -> np.ndarray:
        total = np.zeros(self.num_envs)
        for term, weight in self._weights[kind].items():
            if term not in terms:
                raise ConfigError(
                    f"the game reports no reward term {term!r} (it reports {sorted(terms)}); "
                    "change rew_shape_params or set rew_shape=False"
                )
            total += weight * terms[term]
        return total

    def log_values(self) -> dict[str, float]:
        """Means over the episodes finished since `clear`, under the names of the logs."""
        share = self.dense_share
        values = {"shaping/rew_anneal_c": share}
        if self._finished["length"]:
            sparse, dense = (float(np.mean(self._finished[kind])) for kind in KINDS)
            values["shaping/epsparsemean"] = sparse
            values["shaping/epdensemean"] = dense
            values["shaping/eprewmean_true"] = (1 - share) * sparse + share * dense
            values["shaping/eplenmean"] = float(np.mean(self._finished["length"]))
        return values

    def state_dict(self) -> dict[str, Any]:
        """Sums over the episodes in progress and finished."""
        return {
            "sums": {kind: sums.copy() for kind, sums in self._sums.items()},
            "lengths": self._lengths.copy(),
            "finished": {name: list(values) for name, values in self._finished.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._sums = {kind: sums.copy() for kind, sums in state["sums"].items()}
        self._lengths = state["lengths"].copy()
        self._finished = {name: list(values) for name, values in state["finished"].items()}
