"""Sumo: two wrestlers on a round platform; who falls or leaves the ring first loses."""

from collections.abc import Callable
from typing import ClassVar

import mujoco
import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import ANT, HUMANOID
from aprl.envs.mujoco.movement import Movement, ant_fighter, humanoid_fighter
from aprl.envs.mujoco.observations import (
    ANT_SELF,
    HUMANOID_SELF,
    RING,
    fill_ant,
    fill_humanoid,
    fill_ring,
)
from aprl.envs.mujoco.rules import (
    GOAL_REWARD,
    Before,
    GameState,
    Rows,
    Rules,
    Start,
    Verdict,
)
from aprl.envs.mujoco.scene import ARENA_HEIGHT, YAW_180, Scene, facing_poses
from aprl.envs.mujoco.simulation import BatchSimulation

RADIUS, TOUCHED = 0, 1  # columns of the memory
MIN_X = 0.3  # metres from the middle line at which a wrestler may start


class _Sumo(Rules):
    """The ring's radius is drawn anew for each episode, in metres.

    Who falls or leaves the ring loses. The other wins only if the two have touched since the start
    of the episode (or `touched_at_start`); else, and after 500 steps, it is a tie.

    The published start curriculum: at stage `version` the largest radius is
    `min(max, min + 0.1 exp(0.001 version))`.
    """

    max_steps = 500
    remembered = ("arena_radius", "touched")
    radius_range: ClassVar[tuple[float, float]]
    fallen_height: ClassVar[float]  # metres above the platform
    touched_at_start: ClassVar[bool] = False
    fighter: Callable[..., Movement]

    def start(self, rng: np.random.Generator) -> Start:
        """See `Rules.start`."""
        smallest, largest = self.radius_range
        if self.version is not None:
            largest = min(largest, smallest + 0.1 * np.exp(0.001 * self.version))
        radius = rng.uniform(smallest, largest)
        start = super().start(rng)
        gap = 0.3 + self.radius_range[0] / 2
        for agent, side in zip(self.agents, (-1, 1), strict=True):
            low, high = sorted((side * MIN_X, side * (radius - gap)))
            x = rng.uniform(low, high)
            half_chord = np.sqrt(radius**2 - x**2)
            y = rng.uniform(-half_chord + gap, half_chord - gap)
            start.qpos[agent.qpos.start : agent.qpos.start + 2] = x, y
        return Start(start.qpos, start.qvel, (radius, float(self.touched_at_start)))

    def prepare(self, sim: BatchSimulation, rows: Rows, memory: np.ndarray) -> None:
        """Give each simulation's platform its radius; see `Rules.prepare`."""
        sim.set_cylinder_radius("arena", rows, memory[:, RADIUS])

    def copy_to(
        self, model: mujoco.MjModel, data: mujoco.MjData, state: GameState, env: int
    ) -> None:
        """See `Rules.copy_to`."""
        super().copy_to(model, data, state, env)
        model.geom("arena").size[0] = state.memory[env, RADIUS]

    def judge(self, state: GameState, actions: tuple[np.ndarray, ...], before: Before) -> Verdict:
        """See `Rules.judge`."""
        sim, memory = state.sim, state.memory
        memory[:, TOUCHED] = np.maximum(memory[:, TOUCHED], sim.touching("players"))
        players = [self.fighter(self, state, i, actions[i]) for i in range(2)]
        coordinates = np.stack([[self.torso(sim, i, axis) for i in range(2)] for axis in range(3)])
        fallen = coordinates[2] <= ARENA_HEIGHT + self.fallen_height
        outside = np.hypot(coordinates[0], coordinates[1]) > memory[:, RADIUS]
        lost = np.where(fallen.any(axis=0), fallen, outside)
        decided = lost.any(axis=0)
        won = decided & ~lost & (memory[:, TOUCHED] > 0)
        timed_out = ~decided & (state.elapsed >= self.max_steps)
        goal = np.where(lost | timed_out, -GOAL_REWARD, np.where(won, GOAL_REWARD, 0.0))
        both_down = players[0][2] & players[1][2]
        for i, (_, terms, down) in enumerate(players):
            terms["reward_remaining"] = goal[i]
            terms["agent_done"] = down
        return Verdict(
            move=np.stack([players[0][0], players[1][0]]),
            goal=goal,
            done=decided | timed_out | both_down,
            winner=np.where(won.any(axis=0), won[1].astype(np.int64), TIE),
            terms=(players[0][1], players[1][1]),
        )

    def _fill_ring(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        fill_ring(
            out,
            state.sim,
            self.agents[agent],
            opponent,
            radius=state.memory[rows, RADIUS],
            steps_left=self.max_steps - state.elapsed[rows],
            rows=rows,
        )


class SumoHumans(_Sumo):
    """Sumo with humanoids. Opponent's qpos at 356:380 of the observation, the ring at 380:395."""

    scene = Scene(HUMANOID, facing_poses(2.0, 2.5), timestep=0.003, arena=True)
    observation_dim = HUMANOID_SELF + HUMANOID.nq + RING
    radius_range = (1.5, 3.5)
    fallen_height = 0.5
    fighter = staticmethod(humanoid_fighter)

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        fill_humanoid(out, state.sim, self.agents[agent], rows)
        out[:, HUMANOID_SELF:-RING] = opponent
        self._fill_ring(out[:, -RING:], state, agent, opponent, rows)


class SumoAnts(_Sumo):
    """Sumo with ants. Opponent's qpos at 107:122 of the observation, the ring at 122:137."""

    # As published, both ants look the same way.
    scene = Scene(
        ANT,
        (((-1.0, 0.0, 2.5), YAW_180), ((1.0, 0.0, 2.5), YAW_180)),
        timestep=0.003,
        arena=True,
    )
    observation_dim = ANT_SELF + ANT.nq + RING
    radius_range = (2.5, 4.5)
    fallen_height = 0.3
    fighter = staticmethod(ant_fighter)

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        fill_ant(out, state.sim, self.agents[agent], rows)
        out[:, ANT_SELF:-RING] = opponent
        self._fill_ring(out[:, -RING:], state, agent, opponent, rows)


class SumoHumansAutoContact(SumoHumans):
    """Sumo in which falling or leaving the ring is a defeat even if nobody touched (aprl)."""

    touched_at_start = True


class SumoAntsAutoContact(SumoAnts):
    """Sumo in which falling or leaving the ring is a defeat even if nobody touched (aprl)."""

    touched_at_start = True
