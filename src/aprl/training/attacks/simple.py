"""Attacks that need no memory: the baseline, the difference of values, and the noise ball."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from aprl.configs.checks import require_within
from aprl.envs.base import VecMultiEnv
from aprl.errors import ConfigError, unknown_name
from aprl.policies.merged import MergedPolicy
from aprl.policies.network import NetworkPolicy
from aprl.training.attacks.base import (
    Attack,
    AttackRewardVecEnv,
    AttackSetting,
)
from aprl.training.attacks.merge import MergeAgentVecEnv
from aprl.training.embedding import FlattenSingletonVecEnv

INF = float("inf")


@dataclass(frozen=True)
class Baseline(Attack):
    """The adversary's own sparse reward and nothing else (Gleave et al., ICLR 2020)."""

    name: ClassVar[str] = "baseline"

    def check(self) -> None:
        """Nothing to check."""


@dataclass(frozen=True)
class ValueDifference(Attack):
    """Also make the victim's value small (Guo et al., ICML 2021).

    The objective is the adversary's value minus `coefficient` times the victim's. Values are linear
    in rewards, so that a critic of the difference of the two *rewards* estimates the difference of
    the values, and its advantages are the difference of the paper's two advantages. In a game that
    is not zero-sum, such as one with ties that both sides lose, this differs from the baseline.

    Attributes:
        coefficient: weight of the victim's sparse reward.
        estimator: `critic`: the learner's critic, as above. `victim`: the adversary is paid minus
            the victim's one-step surprise `r + gamma V(s') - V(s)` under the victim's own value
            head V, which has the same sum over an episode up to its start and comes earlier.
        value_scale: what V is multiplied by, to be in units of the weighted sparse reward.
    """

    name: ClassVar[str] = "value_difference"
    coefficient: float = 1.0
    estimator: str = "critic"
    value_scale: float = 0.01

    def check(self) -> None:
        """See `Attack.check`."""
        require_within("coefficient", self.coefficient, 0, INF, open_high=True)
        require_within("value_scale", self.value_scale, 0, INF, open_high=True)
        if self.estimator not in ("critic", "victim"):
            raise unknown_name("estimator", self.estimator, ("critic", "victim"))

    def wrap_reward(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting
    ) -> VecEnv:
        """See `Attack.wrap_reward`."""
        return _ValueDifferenceVecEnv(venv, flat, setting, self)


class _ValueDifferenceVecEnv(AttackRewardVecEnv):
    def __init__(
        self,
        venv: VecEnv,
        flat: FlattenSingletonVecEnv,
        setting: AttackSetting,
        attack: ValueDifference,
    ) -> None:
        super().__init__(venv, flat, setting)
        self.attack = attack
        self._values = np.zeros(self.num_envs)
        if attack.estimator == "victim" and not isinstance(
            self.victim_player.policy, NetworkPolicy
        ):
            raise ConfigError("estimator 'victim' needs a victim with a value head")

    def _estimate(self) -> np.ndarray:
        values = self.victim_player.value(self.victim.embedded_obs)
        return self.attack.value_scale * values.astype(np.float64)

    def begin(self, obs: np.ndarray) -> None:
        """See `AttackRewardVecEnv.begin`."""
        if self.attack.estimator == "victim":
            self._values = self._estimate()

    def bonus(self, obs: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """See `AttackRewardVecEnv.bonus`."""
        terms = self.flat.game.terms(self.setting.victim_idx)
        victims = np.zeros(self.num_envs)
        for term, weight in self.setting.sparse_weights.items():
            victims += weight * terms[term]
        if self.attack.estimator == "victim":
            later = self._estimate()
            victims += self.setting.gamma * np.where(dones, 0.0, later) - self._values
            self._values = later
        return -self.attack.coefficient * victims

    def state_dict(self) -> dict[str, Any]:
        """See `AttackRewardVecEnv.state_dict`."""
        return {**super().state_dict(), "values": self._values.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `AttackRewardVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        self._values = state["values"].copy()


@dataclass(frozen=True)
class NoiseBall(Attack):
    """A bounded perturbation of a base policy's actions (Gleave et al.'s noise-ball adversaries).

    Attributes:
        noise_val: size of the ball, relative to the game's action box.
        base_type: kind of the base policy, at the adversary's seat.
        base_path: its path.
    """

    name: ClassVar[str] = "noise_ball"
    noise_val: float = 0.1
    base_type: str = "zoo"
    base_path: str = "1"

    @property
    def base_policy(self) -> tuple[str, str]:
        """See `Attack.base_policy`."""
        return self.base_type, self.base_path

    def check(self) -> None:
        """See `Attack.check`."""
        require_within("noise_val", self.noise_val, 0, INF, open_low=True, open_high=True)

    def wrap_game(self, game: VecMultiEnv, setting: AttackSetting) -> VecMultiEnv:
        """See `Attack.wrap_game`."""
        return MergeAgentVecEnv(game, self._base(setting), setting.agent_idx, self.noise_val)

    def finished_policy(self, learned: NetworkPolicy, setting: AttackSetting) -> NetworkPolicy:
        """See `Attack.finished_policy`."""
        return MergedPolicy.of(self._base(setting), learned)

    def _base(self, setting: AttackSetting) -> NetworkPolicy:
        base = setting.load(self.base_type, self.base_path)
        if not isinstance(base, NetworkPolicy):
            raise ConfigError(f"base_type {self.base_type!r} is no network; a noise ball needs one")
        base.seed(setting.seed)
        return base
