"""One game at a time as a PettingZoo `ParallelEnv`."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from aprl.envs.base import VecMultiEnv
from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.registry import check_env_id, is_mujoco_game, make_vec
from aprl.errors import ConfigError

RENDER_MODES = ("human", "rgb_array")


def parallel_env(env_id: str, render_mode: str | None = None, **options: Any) -> "ParallelGame":
    """Make one game, with PettingZoo's parallel API.

    Args:
        env_id: one of `aprl.envs.ENV_IDS`.
        render_mode: `rgb_array`, `human` (a window; needs a display) or None; MuJoCo games only.
        **options: of the game, see `aprl.envs.make_vec`.

    Raises:
        ConfigError: unknown id, mode or option value.
    """
    return ParallelGame(env_id, render_mode, **options)


class ParallelGame(ParallelEnv[str, Any, Any]):
    """A batch of one game, seen as PettingZoo sees games.

    Agents are called `agent_0` and so on, in the game's order. An agent's info holds its reward
    terms in every step, and in the last one `winner: True` if it won.

    What the game draws at random is fixed by `reset(seed=...)`; without a seed, by the last one.
    """

    def __init__(self, env_id: str, render_mode: str | None = None, **options: Any) -> None:
        check_env_id(env_id)
        if render_mode is not None:
            if render_mode not in RENDER_MODES:
                raise ConfigError(f"render_mode must be one of {RENDER_MODES}, got {render_mode!r}")
            if not is_mujoco_game(env_id):
                raise ConfigError(f"{env_id} has no pictures; render_mode must be None")
        self.metadata = {"name": env_id, "render_modes": [], "is_parallelizable": True}
        self.render_mode = render_mode
        self._env_id = env_id
        self._options = options
        self._venv = self._make(0)
        self.possible_agents = [f"agent_{i}" for i in range(self._venv.num_agents)]
        self.agents: list[str] = []
        if isinstance(self._venv, MujocoGame):
            self.metadata["render_modes"] = ["rgb_array"]
            self.metadata["render_fps"] = round(1 / self._venv.rules.dt)
        self._renderer: Any = None
        self._window: Any = None

    def _make(self, seed: int) -> VecMultiEnv:
        options = dict(self._options)
        if is_mujoco_game(self._env_id):
            options.setdefault("num_threads", 1)
        return make_vec(self._env_id, num_envs=1, seed=seed, **options)

    def observation_space(self, agent: str) -> spaces.Space:
        """Space of one agent's observations."""
        return self._venv.observation_spaces[self.possible_agents.index(agent)]

    def action_space(self, agent: str) -> spaces.Space:
        """Space of one agent's actions."""
        return self._venv.action_spaces[self.possible_agents.index(agent)]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start a game; `options` are not used.

        Returns:
            Observations and (empty) infos by agent.
        """
        if seed is not None:
            self._reseed(seed)
        self.agents = list(self.possible_agents)
        return self._by_agent(self._venv.reset()), {agent: {} for agent in self.agents}

    def _reseed(self, seed: int) -> None:
        seeding.np_random(seed)  # refuses what is no seed
        self._venv.close()
        self._venv = self._make(seed)
        self._close_views()

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play one step; `actions` has an entry for every agent.

        Returns:
            Observations, rewards, terminations, truncations and infos by agent.

        Raises:
            ConfigError: the game is over, or an action is missing.
        """
        if not self.agents:
            raise ConfigError("the game is over; call reset()")
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ConfigError(f"no action for {', '.join(missing)}")
        batch = [np.asarray(actions[agent])[None] for agent in self.agents]
        obs, rewards, dones, infos = self._venv.step(batch)
        info, done = infos[0], bool(dones[0])
        truncated = done and info["TimeLimit.truncated"]
        agents = self.agents
        result = (
            self._by_agent(info["terminal_observation"], batched=False)
            if done
            else self._by_agent(obs),
            {agent: float(rewards[i, 0]) for i, agent in enumerate(agents)},
            dict.fromkeys(agents, done and not truncated),
            dict.fromkeys(agents, truncated),
            {
                agent: info[i]
                if done
                else {name: float(term[0]) for name, term in self._venv.terms(i).items()}
                for i, agent in enumerate(agents)
            },
        )
        if done:
            self.agents = []
        return result

    def _by_agent(self, obs: tuple[Any, ...], batched: bool = True) -> dict[str, Any]:
        rows = [o[0] for o in obs] if batched else obs
        return dict(zip(self.possible_agents, rows, strict=True))

    def render(self) -> np.ndarray | None:
        """A picture `(480, 640, 3)` uint8 of the game; None where it is shown in a window.

        Raises:
            ConfigError: no render mode was chosen.
            RenderError: no OpenGL, or no display for a window.
        """
        from aprl.envs.mujoco import rendering  # OpenGL only where it is asked for

        if self.render_mode is None:
            raise ConfigError("render() needs a render_mode; give it to parallel_env")
        assert isinstance(self._venv, MujocoGame)
        if self.render_mode == "human":
            self._window = self._window or rendering.Window(self._venv)
            self._window.show()
            return None
        self._renderer = self._renderer or rendering.GameRenderer(self._venv)
        return self._renderer.frame()

    def close(self) -> None:
        """Release the game and what draws it."""
        self._close_views()
        self._venv.close()

    def _close_views(self) -> None:
        for view in (self._renderer, self._window):
            if view is not None:
                view.close()
        self._renderer = self._window = None
