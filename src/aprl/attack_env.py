"""A game with its victim frozen, as ordinary Gymnasium environments: attack with any library.

After `import aprl`, `gymnasium.make("aprl/Attack-v0", game=..., victim_type=..., victim_path=...)`
is one environment, `gymnasium.make_vec(..., vectorization_mode="vector_entry_point")` a batch
stepped together.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aprl.envs import check_env_id, is_mujoco_game, make_vec
from aprl.envs.base import VecMultiEnv
from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, unknown_name
from aprl.policies.loader import DEFAULT_ZOO_DIR, load_policy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv

REWARDS: dict[str, Callable[[np.ndarray, dict[str, np.ndarray]], np.ndarray]] = {
    "game": lambda reward, terms: reward,
    "sparse": lambda reward, terms: terms["reward_remaining"],
}


class _Attack:
    """The game, its frozen victim, and the reward that the attacker is paid."""

    def __init__(
        self,
        num_envs: int,
        game: str,
        victim_type: str,
        victim_path: Any,
        index: int | None,
        deterministic: bool,
        reward: str,
        zoo_dir: str,
        options: dict[str, Any],
    ) -> None:
        check_env_id(game)
        if reward not in REWARDS:
            raise unknown_name("reward", reward, REWARDS)
        self.victim_index = victim_index(game) if index is None else index
        if self.victim_index not in (0, 1):
            raise ConfigError(f"victim_index must be 0 or 1, got {index!r}")
        self.agent_idx = 1 - self.victim_index
        self._num_envs, self._game, self._options = num_envs, game, options
        self._victim = {"policy_type": victim_type, "path": victim_path, "zoo_dir": zoo_dir}
        self._deterministic = deterministic
        self._reward = REWARDS[reward]
        self.build(0)

    def build(self, seed: int) -> None:
        """Set everything up anew; all randomness comes from `seed`."""
        env_seed, victim_seed = np.random.SeedSequence(seed).spawn(2)
        game = make_vec(self._game, self._num_envs, env_seed, **self._options)
        victim = load_policy(
            **self._victim,
            observation_space=game.observation_spaces[self.victim_index],
            action_space=game.action_spaces[self.victim_index],
            env_name=self._game,
            index=self.victim_index,
            seed=victim_seed,
        )
        curried = CurryVecEnv(game, victim, self.victim_index, self._deterministic)
        self.venv = FlattenSingletonVecEnv(curried, self.agent_idx)

    @property
    def game(self) -> VecMultiEnv:
        """The game below the wrappers."""
        return self.venv.game.unwrapped

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Observations, rewards, terminations, truncations and infos with text keys only."""
        self.venv.step_async(actions)
        obs, rewards, dones, raw = self.venv.step_wait()
        assert isinstance(obs, np.ndarray)
        rewards = self._reward(rewards, self.venv.terms())
        truncated = np.zeros_like(dones)
        infos: list[dict[str, Any]] = [{} for _ in raw]
        for env in np.flatnonzero(dones):
            info = raw[env]
            truncated[env] = info["TimeLimit.truncated"]
            won = [i for i in (self.agent_idx, self.victim_index) if info[i].get("winner")]
            infos[env] = {
                "terminal_observation": info["terminal_observation"],
                "is_success": won == [self.agent_idx],
                "winner": {self.agent_idx: "attacker", self.victim_index: "victim"}.get(
                    won[0] if won else -1, "tie"
                ),
            }
        return obs, rewards, dones & ~truncated, truncated, infos


class AttackEnv(gymnasium.Env[Any, Any]):
    """One game in which the victim is frozen and the other player acts.

    Args:
        game: id, such as `multicomp/YouShallNotPassHumans-v1`.
        victim_type: kind of the frozen policy; see `aprl.policies.load_policy`.
        victim_path: its path or, in the zoo, its tag.
        victim_index: the victim's index in the game; None: as Gleave et al. (2020) chose it.
        deterministic: the victim plays its mode instead of sampling.
        reward: `game`: the attacker's own, dense and sparse; `sparse`: the outcome alone.
        zoo_dir: imported published policies.
        render_mode: `rgb_array` or None.
        **options: of the game, see `aprl.envs.make_vec`.

    The last step's info holds `winner` ("attacker", "victim" or "tie") and `is_success`.

    Raises:
        ConfigError: unknown id or unusable value.
        PolicyError: the victim cannot be loaded, or does not fit the game.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as the base class declares it
        "render_modes": ["rgb_array"]
    }

    def __init__(
        self,
        game: str,
        victim_type: str = "zoo",
        victim_path: Any = "1",
        victim_index: int | None = None,
        deterministic: bool = False,
        reward: str = "game",
        zoo_dir: str = DEFAULT_ZOO_DIR,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
        if render_mode and not is_mujoco_game(game):
            raise ConfigError(f"{game} has no pictures; render_mode must be None")
        if is_mujoco_game(game):
            options.setdefault("num_threads", 1)
        self._attack = _Attack(
            1,
            game,
            victim_type,
            victim_path,
            victim_index,
            deterministic,
            reward,
            zoo_dir,
            options,
        )
        self.render_mode = render_mode
        self.observation_space = self._attack.venv.observation_space
        self.action_space = self._attack.venv.action_space
        if isinstance(self._attack.game, MujocoGame):
            fps = round(1 / self._attack.game.rules.dt)
            self.metadata = {**self.metadata, "render_fps": fps}
        else:
            self.metadata = {"render_modes": []}
        self._renderer: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game; `seed` fixes its start, the victim's actions and all that follows."""
        super().reset(seed=seed)
        if seed is not None:
            self.close()
            self._attack.build(seed)
        return self._attack.venv.reset()[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step; see the class for the info."""
        obs, rewards, terminated, truncated, infos = self._attack.step(np.asarray(action)[None])
        info = infos[0]
        ended = bool(terminated[0] or truncated[0])
        seen = info.pop("terminal_observation") if ended else obs[0]
        return seen, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> np.ndarray | None:
        """A picture `(480, 640, 3)` uint8; None without a render mode."""
        if self.render_mode is None:
            return None
        from aprl.envs.mujoco.rendering import GameRenderer  # OpenGL only where it is asked for

        game = self._attack.game
        assert isinstance(game, MujocoGame)
        if self._renderer is None:
            self._renderer = GameRenderer(game, victim=self._attack.victim_index)
        return self._renderer.frame()

    def close(self) -> None:
        """Release the game and what draws it."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._attack.venv.close()


class AttackVectorEnv(VectorEnv[Any, Any, Any]):
    """A batch of `AttackEnv`, stepped together; a game that ends starts anew in the same step.

    Args:
        num_envs: games in the batch.
        game: see `AttackEnv`, as all that follow.
        victim_type: see `AttackEnv`.
        victim_path: see `AttackEnv`.
        victim_index: see `AttackEnv`.
        deterministic: see `AttackEnv`.
        reward: see `AttackEnv`.
        zoo_dir: see `AttackEnv`.
        **options: of the game, see `aprl.envs.make_vec`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        game: str,
        victim_type: str = "zoo",
        victim_path: Any = "1",
        victim_index: int | None = None,
        deterministic: bool = False,
        reward: str = "game",
        zoo_dir: str = DEFAULT_ZOO_DIR,
        **options: Any,
    ) -> None:
        self._attack = _Attack(
            num_envs,
            game,
            victim_type,
            victim_path,
            victim_index,
            deterministic,
            reward,
            zoo_dir,
            options,
        )
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}
        venv = self._attack.venv
        self.single_observation_space = venv.observation_space
        self.single_action_space = venv.action_space
        self.observation_space = batch_space(venv.observation_space, num_envs)
        self.action_space = batch_space(venv.action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start all games; see `AttackEnv.reset`. One seed for the whole batch.

        Raises:
            ConfigError: a list of seeds; environments draw from streams of one seed.
        """
        if seed is not None:
            if not isinstance(seed, int | np.integer):
                raise ConfigError(f"one seed is needed for the whole batch, got {seed!r}")
            super().reset(seed=int(seed))
            self._attack.venv.close()
            self._attack.build(int(seed))
        return self._attack.venv.reset(), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one step in every game; ended ones give `final_obs` and `final_info`."""
        obs, rewards, terminated, truncated, infos = self._attack.step(np.asarray(actions))
        batched: dict[str, Any] = {}
        for env in np.flatnonzero(terminated | truncated):
            final = infos[env].pop("terminal_observation")
            batched = self._add_info(
                batched, {"final_obs": final, "final_info": infos[env]}, int(env)
            )
        return obs, rewards, terminated, truncated, batched

    def close_extras(self, **kwargs: Any) -> None:
        """Release the games."""
        self._attack.venv.close()
