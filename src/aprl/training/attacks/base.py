"""What an attack is: a change of the game, of the adversary's reward, or of neither."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from aprl.envs.base import VecMultiEnv
from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.policies.network import NetworkPolicy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, PolicyPlayer


@dataclass(frozen=True)
class AttackSetting:
    """What an attack may use of the run that it is part of.

    Attributes:
        agent_idx: the adversary's index in the game; the victim's is the other.
        load: loads a policy for the adversary's seat, from its type and path.
        make_game: makes another batch of the same game, of a given size.
        sparse_weights: of the terms that make up the sparse reward.
        gamma: the learner's discount factor.
        progress: tells the progress of the whole run, in [0, 1].
        seed: for what the attack draws.
    """

    agent_idx: int
    load: Callable[[str, Any], Policy]
    make_game: Callable[[int], VecMultiEnv]
    sparse_weights: Mapping[str, float]
    gamma: float
    progress: Callable[[], float]
    seed: np.random.SeedSequence

    @property
    def victim_idx(self) -> int:
        """The victim's index in the game."""
        return 1 - self.agent_idx


class Attack(ABC):
    """One way to attack. Subclasses are dataclasses of their hyperparameters.

    The attacks differ in what the adversary is paid for, on top of its own sparse reward, or in
    what it can do. Each hook returns what it is given unless an attack overrides it.
    """

    name: ClassVar[str]

    @property
    def base_policy(self) -> tuple[str, str] | None:
        """Type and path of the policy at the adversary's seat that it starts from, if any."""
        return None

    @abstractmethod
    def check(self) -> None:
        """Refuse hyperparameters that cannot work.

        Raises:
            ConfigError: one of them, by name.
        """

    def wrap_game(self, game: VecMultiEnv, setting: AttackSetting) -> VecMultiEnv:
        """Change what the adversary sees and does; called before the victim is embedded."""
        return game

    def wrap_reward(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting
    ) -> VecEnv:
        """Change what the adversary is paid.

        Args:
            venv: gives the reward as configured.
            flat: the game with the victim embedded, at the bottom of `venv`.
            setting: the run.
        """
        return venv

    def finished_policy(self, learned: NetworkPolicy, setting: AttackSetting) -> NetworkPolicy:
        """What plays the game as it is, made of what was learned in the changed one."""
        return learned


class AttackRewardVecEnv(VecEnvWrapper, ABC):
    """Adds a bonus to the reward, and logs its mean per step.

    Args:
        venv: gives the reward to which the bonus is added.
        flat: the game with the victim embedded, at the bottom of `venv`.
        setting: the run.
    """

    def __init__(self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting) -> None:
        super().__init__(venv)
        self.flat, self.setting = flat, setting
        self.clear()

    @property
    def victim(self) -> CurryVecEnv:
        """The embedded victim.

        Raises:
            ConfigError: nobody is embedded.
        """
        if not isinstance(self.flat.game, CurryVecEnv):
            raise ConfigError("this attack needs an embedded victim")
        return self.flat.game

    @property
    def victim_player(self) -> PolicyPlayer:
        """The victim's policy at play.

        Raises:
            ConfigError: the victim is a mixture of policies.
        """
        player = self.victim.player
        if not isinstance(player, PolicyPlayer):
            raise ConfigError("this attack needs one victim, not a mixture of policies")
        return player

    @abstractmethod
    def bonus(self, obs: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """What is added for the step just played, `(num_envs,)`.

        Args:
            obs: the adversary's observations after the step, of the next episode where one ended.
            dones: whether an episode ended, `(num_envs,)`.
        """

    def reset(self) -> np.ndarray:
        """Start new episodes."""
        obs = self.venv.reset()
        assert isinstance(obs, np.ndarray)
        self.begin(obs)
        return obs

    def begin(self, obs: np.ndarray) -> None:
        """All environments start an episode, with these observations."""

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step; the bonus is part of the reward."""
        obs, rewards, dones, infos = self.venv.step_wait()
        assert isinstance(obs, np.ndarray)
        bonus = self.bonus(obs, dones)
        self._total += float(bonus.sum())
        self._steps += self.num_envs
        return obs, rewards + bonus, dones, infos

    def clear(self) -> None:
        """Forget the steps that `log_values` averages over."""
        self._total, self._steps = 0.0, 0

    def log_values(self) -> dict[str, float]:
        """The mean bonus per step since `clear`."""
        return {"attack/bonus": self._total / self._steps} if self._steps else {}

    def state_dict(self) -> dict[str, Any]:
        """The sums that the log is made of; subclasses add their memory."""
        return {"total": self._total, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._total, self._steps = state["total"], state["steps"]
