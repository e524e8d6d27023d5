"""You Shall Not Pass: a blocker (agent 0) must keep a walker (agent 1) from crossing the line."""

import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import HUMANOID
from aprl.envs.mujoco.rules import (
    GOAL_REWARD,
    Before,
    HumanoidObservation,
    Rows,
    Rules,
    Verdict,
    contact_cost,
    control_cost,
    observe_both,
)
from aprl.envs.mujoco.run_to_goal import humanoid_runner
from aprl.envs.mujoco.scene import Scene, facing_poses
from aprl.envs.mujoco.simulation import BatchSimulation

BLOCKER, WALKER = 0, 1
FALLEN_HEIGHT = 0.3  # metres, torso origin


class YouShallNotPassHumans(Rules):
    """The walker wins by crossing; the blocker wins when it falls or after 500 steps. No ties."""

    scene = Scene(HUMANOID, facing_poses(1.0, 1.4), timestep=0.003)
    max_steps = 500

    @property
    def observation_dim(self) -> int:
        """See `Rules.observation_dim`."""
        return HumanoidObservation.size

    def observe(self, sim: BatchSimulation, rows: Rows) -> tuple[np.ndarray, ...]:
        """See `Rules.observe`."""
        return observe_both(HumanoidObservation, self.agents, sim, rows)

    def judge(
        self,
        sim: BatchSimulation,
        actions: tuple[np.ndarray, ...],
        before: Before,
        elapsed: np.ndarray,
    ) -> Verdict:
        """See `Rules.judge`."""
        walker_move, walker, walker_down = humanoid_runner(
            self, sim, WALKER, actions[WALKER], before
        )
        blocker_z, walker_z = self.torso(sim, BLOCKER, 2), self.torso(sim, WALKER, 2)
        ctrl = control_cost(actions[BLOCKER], 0.1)
        contact = contact_cost(sim, self.agents[BLOCKER])
        survive = np.where(blocker_z >= 1.0, 5.0, -5.0)
        blocker_move = survive - ctrl - contact

        passed = self.reached_goal(self.com_x(sim))[WALKER]
        fallen = ~passed & (walker_z <= FALLEN_HEIGHT)
        timed_out = ~passed & ~fallen & (elapsed >= self.max_steps)
        stopped = fallen | timed_out
        blocker_goal = np.where(fallen & (blocker_z > FALLEN_HEIGHT), GOAL_REWARD, 0.0)
        goal = np.stack(
            [
                np.where(passed, -GOAL_REWARD, blocker_goal),
                np.where(passed, GOAL_REWARD, np.where(stopped, -GOAL_REWARD, 0.0)),
            ]
        )
        blocker = {
            "reward_forward": np.zeros_like(blocker_move),
            "reward_ctrl": ctrl,
            "reward_contact": contact,
            "reward_survive": survive,
            # As published, the info's dense term also pays the blocker for the walker's distance
            # from its goal, except on a touchdown; the returned reward does not.
            "reward_move": np.where(
                passed, blocker_move, blocker_move - walker["reward_goal_dist"]
            ),
            "reward_remaining": goal[BLOCKER],
            "agent_done": blocker_z <= 0.5,
        }
        walker["reward_remaining"] = goal[WALKER]
        walker["agent_done"] = walker_down
        return Verdict(
            move=np.stack([blocker_move, walker_move]),
            goal=goal,
            done=passed | stopped,
            winner=np.where(passed, WALKER, np.where(stopped, BLOCKER, TIE)),
            terms=(blocker, walker),
        )
