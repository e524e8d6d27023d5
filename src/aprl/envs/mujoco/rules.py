"""The rules of a game over a batch of simulations: observations, rewards, ends, winners.

Everything is computed for all environments at once. Facts: Bansal et al. (2018) as re-published in
`gym_compete` 0.0.2; derived quantities are those of the new state (see `BatchSimulation`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np

from aprl.envs.mujoco.scene import AgentSlices, Scene, agent_slices
from aprl.envs.mujoco.simulation import FRAME_SKIP, BatchSimulation

GOAL_REWARD = 1000.0

Rows = np.ndarray | slice
Terms = dict[str, np.ndarray]


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
    """One game. Stateless between steps: per-environment state lives in the engine."""

    scene: ClassVar[Scene]
    max_steps: ClassVar[int | None] = None  # a limit that is part of the game's own rules

    def __init__(self, model: mujoco.MjModel) -> None:
        self.agents: tuple[AgentSlices, AgentSlices] = agent_slices(model)
        self.dt = self.scene.timestep * FRAME_SKIP
        self.goals = np.array([4.0 if pos[0] < 0 else -4.0 for pos, _ in self.scene.poses])

    @property
    @abstractmethod
    def observation_dim(self) -> int:
        """Length of each agent's observation vector."""

    @abstractmethod
    def observe(self, sim: BatchSimulation, rows: Rows) -> tuple[np.ndarray, ...]:
        """Observations of the chosen environments, per agent `(k, observation_dim)` float32."""

    @abstractmethod
    def judge(
        self,
        sim: BatchSimulation,
        actions: tuple[np.ndarray, ...],
        before: Before,
        elapsed: np.ndarray,
    ) -> Verdict:
        """Rewards, ends and winners after a step.

        Args:
            sim: the simulations after the step.
            actions: per agent `(N, nu)`, as given, not clipped.
            before: what `before` returned ahead of the step.
            elapsed: steps played in each episode, this one included, `(N,)`.
        """

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


class AntObservation:
    """qpos 0:15, qvel 15:29, contact forces 29:107, opponent's qpos 107:122."""

    size = 122

    @staticmethod
    def fill(
        out: np.ndarray, sim: BatchSimulation, own: AgentSlices, other: AgentSlices, rows: Rows
    ) -> None:
        """Write the first 122 entries of `out` `(k, >= 122)`."""
        k = len(out)
        out[:, 0:15] = sim.qpos[rows, own.qpos]
        out[:, 15:29] = sim.qvel[rows, own.qvel]
        out[:, 29:107] = sim.cfrc_ext[rows, own.bodies].reshape(k, 78)
        np.clip(out[:, 29:107], -1.0, 1.0, out=out[:, 29:107])
        out[:, 107:122] = sim.qpos[rows, other.qpos]


class HumanoidObservation:
    """Own qpos 0:24, qvel 24:47, cinert 47:177, cvel 177:255, motor forces 255:278.

    Then contact forces 278:356 and the opponent's qpos 356:380.
    """

    size = 380

    @staticmethod
    def fill(
        out: np.ndarray, sim: BatchSimulation, own: AgentSlices, other: AgentSlices, rows: Rows
    ) -> None:
        """Write the first 380 entries of `out` `(k, >= 380)`."""
        k = len(out)
        out[:, 0:24] = sim.qpos[rows, own.qpos]
        out[:, 24:47] = sim.qvel[rows, own.qvel]
        out[:, 47:177] = sim.cinert[rows, own.bodies].reshape(k, 130)
        out[:, 177:255] = sim.cvel[rows, own.bodies].reshape(k, 78)
        out[:, 255:278] = sim.qfrc_actuator[rows, own.qvel]
        out[:, 278:356] = sim.cfrc_ext[rows, own.bodies].reshape(k, 78)
        np.clip(out[:, 278:356], -1.0, 1.0, out=out[:, 278:356])
        out[:, 356:380] = sim.qpos[rows, other.qpos]


def observe_both(
    layout: type[AntObservation] | type[HumanoidObservation],
    agents: tuple[AgentSlices, AgentSlices],
    sim: BatchSimulation,
    rows: Rows,
) -> tuple[np.ndarray, np.ndarray]:
    """Observations of both players in a layout that holds nothing beyond it."""
    count = sim.num_envs if isinstance(rows, slice) else len(rows)
    outs = np.empty((2, count, layout.size), dtype=np.float32)
    layout.fill(outs[0], sim, agents[0], agents[1], rows)
    layout.fill(outs[1], sim, agents[1], agents[0], rows)
    return outs[0], outs[1]


def contact_cost(sim: BatchSimulation, own: AgentSlices) -> np.ndarray:
    """Humanoids' penalty for external forces, `(N,)`: 5e-7 times their squared sum, at most 10."""
    forces = sim.cfrc_ext[:, own.bodies]
    return np.minimum(5e-7 * np.einsum("nbf,nbf->n", forces, forces, dtype=np.float64), 10.0)


def control_cost(actions: np.ndarray, weight: float) -> np.ndarray:
    """`weight` times the squared sum of an agent's actions, `(N,)`."""
    return weight * np.einsum("na,na->n", actions, actions, dtype=np.float64)
