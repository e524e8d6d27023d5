"""Attacks that explore: a bonus for states that are new, or that are risky for the victim."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv

from aprl.configs.checks import require_at_least, require_within
from aprl.errors import ConfigError, unknown_name
from aprl.policies.spaces import as_floats, width
from aprl.training.attacks.base import (
    Attack,
    AttackRewardVecEnv,
    AttackSetting,
)
from aprl.training.embedding import FlattenSingletonVecEnv
from aprl.training.schedules import LinearAnnealer

KINDS = ("coverage", "risk")

INF = float("inf")


@dataclass(frozen=True)
class Intrinsic(Attack):
    """An intrinsic bonus beside the sparse reward, after IMAP (Zheng et al., arXiv 2305.02605).

    `coverage` pays for the distance to the nearest states seen before, an estimate of the entropy
    of the states visited. `risk` pays for keeping the victim near the states that it starts from,
    off its way to success: minus the distance between the two.

    Attributes:
        kind: coverage or risk.
        scale: of the bonus per step, at the start.
        anneal_frac: fraction of the run over which it fades out; the sparse reward has the last
            word.
        neighbours: nearest states that count.
        memory: states that are remembered; each new one takes the place of a random one.
        remember_frac: share of the states visited that is remembered.
        features: random projections of a state in which distance is measured.
    """

    name: ClassVar[str] = "intrinsic"
    kind: str = "coverage"
    scale: float = 0.01
    anneal_frac: float = 0.75
    neighbours: int = 8
    memory: int = 1024
    remember_frac: float = 0.05
    features: int = 32

    def check(self) -> None:
        """See `Attack.check`."""
        if self.kind not in KINDS:
            raise unknown_name("kind of bonus", self.kind, KINDS)
        require_within("scale", self.scale, 0, INF, open_high=True)
        require_within("anneal_frac", self.anneal_frac, 0, 1)
        require_within("remember_frac", self.remember_frac, 0, 1, open_low=True)
        for name in ("neighbours", "memory", "features"):
            require_at_least(name, getattr(self, name), 1)
        if self.neighbours > self.memory:
            raise ConfigError(
                f"neighbours must not exceed memory, got {self.neighbours} and {self.memory}"
            )

    def wrap_reward(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting
    ) -> VecEnv:
        """See `Attack.wrap_reward`."""
        wrapper = _CoverageVecEnv if self.kind == "coverage" else _RiskVecEnv
        return wrapper(venv, flat, setting, self)


class _IntrinsicVecEnv(AttackRewardVecEnv):
    """States in normalised units, and the fading scale."""

    def __init__(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting, attack: Intrinsic
    ) -> None:
        super().__init__(venv, flat, setting)
        self.attack = attack
        self.fading = LinearAnnealer(attack.scale, 0.0, attack.anneal_frac)
        self._moments = RunningMeanStd(shape=(width(self._space()),))

    def _space(self) -> spaces.Space:
        return self.observation_space

    def _standardised(self, states: np.ndarray) -> np.ndarray:
        """States `(n, width)` in units of their running spread, which they are counted in."""
        rows = as_floats(states, self._space()).astype(np.float64)
        self._moments.update(rows)
        z = (rows - self._moments.mean) / np.sqrt(self._moments.var + 1e-8)
        return np.clip(z, -10, 10)

    def log_values(self) -> dict[str, float]:
        """See `AttackRewardVecEnv.log_values`."""
        return {**super().log_values(), "attack/scale": self.fading(self.setting.progress())}

    def state_dict(self) -> dict[str, Any]:
        """See `AttackRewardVecEnv.state_dict`."""
        return {**super().state_dict(), "moments": _moments_state(self._moments)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `AttackRewardVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        _load_moments(self._moments, state["moments"])


class _CoverageVecEnv(_IntrinsicVecEnv):
    def __init__(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting, attack: Intrinsic
    ) -> None:
        super().__init__(venv, flat, setting, attack)
        self._rng = np.random.default_rng(setting.seed)
        size = width(self._space())
        # Distances survive a random projection (Johnson and Lindenstrauss, 1984).
        self._projection = self._rng.standard_normal((size, attack.features)) / np.sqrt(size)
        self._memory = np.zeros((0, attack.features))

    def bonus(self, obs: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """`scale * log(1 + mean distance to the nearest remembered states)`."""
        states = self._standardised(obs) @ self._projection
        result = np.zeros(self.num_envs)
        k = self.attack.neighbours
        if len(self._memory) >= k:
            squares = (states**2).sum(1)[:, None] + (self._memory**2).sum(1)
            squares -= 2 * states @ self._memory.T
            nearest = np.partition(squares, k - 1, axis=1)[:, :k]
            mean = np.sqrt(np.maximum(nearest, 0)).mean(axis=1)
            result = self.fading(self.setting.progress()) * np.log1p(mean)
        self._remember(states)
        return result

    def _remember(self, states: np.ndarray) -> None:
        kept = states[self._rng.random(len(states)) < self.attack.remember_frac]
        room = self.attack.memory - len(self._memory)
        self._memory = np.concatenate([self._memory, kept[:room]])
        late = kept[room:]
        if len(late):
            places = self._rng.choice(self.attack.memory, min(len(late), self.attack.memory), False)
            self._memory[places] = late[: len(places)]

    def state_dict(self) -> dict[str, Any]:
        """See `AttackRewardVecEnv.state_dict`."""
        rng = self._rng.bit_generator.state
        return {**super().state_dict(), "memory": self._memory.copy(), "rng": rng}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `AttackRewardVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        self._memory = state["memory"].copy()
        self._rng.bit_generator.state = state["rng"]


class _RiskVecEnv(_IntrinsicVecEnv):
    def __init__(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting, attack: Intrinsic
    ) -> None:
        super().__init__(venv, flat, setting, attack)
        self._starts = RunningMeanStd(shape=self._moments.mean.shape)

    def _space(self) -> spaces.Space:
        return self.victim.policies[0].observation_space

    def begin(self, obs: np.ndarray) -> None:
        """See `AttackRewardVecEnv.begin`."""
        self._starts.update(as_floats(self.victim.embedded_obs, self._space()).astype(np.float64))

    def bonus(self, obs: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """`-scale * distance` of the victim's state from its mean start, per component."""
        seen = self.victim.embedded_obs
        if dones.any():
            starts = as_floats(seen[dones], self._space()).astype(np.float64)
            self._starts.update(starts)
        states = self._standardised(seen)
        start = (self._starts.mean - self._moments.mean) / np.sqrt(self._moments.var + 1e-8)
        distance = np.linalg.norm(states - np.clip(start, -10, 10), axis=1)
        distance /= np.sqrt(states.shape[1])
        return -self.fading(self.setting.progress()) * distance

    def state_dict(self) -> dict[str, Any]:
        """See `AttackRewardVecEnv.state_dict`."""
        return {**super().state_dict(), "starts": _moments_state(self._starts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `AttackRewardVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        _load_moments(self._starts, state["starts"])


def _moments_state(moments: RunningMeanStd) -> dict[str, Any]:
    return {
        "mean": moments.mean.copy(),
        "var": moments.var.copy(),
        "count": float(moments.count),
    }


def _load_moments(moments: RunningMeanStd, state: dict[str, Any]) -> None:
    moments.mean, moments.var = state["mean"].copy(), state["var"].copy()
    moments.count = state["count"]
