"""The rules of a game over a batch of simulations: starts, observations, rewards, ends, winners.

Everything is computed for all environments at once. Facts: Bansal et al. (2018) as re-published in
`gym_compete` 0.0.2; derived quantities are those of the new state (see `BatchSimulation`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np

from aprl.envs.mujoco.scene import GOAL_LINE, AgentSlices, Scene, agent_slices
from aprl.envs.mujoco.simulation import FRAME_SKIP, BatchSimulation

GOAL_REWARD = 1000.0
RESET_NOISE = 0.1  # half-width of the uniform qpos noise, and std of the qvel noise

Rows = np.ndarray | slice
Terms = dict[str, np.ndarray]
OpponentView = Callable[[np.ndarray], np.ndarray]


@dataclass
class GameState:
    """Where every game of the batch stands.

    Attributes:
        sim: the simulations.
        elapsed: steps played in each episode, `(N,)` int64.
        memory: what the rules remember of each episode beyond the simulation, `(N, m)` float64;
            `Rules.remembered` names the columns.
    """

    sim: BatchSimulation
    elapsed: np.ndarray
    memory: np.ndarray


@dataclass
class Start:
    """Where one episode begins: positions `(nq,)`, velocities `(nv,)`, and the rules' memory."""

    qpos: np.ndarray
    qvel: np.ndarray
    memory: tuple[float, ...] = ()


@dataclass
class Verdict:
    """What one step meant, per environment.

    Attributes:
        move: dense part of each agent's reward, `(2, N)`.
        goal: sparse part, `(2, N)`.
        done: the game ended, `(N,)` bool.
        winner: agent index, or `TIE`, `(N,)`.
        terms: per agent, named reward terms `(N,)`; cost terms are positive numbers.
    """

    move: np.ndarray
    goal: np.ndarray
    done: np.ndarray
    winner: np.ndarray
    terms: tuple[Terms, Terms]


@dataclass
class Before:
    """Quantities of the state before a step that rewards need; `com_x` is `(2, N)` in metres."""

    com_x: np.ndarray


class Rules(ABC):
    """One game. Stateless between steps: what an episode must remember is in `GameState.memory`.

    Args:
        model: the compiled scene.
        version: stage of the published start curriculum, for games that have one (see `start`);
            None is the full game.
    """

    scene: ClassVar[Scene]
    observation_dim: ClassVar[int]  # length of each agent's observation vector
    max_steps: ClassVar[int | None] = None  # a limit that is part of the game's own rules
    remembered: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: mujoco.MjModel, version: float | None = None) -> None:
        self.model = model
        self.version = version
        self.agents: tuple[AgentSlices, AgentSlices] = agent_slices(model)
        self.dt = self.scene.timestep * FRAME_SKIP
        self.goals = np.array([-np.sign(pos[0]) * GOAL_LINE for pos, _ in self.scene.poses])

    def start(self, rng: np.random.Generator) -> Start:
        """Draw where an episode begins; by default the scene's poses with noise."""
        noise = rng.uniform(-RESET_NOISE, RESET_NOISE, self.model.nq)
        return Start(self.model.qpos0 + noise, RESET_NOISE * rng.standard_normal(self.model.nv))

    def prepare(self, sim: BatchSimulation, rows: Rows, memory: np.ndarray) -> None:  # noqa: B027
        """Change the chosen simulations' models to what `memory` `(k, m)` says of them."""

    def copy_to(
        self, model: mujoco.MjModel, data: mujoco.MjData, state: GameState, env: int
    ) -> None:
        """Put one environment's positions, and what is special about its scene, elsewhere."""
        data.qpos[:] = state.sim.qpos[env]

    @abstractmethod
    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """Write one agent's observations.

        Args:
            out: `(k, observation_dim)` float32.
            state: where the games stand.
            agent: who looks.
            opponent: the other player's qpos as this agent sees it, `(k, nq of a body)`.
            rows: the `k` environments.
        """

    @abstractmethod
    def judge(self, state: GameState, actions: tuple[np.ndarray, ...], before: Before) -> Verdict:
        """Rewards, ends and winners after a step; updates `state.memory`.

        Args:
            state: where the games stand after the step, `elapsed` counting it.
            actions: per agent `(N, nu)`, as given, not clipped.
            before: what `before` returned ahead of the step.
        """

    def observe(
        self, state: GameState, rows: Rows, views: Sequence[OpponentView | None]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Observations of the chosen environments, per agent `(k, observation_dim)` float32.

        Args:
            state: where the games stand.
            rows: the `k` environments.
            views: per agent, what it sees in place of its opponent's qpos; None: the truth.
        """
        count = len(state.elapsed) if isinstance(rows, slice) else len(rows)
        outs = np.empty((2, count, self.observation_dim), dtype=np.float32)
        for agent, view in enumerate(views):
            opponent = state.sim.qpos[rows, self.agents[1 - agent].qpos]
            seen = opponent if view is None else view(opponent)
            self.fill(outs[agent], state, agent, seen, rows)
        return outs[0], outs[1]

    def before(self, sim: BatchSimulation) -> Before:
        """Take down what `judge` needs of the state before the step."""
        return Before(self.com_x(sim).copy())

    def com_x(self, sim: BatchSimulation) -> np.ndarray:
        """X of each player's centre of mass, `(2, N)`, in metres."""
        return np.stack([sim.subtree_com[:, agent.torso, 0] for agent in self.agents])

    def torso(self, sim: BatchSimulation, agent: int, coordinate: int) -> np.ndarray:
        """One coordinate of a player's torso origin, `(N,)`, in metres."""
        return sim.qpos[:, self.agents[agent].qpos.start + coordinate]

    def reached_goal(self, com_x: np.ndarray) -> np.ndarray:
        """Whether each player's centre of mass is past its goal line, `(2, N)` bool."""
        goals = self.goals[:, None]
        return np.where(goals > 0, com_x > goals, com_x < goals)
