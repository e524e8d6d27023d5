"""Run to Goal: two runners start face to face; the first across the opposite goal line wins."""

import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import ANT, HUMANOID
from aprl.envs.mujoco.movement import ant_runner, humanoid_runner
from aprl.envs.mujoco.observations import ANT_SELF, HUMANOID_SELF, fill_ant, fill_humanoid
from aprl.envs.mujoco.rules import GOAL_REWARD, Before, GameState, Rows, Rules, Verdict
from aprl.envs.mujoco.scene import SLOW, Scene, facing_poses


class _RunToGoal(Rules):
    """Both running; a tie when both cross together or both are down at once."""

    runner = staticmethod(ant_runner)

    def judge(self, state: GameState, actions: tuple[np.ndarray, ...], before: Before) -> Verdict:
        """See `Rules.judge`."""
        players = [self.runner(self, state, i, actions[i], before) for i in range(2)]
        crossed = self.reached_goal(self.com_x(state.sim))
        alone = crossed[0] ^ crossed[1]
        goal = np.where(alone, np.where(crossed, GOAL_REWARD, -GOAL_REWARD), 0.0)
        both_down = players[0][2] & players[1][2]
        for i, (_, terms, down) in enumerate(players):
            terms["reward_remaining"] = goal[i]
            terms["agent_done"] = down
        return Verdict(
            move=np.stack([players[0][0], players[1][0]]),
            goal=goal,
            done=crossed.any(axis=0) | both_down,
            winner=np.where(alone, crossed[1].astype(np.int64), TIE),
            terms=(players[0][1], players[1][1]),
        )


class RunToGoalAnts(_RunToGoal):
    """Run to Goal with ants. The opponent's qpos is at 107:122 of the observation."""

    # At this time step contacts of MuJoCo's default time constant would lose their speed at once,
    # and the ants fall down together in every seventh game.
    scene = Scene(ANT, facing_poses(1.0, 0.75), timestep=0.01, fast_contact=SLOW)
    observation_dim = ANT_SELF + ANT.nq

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        fill_ant(out, state.sim, self.agents[agent], rows)
        out[:, ANT_SELF:] = opponent


class RunToGoalHumans(_RunToGoal):
    """Run to Goal with humanoids. The opponent's qpos is at 356:380 of the observation."""

    scene = Scene(HUMANOID, facing_poses(1.0, 1.4), timestep=0.003)
    observation_dim = HUMANOID_SELF + HUMANOID.nq
    runner = staticmethod(humanoid_runner)

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        fill_humanoid(out, state.sim, self.agents[agent], rows)
        out[:, HUMANOID_SELF:] = opponent
