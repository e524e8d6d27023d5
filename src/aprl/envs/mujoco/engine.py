"""The MuJoCo games as a `VecMultiEnv`: one call steps every environment on a C++ thread pool."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.base import Observations, Step, VecMultiEnv
from aprl.envs.episodes import TIE, EpisodeTracker, require_positive, saved_array, terminal_infos
from aprl.envs.mujoco.masking import OpponentMask
from aprl.envs.mujoco.rules import GOAL_REWARD, GameState, Rows, Rules, Terms, Verdict
from aprl.envs.mujoco.scene import NUM_AGENTS, PhysicsProfile, build_model
from aprl.envs.mujoco.simulation import BatchSimulation
from aprl.errors import ConfigError

ASIDE = (-3.0, 3.0)  # metres along y


class MujocoGame(VecMultiEnv):
    """A batch of one MuJoCo game.

    Args:
        rules: the game.
        profile: its physics.
        num_envs: size of the batch, at least 1.
        seed: environment `i` draws from stream `i` of this seed, whatever `num_envs` is.
        num_threads: of the stepping pool; 0 uses every logical CPU.
        max_episode_steps: ends episodes as truncated ties; None leaves only the game's own limit.
        end_when_down: a training aid, not the game: an episode also ends, lost, when this agent is
            down (`agent_done`), since nobody learns much from lying on the floor.
        aside: a training aid, not the game: (agent, fraction of the episodes) that start with this
            agent `ASIDE` metres off the middle line, out of the other's way.
        masks: per agent index, what hides its opponent from it.
        version: stage of the start curriculum that sumo and Kick and Defend were published with;
            None is the full game.

    The info of a finished game holds `aided: True` if a training aid changed it.

    Attributes:
        unstable_games: episodes ended as ties so far because physics or actions were not finite.
    """

    def __init__(
        self,
        rules: type[Rules],
        profile: PhysicsProfile,
        num_envs: int,
        seed: int | np.random.SeedSequence = 0,
        num_threads: int = 0,
        max_episode_steps: int | None = None,
        end_when_down: int | None = None,
        aside: tuple[int, float] | None = None,
        masks: Mapping[int, OpponentMask] | None = None,
        version: float | None = None,
    ) -> None:
        require_positive(num_envs=num_envs)
        if max_episode_steps is not None:
            require_positive(max_episode_steps=max_episode_steps)
        self.profile = profile
        self.model = build_model(rules.scene, profile)
        self.rules = rules(self.model, version)
        self.sim = BatchSimulation(self.model, num_envs, num_threads)
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.end_when_down = end_when_down
        self.aside = aside
        body = rules.scene.body
        observation = spaces.Box(-np.inf, np.inf, (self.rules.observation_dim,), np.float32)
        action = spaces.Box(-body.control_limit, body.control_limit, (body.nu,), np.float32)
        self.observation_spaces = (observation,) * NUM_AGENTS
        self.action_spaces = (action,) * NUM_AGENTS
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._rngs = [np.random.default_rng(child) for child in root.spawn(num_envs)]
        self._episodes = EpisodeTracker(NUM_AGENTS, num_envs)
        self._memory = np.zeros((num_envs, len(self.rules.remembered)))
        self._masks = _by_agent(masks or {})
        self._views = [
            mask.view(self.model.qpos0[self.rules.agents[1 - agent].qpos]) if mask else None
            for agent, mask in enumerate(self._masks)
        ]
        self._terms: tuple[Terms, ...] = ({}, {})
        self._all = np.arange(num_envs)
        self._aided = np.zeros(num_envs, dtype=bool)
        self.unstable_games = 0

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`."""
        self._episodes.restart()
        self._begin(self._all)
        return self.observe()

    def _begin(self, env_ids: np.ndarray) -> None:
        """Put environments into fresh starting states."""
        model = self.model
        qpos = np.empty((len(env_ids), model.nq))
        qvel = np.empty((len(env_ids), model.nv))
        for row, env in enumerate(env_ids):
            rng = self._rngs[env]
            start = self.rules.start(rng)
            qpos[row], qvel[row], self._memory[env] = start.qpos, start.qvel, start.memory
            self._aided[env] = self.aside is not None and rng.random() < self.aside[1]
            if self.aside is not None and self._aided[env]:
                qpos[row, self.rules.agents[self.aside[0]].qpos.start + 1] += rng.choice(ASIDE)
        self.rules.prepare(self.sim, env_ids, self._memory[env_ids])
        self.sim.reset(env_ids, qpos, qvel)

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`. Actions beyond the motors' limits act as the limit."""
        control = np.concatenate(actions, axis=1)
        broken = ~np.isfinite(control).all(axis=1)
        if broken.any():
            control[broken] = 0.0
            actions = [np.where(broken[:, None], 0.0, action) for action in actions]
        before = self.rules.before(self.sim)
        broken |= self.sim.step(control)
        state = GameState(self.sim, self._episodes.lengths + 1, self._memory)
        verdict = self.rules.judge(state, tuple(actions), before)
        if self.end_when_down is not None:
            self._aided |= self._give_up(self.end_when_down, verdict)
        rewards = verdict.move + verdict.goal
        done, winner = verdict.done, verdict.winner
        self._terms = verdict.terms
        if broken.any():
            self._call_off(broken, rewards, done, winner)
        self._episodes.add(rewards)
        truncated = np.zeros(self.num_envs, dtype=bool)
        if self.max_episode_steps is not None:
            truncated = ~done & (self._episodes.lengths >= self.max_episode_steps)
            done = done | truncated
        obs = self.observe()
        if not done.any():
            return obs, rewards, done, [{} for _ in range(self.num_envs)]
        episodes = self._episodes.finish(done)
        infos = terminal_infos(done, truncated, obs, self._terms, winner, episodes)
        for env in np.flatnonzero(broken):
            infos[env]["unstable"] = True
        ended = np.flatnonzero(done)
        for env in ended[self._aided[ended]]:
            infos[env]["aided"] = True
        self._begin(ended)
        for whole, fresh in zip(obs, self.observe(ended), strict=True):
            whole[ended] = fresh
        return obs, rewards, done, infos

    @staticmethod
    def _give_up(agent: int, verdict: Verdict) -> np.ndarray:
        """Count agents that are down as beaten; where that ended the game, `(num_envs,)` bool."""
        down = verdict.terms[agent]["agent_done"] & ~verdict.done
        verdict.done[down] = True
        verdict.winner[down] = 1 - agent
        verdict.goal[agent, down] = -GOAL_REWARD
        verdict.terms[agent]["reward_remaining"] = verdict.goal[agent]
        return down

    def _call_off(
        self, broken: np.ndarray, rewards: np.ndarray, done: np.ndarray, winner: np.ndarray
    ) -> None:
        """End unstable games as ties without reward: their state no longer means anything."""
        self.unstable_games += int(broken.sum())
        rewards[:, broken] = 0.0
        done[broken] = True
        winner[broken] = TIE
        for terms in self._terms:
            for name, value in terms.items():
                terms[name] = np.where(broken, np.zeros_like(value), value)

    def terms(self, agent_idx: int) -> dict[str, np.ndarray]:
        """See `VecMultiEnv.terms`."""
        return self._terms[agent_idx]

    def get_physics_state(
        self, env_ids: Sequence[int] | np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions `(k, nq)` and velocities `(k, nv)` of the chosen environments, copied."""
        ids = self._valid_ids(env_ids)
        return self.sim.qpos[ids].copy(), self.sim.qvel[ids].copy()

    def set_physics_state(
        self,
        env_ids: Sequence[int] | np.ndarray,
        qpos: np.ndarray,
        qvel: np.ndarray,
        warmstart: np.ndarray | None = None,
        elapsed: np.ndarray | None = None,
        memory: np.ndarray | None = None,
    ) -> None:
        """Put environments into given states.

        Args:
            env_ids: sorted, unique indices `(k,)`.
            qpos: `(k, nq)`.
            qvel: `(k, nv)`.
            warmstart: accelerations `(k, nv)` from which the solver of `-v0` starts; zeros if None.
            elapsed: steps played `(k,)`; None leaves the counters as they are.
            memory: what the rules remember, `(k, len(rules.remembered))`; None leaves it.
        """
        ids = self._valid_ids(env_ids)
        if elapsed is not None:
            self._episodes.lengths[ids] = elapsed
        if memory is not None:
            self._memory[ids] = memory
            self.rules.prepare(self.sim, ids, self._memory[ids])
        self.sim.set_state(ids, qpos, qvel, warmstart)

    def get_simulator_state(self, env_ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """Complete states of games in progress, opaque rows `(k, n)`, for branching and planning.

        They hold the simulation, what the rules remember, and the episode's length and returns; not
        the random generators, from which only the next episodes' starts are drawn.
        """
        ids = self._valid_ids(env_ids)
        blocks = [self.sim.copy_state(ids), self._memory[ids]]
        blocks += [self._episodes.lengths[ids, None], self._episodes.returns[:, ids].T]
        return np.concatenate(blocks, axis=1)

    def set_simulator_state(self, env_ids: Sequence[int] | np.ndarray, rows: np.ndarray) -> None:
        """Put back rows of `get_simulator_state`, into the same or other environments."""
        ids = self._valid_ids(env_ids)
        remembered = self._memory.shape[1]
        columns = np.cumsum([self.sim.state_size, remembered, 1])
        simulation, memory, lengths, returns = np.split(rows, columns, axis=1)
        self._memory[ids] = memory
        self._episodes.lengths[ids] = lengths[:, 0]
        self._episodes.returns[:, ids] = returns.T
        self.rules.prepare(self.sim, ids, memory)
        self.sim.restore_state(ids, simulation)

    @property
    def state(self) -> GameState:
        """Where every game stands, as its rules see it; arrays are live."""
        return GameState(self.sim, self._episodes.lengths, self._memory)

    def observe(self, env_ids: Rows = slice(None)) -> Observations:
        """Observations of the present states, `(k, obs_dim)` per agent."""
        return self.rules.observe(self.state, env_ids, self._views)

    def _valid_ids(self, env_ids: Sequence[int] | np.ndarray) -> np.ndarray:
        ids = np.asarray(env_ids, dtype=np.int64)
        if len(ids) and (ids[0] < 0 or ids[-1] >= self.num_envs or (np.diff(ids) <= 0).any()):
            raise ConfigError(
                f"env_ids must be sorted, unique and below {self.num_envs}, got {ids.tolist()}"
            )
        return ids

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`."""
        return {
            "simulator": self.sim.copy_state(slice(None)),
            "memory": self._memory.copy(),
            "episodes": self._episodes.state_dict(),
            "masks": [mask and mask.state_dict() for mask in self._masks],
            "terms": [dict(terms) for terms in self._terms],
            "rngs": [rng.bit_generator.state for rng in self._rngs],
            "aided": self._aided.copy(),
            "unstable_games": self.unstable_games,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        self._memory = saved_array(state, "memory", self._memory.shape, np.float64)
        self.rules.prepare(self.sim, self._all, self._memory)
        self.sim.restore_state(self._all, state["simulator"])
        for mask, saved in zip(self._masks, state["masks"], strict=True):
            if mask is not None:
                mask.load_state_dict(saved)
        self._episodes.load_state_dict(state["episodes"])
        self._terms = tuple(state["terms"])
        for rng, saved in zip(self._rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved
        self._aided = saved_array(state, "aided", self._aided.shape, np.bool_)
        self.unstable_games = state["unstable_games"]


def _by_agent(masks: Mapping[int, OpponentMask]) -> list[OpponentMask | None]:
    for agent in masks:
        if agent not in range(NUM_AGENTS):
            raise ConfigError(f"agent {agent!r} cannot be masked; the agents are 0 and 1")
    return [masks.get(agent) for agent in range(NUM_AGENTS)]
