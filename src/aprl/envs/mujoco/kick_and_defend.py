"""Kick and Defend: a kicker (agent 0) shoots a ball at a goal that a keeper (agent 1) guards."""

import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import HUMANOID
from aprl.envs.mujoco.movement import keeper, kicker
from aprl.envs.mujoco.observations import HUMANOID_SELF, fill_humanoid
from aprl.envs.mujoco.rules import GOAL_REWARD, Before, GameState, Rows, Rules, Start, Verdict
from aprl.envs.mujoco.scene import GOAL_LINE, Scene, facing_poses

KICKER, KEEPER = 0, 1
TOUCHED = 0  # column of the memory
BALL_QPOS, BALL_QVEL = slice(0, 7), slice(0, 6)
GOAL_HALF_WIDTH = 3.0  # metres
KEEPER_REACH = 2.5  # metres from the goal line beyond which the keeper fouls
BALL_START_HEIGHT = 0.35
STOPPED_SPEED = 1.0  # m/s at which a ball that rolls back counts as stopped

# Where things start: per coordinate the centre of the published curriculum and the limits (metres).
KICKER_START = ((-2.0, -3.5, -0.5), (0.0, -2.0, 2.0))
KEEPER_START = ((2.0, 1.6, 3.5), (0.0, -2.0, 2.0))
BALL_START = ((0.0, -2.0, 1.0), (0.0, -4.0, 4.0))


class KickAndDefend(Rules):
    """The kicker wins if the ball crosses the goal; the keeper if it is stopped or time is up.

    A keeper that strays from its goal ends the game as a tie, and is punished. The published start
    curriculum: at stage `version` everything starts within `0.05 exp(0.001 version)` metres of a
    centre.

    Observation: the humanoid's view of itself without its x and y 0:354, the opponent's xy less
    the own 354:356 and the rest of its qpos 356:378, the ball's xy less the own 378:380, its height
    380, and the way from the ball to the goal line 381 and to the posts 382:384. The ball's
    velocity is not observed.
    """

    scene = Scene(HUMANOID, facing_poses(3.0, 1.5), timestep=0.003, ball=True)
    observation_dim = HUMANOID_SELF - 2 + HUMANOID.nq + 6
    max_steps = 500
    remembered = ("keeper_touched",)

    def start(self, rng: np.random.Generator) -> Start:
        """See `Rules.start`."""
        start = super().start(rng)
        for place, ranges in (
            (self.agents[KICKER].qpos.start, KICKER_START),
            (self.agents[KEEPER].qpos.start, KEEPER_START),
            (BALL_QPOS.start, BALL_START),
        ):
            start.qpos[place : place + 2] = [self._draw(rng, *limits) for limits in ranges]
        start.qpos[2] = BALL_START_HEIGHT
        if start.qvel[0] < 0:
            start.qvel[0:3] = 0.1
        return Start(start.qpos, start.qvel, (0.0,))

    def _draw(self, rng: np.random.Generator, centre: float, low: float, high: float) -> float:
        if self.version is not None:
            spread = 0.05 * np.exp(0.001 * self.version)
            low, high = max(low, centre - spread), min(high, centre + spread)
        return rng.uniform(low, high)

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        sim, own = state.sim, self.agents[agent]
        fill_humanoid(out[:, :354], sim, own, rows, skip=2)
        own_xy = sim.qpos[rows, own.qpos][:, :2]
        ball = sim.qpos[rows, BALL_QPOS]
        out[:, 354:356] = opponent[:, :2] - own_xy
        out[:, 356:378] = opponent[:, 2:]
        out[:, 378:380] = ball[:, :2] - own_xy
        out[:, 380] = ball[:, 2]
        out[:, 381] = GOAL_LINE - ball[:, 0]
        out[:, 382] = GOAL_HALF_WIDTH - ball[:, 1]
        out[:, 383] = -GOAL_HALF_WIDTH - ball[:, 1]

    def judge(self, state: GameState, actions: tuple[np.ndarray, ...], before: Before) -> Verdict:
        """See `Rules.judge`."""
        sim, memory = state.sim, state.memory
        memory[:, TOUCHED] = np.maximum(memory[:, TOUCHED], sim.touching("keeper_ball"))
        ball, velocity = sim.qpos[:, BALL_QPOS], sim.qvel[:, BALL_QVEL][:, :3]
        x, y, z = ([self.torso(sim, i, axis) for i in range(2)] for axis in range(3))
        ball_distance = np.hypot(x[KICKER] - ball[:, 0], y[KICKER] - ball[:, 1])
        kicker_move, kicker_terms, kicker_down = kicker(
            self, state, KICKER, actions[KICKER], before, ball_distance
        )
        in_place = (x[KEEPER] <= GOAL_LINE + 0.05) & (np.abs(y[KEEPER]) <= GOAL_HALF_WIDTH)
        keeper_move, keeper_terms, keeper_down = keeper(
            self, state, KEEPER, actions[KEEPER], in_place
        )

        past_line = ball[:, 0] > GOAL_LINE
        scored = past_line & (np.abs(ball[:, 1]) <= GOAL_HALF_WIDTH)
        rolls_back = (velocity[:, 0] < 0) & (np.linalg.norm(velocity, axis=1) > STOPPED_SPEED)
        over = past_line | rolls_back | (state.elapsed >= self.max_steps)
        defended = ~scored & (over | (kicker_down & keeper_down))
        foul = ~scored & ~defended & (np.abs(GOAL_LINE - x[KEEPER]) > KEEPER_REACH)
        reward = GOAL_REWARD + 500.0 * memory[:, TOUCHED] + 500.0 * (z[KEEPER] > 0.8)
        goal = np.stack(
            [
                np.where(scored, GOAL_REWARD, np.where(defended, -GOAL_REWARD, 0.0)),
                np.where(scored | foul, -GOAL_REWARD, np.where(defended, reward, 0.0)),
            ]
        )
        done = scored | defended | foul
        # As published, the infos' dense terms also hold the ball's distance from the goal line
        # while the game goes on; the returned rewards do not.
        to_goal = np.where(done, 0.0, np.abs(ball[:, 0] - GOAL_LINE))
        kicker_terms |= {
            "reward_move": kicker_move - to_goal,
            "reward_remaining": goal[KICKER],
            "agent_done": kicker_down,
        }
        keeper_terms |= {
            "reward_move": keeper_move + to_goal,
            "reward_remaining": goal[KEEPER],
            "agent_done": keeper_down,
        }
        return Verdict(
            move=np.stack([kicker_move, keeper_move]),
            goal=goal,
            done=done,
            winner=np.where(scored, KICKER, np.where(defended, KEEPER, TIE)),
            terms=(kicker_terms, keeper_terms),
        )
