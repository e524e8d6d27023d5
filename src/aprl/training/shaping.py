"""Reward shaping from the terms that games report: sparse outcome, dense movement, or a blend."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aprl.errors import ConfigError, unknown_name
from aprl.training.embedding import FlattenSingletonVecEnv
from aprl.training.schedules import (
    Annealer,
    ConditionalAnnealer,
    ConditionalParams,
    ConstantAnnealer,
    EpisodeStatistics,
    LinearAnnealer,
)

KINDS = ("sparse", "dense")
Weights = Mapping[str, Mapping[str, float]]


def annealer_from_params(params: Mapping[str, Any], episodes: EpisodeStatistics) -> Annealer:
    """The dense reward's share `c` over the run, as `rew_shape_params` asks for it.

    `metric` given: conditional, see `ConditionalParams`. Else `anneal_frac` given: from 1 to 0 over
    that fraction of the run (0: purely sparse throughout). Neither: one half throughout.

    Raises:
        ConfigError: unknown or unusable entries.
    """
    options = {name: value for name, value in params.items() if name != "weights"}
    if "metric" in options:
        return conditional_annealer("rew_shape_params", options, episodes)
    for name in options:
        if name != "anneal_frac":
            raise unknown_name("entry of rew_shape_params", name, ("anneal_frac", "metric"))
    frac = options.get("anneal_frac")
    return ConstantAnnealer(0.5) if frac is None else LinearAnnealer(1.0, 0.0, fraction(frac))


def noise_annealer_from_params(params: Mapping[str, Any], episodes: EpisodeStatistics) -> Annealer:
    """The victim's noise over the run, as `embed_noise_params` asks for it.

    `metric` given: conditional, see `ConditionalParams`. Else from `param`, a standard deviation,
    to 0 over `anneal_frac` of the run.

    Raises:
        ConfigError: unknown or unusable entries, or an `anneal_frac` of 0.
    """
    if "metric" in params:
        return conditional_annealer("embed_noise_params", params, episodes)
    for name in params:
        if name not in ("anneal_frac", "param"):
            known = ("anneal_frac", "metric", "param")
            raise unknown_name("entry of embed_noise_params", name, known)
    start = params.get("param", 0.5)
    if isinstance(start, bool) or not isinstance(start, int | float) or not 0 <= start < np.inf:
        raise ConfigError(f"embed_noise_params.param must be a number >= 0, got {start!r}")
    frac = fraction(params.get("anneal_frac", 0.5))
    if frac == 0:
        raise ConfigError("embed_noise_params.anneal_frac must be above 0: there would be no noise")
    return LinearAnnealer(float(start), 0.0, frac)


def conditional_annealer(
    where: str, params: Mapping[str, Any], episodes: EpisodeStatistics
) -> ConditionalAnnealer:
    """Make a `ConditionalAnnealer` from a config's entry, which stays as it is.

    Raises:
        ConfigError: unknown or unusable values.
    """
    known = [f.name for f in fields(ConditionalParams)]
    for name in params:
        if name not in known:
            raise unknown_name(f"entry of {where}", name, known)
    return ConditionalAnnealer(ConditionalParams(**params), episodes)


def fraction(value: Any) -> float:
    """A fraction of the run.

    Raises:
        ConfigError: no number in [0, 1].
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"anneal_frac must be a number in [0, 1], got {value!r}")
    return float(value)


def statistics_window(*params: Mapping[str, Any]) -> int:
    """Episodes that `EpisodeStatistics` must keep for annealers of these params."""
    windows = [p.get("window_size", 1) for p in params]
    return max([w for w in windows if isinstance(w, int)], default=1)


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
    if not any(weights[kind] for kind in KINDS):
        raise ConfigError("no reward term has a weight; set rew_shape=False for the raw reward")
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
        episodes: told of every finished episode.

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
        episodes: EpisodeStatistics | None = None,
    ) -> None:
        super().__init__(venv)
        check_weights(weights)
        self.episodes = EpisodeStatistics(1) if episodes is None else episodes
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
            finished = {kind: self._sums[kind][dones].tolist() for kind in KINDS}
            finished["length"] = self._lengths[dones].tolist()
            for name, values in finished.items():
                self._finished[name].extend(values)
            for episode in zip(*finished.values(), strict=True):
                self.episodes.add(*episode)
            for sums in self._sums.values():
                sums[dones] = 0.0
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
            "episodes": self.episodes.state_dict(),
            "annealer": _annealer_state(self._annealer),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._sums = {kind: sums.copy() for kind, sums in state["sums"].items()}
        self._lengths = state["lengths"].copy()
        self._finished = {name: list(values) for name, values in state["finished"].items()}
        self.episodes.load_state_dict(state["episodes"])
        if isinstance(self._annealer, ConditionalAnnealer):
            self._annealer.load_state_dict(state["annealer"])


def _annealer_state(annealer: Annealer) -> dict[str, Any] | None:
    return annealer.state_dict() if isinstance(annealer, ConditionalAnnealer) else None
