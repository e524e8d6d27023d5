"""You Shall Not Pass: a blocker (agent 0) must keep a walker (agent 1) from crossing the line."""

import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import HUMANOID
from aprl.envs.mujoco.movement import humanoid_runner, stander
from aprl.envs.mujoco.observations import HUMANOID_SELF, fill_humanoid
from aprl.envs.mujoco.rules import GOAL_REWARD, Before, GameState, Rows, Rules, Verdict
from aprl.envs.mujoco.scene import Scene, facing_poses

BLOCKER, WALKER = 0, 1
FALLEN_HEIGHT = 0.3  # metres, torso origin


class YouShallNotPassHumans(Rules):
    """The walker wins by crossing; the blocker wins when it falls or after 500 steps. No ties.

    The opponent's qpos is at 356:380 of the observation.
    """

    scene = Scene(HUMANOID, facing_poses(1.0, 1.4), timestep=0.003)
    observation_dim = HUMANOID_SELF + HUMANOID.nq
    max_steps = 500

    def fill(
        self, out: np.ndarray, state: GameState, agent: int, opponent: np.ndarray, rows: Rows
    ) -> None:
        """See `Rules.fill`."""
        fill_humanoid(out, state.sim, self.agents[agent], rows)
        out[:, HUMANOID_SELF:] = opponent

    def judge(self, state: GameState, actions: tuple[np.ndarray, ...], before: Before) -> Verdict:
        """See `Rules.judge`."""
        sim = state.sim
        walker_move, walker, walker_down = humanoid_runner(
            self, state, WALKER, actions[WALKER], before
        )
        blocker_move, blocker, blocker_down = stander(
            self, state, BLOCKER, actions[BLOCKER], in_place=True
        )
        blocker_z, walker_z = self.torso(sim, BLOCKER, 2), self.torso(sim, WALKER, 2)
        passed = self.reached_goal(self.com_x(sim))[WALKER]
        fallen = ~passed & (walker_z <= FALLEN_HEIGHT)
        timed_out = ~passed & ~fallen & (state.elapsed >= self.max_steps)
        stopped = fallen | timed_out
        blocker_goal = np.where(fallen & (blocker_z > FALLEN_HEIGHT), GOAL_REWARD, 0.0)
        goal = np.stack(
            [
                np.where(passed, -GOAL_REWARD, blocker_goal),
                np.where(passed, GOAL_REWARD, np.where(stopped, -GOAL_REWARD, 0.0)),
            ]
        )
        # As published, the info's dense term also pays the blocker for the walker's distance from
        # its goal, except on a touchdown; the returned reward does not.
        bonus = np.where(passed, 0.0, -walker["reward_goal_dist"])
        blocker |= {
            "reward_move": blocker_move + bonus,
            "reward_remaining": goal[BLOCKER],
            "agent_done": blocker_down,
        }
        walker |= {"reward_remaining": goal[WALKER], "agent_done": walker_down}
        return Verdict(
            move=np.stack([blocker_move, walker_move]),
            goal=goal,
            done=passed | stopped,
            winner=np.where(passed, WALKER, np.where(stopped, BLOCKER, TIE)),
            terms=(blocker, walker),
        )
