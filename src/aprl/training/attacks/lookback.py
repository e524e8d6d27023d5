"""The lookback attack: pay for what the adversary does to the victim's activations."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from aprl.configs.checks import require_at_least, require_within
from aprl.envs.base import BranchableGame
from aprl.errors import ConfigError
from aprl.training.attacks.base import (
    Attack,
    AttackRewardVecEnv,
    AttackSetting,
)
from aprl.training.embedding import FlattenSingletonVecEnv, PolicyPlayer
from aprl.training.transparent import check_transparency

INF = float("inf")


@dataclass(frozen=True)
class Lookback(Attack):
    """White box: what would the victim have felt had we acted like a base policy of late?

    Branches of the game start from the true state one, two, ... `lb_num` steps ago; in them a base
    policy acted at the adversary's seat, and the victim reacted. The bonus is the distance between
    the victim's activations in the game and in the branches, summed over the branches (the lookback
    reward in the code of Gleave et al.). Both policies play their modes in the branches, which are
    rows of one more batch, set to copies of the simulator's state.

    Attributes:
        lb_num: branches; each costs as much as the game itself.
        lb_mul: weight of the bonus.
        lb_type: kind of the base policy.
        lb_path: its path.
        keys: activations that count, see `aprl.training.transparent`.
    """

    name: ClassVar[str] = "lookback"
    lb_num: int = 1
    lb_mul: float = 0.05
    lb_type: str = "zoo"
    lb_path: str = "1"
    keys: tuple[str, ...] | list[str] = ("ff_policy",)

    @property
    def base_policy(self) -> tuple[str, str]:
        """See `Attack.base_policy`."""
        return self.lb_type, self.lb_path

    def check(self) -> None:
        """See `Attack.check`."""
        require_at_least("lb_num", self.lb_num, 1)
        require_within("lb_mul", self.lb_mul, 0, INF, open_high=True)
        if not self.keys:
            raise ConfigError("lookback needs at least one key of activations, got none")

    def wrap_reward(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting
    ) -> VecEnv:
        """See `Attack.wrap_reward`."""
        return _LookbackVecEnv(venv, flat, setting, self)


class _LookbackVecEnv(AttackRewardVecEnv):
    """Branch `b` of environment `e` is row `b * num_envs + e` of the batch of branches.

    A branch is overwritten when it is `lb_num` steps old: the branches form a ring. One whose own
    game ended, or whose true game did, does not count any more.
    """

    def __init__(
        self, venv: VecEnv, flat: FlattenSingletonVecEnv, setting: AttackSetting, attack: Lookback
    ) -> None:
        super().__init__(venv, flat, setting)
        self.attack = attack
        game = flat.game.unwrapped
        if not isinstance(game, BranchableGame):
            raise ConfigError(f"lookback needs a game whose state can be copied, not {game}")
        self.game = game
        self._keys = check_transparency(attack.keys, self.victim_player.policy)
        rows = attack.lb_num * self.num_envs
        branches = setting.make_game(rows)
        assert isinstance(branches, BranchableGame)
        self._branches = branches
        self._obs = list(branches.reset())
        base = setting.load(attack.lb_type, attack.lb_path)
        victim = self.victim_player.policy
        self._true_base = PolicyPlayer(base, self.num_envs, deterministic=True)
        self._base = PolicyPlayer(base, rows, deterministic=True)
        self._victim = PolicyPlayer(victim, rows, deterministic=True)
        self._own_obs = np.zeros(0)
        self._counts = np.zeros((attack.lb_num, self.num_envs), dtype=bool)
        self._next = 0

    def begin(self, obs: np.ndarray) -> None:
        """See `AttackRewardVecEnv.begin`."""
        self._true_base.begin()
        self._counts[:] = False
        self._own_obs = obs.copy()

    def step_async(self, actions: np.ndarray) -> None:
        """Let the branches go on, the newest from here, then play the step."""
        everywhere = np.arange(self.num_envs)
        rows = self._next * self.num_envs + everywhere
        self._branches.set_simulator_state(rows, self.game.get_simulator_state(everywhere))
        self._victim.take_over(rows, self.victim_player, everywhere)
        self._base.take_over(rows, self._true_base, everywhere)
        ours, victims = self.setting.agent_idx, self.setting.victim_idx
        self._obs[ours][rows] = self._own_obs
        self._obs[victims][rows] = self.victim.embedded_obs
        self._counts[self._next] = True
        self._next = (self._next + 1) % self.attack.lb_num

        chosen: list[np.ndarray] = [np.empty(0)] * 2
        chosen[ours] = self._base.act(self._obs[ours])
        chosen[victims] = self._victim.act(self._obs[victims])
        obs, _, ended, _ = self._branches.step(chosen)
        self._obs = [np.array(o) for o in obs]
        for player in (self._base, self._victim):
            player.observe_ends(ended)
        self._counts &= ~ended.reshape(self._counts.shape)
        self._true_base.act(self._own_obs)
        self.venv.step_async(actions)

    def bonus(self, obs: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """`lb_mul` times the distances of the victim's activations, summed over branches."""
        self._true_base.observe_ends(dones)
        self._own_obs = obs.copy()
        self._counts &= ~dones
        true = self._activations(self.victim_player, self.victim.embedded_obs)
        branch = self._activations(self._victim, self._obs[self.setting.victim_idx])
        total = np.zeros(self.num_envs)
        for key in self._keys:
            apart = branch[key].reshape(*self._counts.shape, -1) - true[key]
            total += (np.linalg.norm(apart, axis=2) * self._counts).sum(axis=0)
        return self.attack.lb_mul * total

    def _activations(self, player: PolicyPlayer, obs: np.ndarray) -> dict[str, np.ndarray]:
        seen = {"obs": obs, **player.activations(obs)}
        if "hid" in self._keys:
            seen["hid"] = player.state_after(obs)
        return {key: seen[key].reshape(len(obs), -1) for key in self._keys}

    def state_dict(self) -> dict[str, Any]:
        """See `AttackRewardVecEnv.state_dict`."""
        players = (self._true_base, self._base, self._victim)
        return {
            **super().state_dict(),
            "branches": self._branches.state_dict(),
            "obs": [o.copy() for o in self._obs],
            "own_obs": self._own_obs.copy(),
            "players": [player.state_dict() for player in players],
            "counts": self._counts.copy(),
            "next": self._next,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `AttackRewardVecEnv.load_state_dict`."""
        super().load_state_dict(state)
        self._branches.load_state_dict(state["branches"])
        self._obs = [o.copy() for o in state["obs"]]
        self._own_obs = state["own_obs"].copy()
        players = (self._true_base, self._base, self._victim)
        for player, saved in zip(players, state["players"], strict=True):
            player.load_state_dict(saved)
        self._counts, self._next = state["counts"].copy(), state["next"]
