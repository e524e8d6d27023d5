"""Run to Goal: two runners start face to face; the first across the opposite goal line wins."""

import numpy as np

from aprl.envs.episodes import TIE
from aprl.envs.mujoco.bodies import ANT, HUMANOID
from aprl.envs.mujoco.rules import (
    GOAL_REWARD,
    AntObservation,
    Before,
    HumanoidObservation,
    Rows,
    Rules,
    Terms,
    Verdict,
    contact_cost,
    control_cost,
    observe_both,
)
from aprl.envs.mujoco.scene import Scene, facing_poses
from aprl.envs.mujoco.simulation import BatchSimulation

Movement = tuple[np.ndarray, Terms, np.ndarray]  # dense reward, its terms, whether down


def humanoid_runner(
    rules: Rules, sim: BatchSimulation, agent: int, action: np.ndarray, before: Before
) -> Movement:
    """Dense reward of a humanoid that runs for its goal line (also You Shall Not Pass's walker)."""
    goal = rules.goals[agent]
    torso_x, torso_z = rules.torso(sim, agent, 0), rules.torso(sim, agent, 2)
    travelled = sim.subtree_com[:, rules.agents[agent].torso, 0] - before.com_x[agent]
    forward = 0.25 * travelled / rules.scene.timestep * np.sign(goal)
    ctrl = control_cost(action, 0.1)
    contact = contact_cost(sim, rules.agents[agent])
    survive = np.where(torso_z >= 1.0, 5.0, -5.0)
    goal_dist = -np.abs(torso_x - goal)
    move = forward - ctrl - contact + survive + goal_dist
    terms = {
        "reward_forward": forward,
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_goal_dist": goal_dist,
        "reward_move": move,
    }
    return move, terms, torso_z < 0.8


def ant_runner(
    rules: Rules, sim: BatchSimulation, agent: int, action: np.ndarray, before: Before
) -> Movement:
    """Dense reward of an ant that runs for its goal line."""
    torso_z = rules.torso(sim, agent, 2)
    travelled = sim.subtree_com[:, rules.agents[agent].torso, 0] - before.com_x[agent]
    forward = travelled / rules.dt * np.sign(rules.goals[agent])
    ctrl = control_cost(action, 0.5)
    forces = np.clip(sim.cfrc_ext[:, rules.agents[agent].bodies], -1.0, 1.0)
    contact = 0.0005 * np.einsum("nbf,nbf->n", forces, forces, dtype=np.float64)
    survive = np.where(torso_z >= 0.28, 1.0, -1.0)
    move = forward - ctrl - contact + survive
    terms = {
        "reward_forward": forward,
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_move": move,
    }
    return move, terms, torso_z < 0.28


class _RunToGoal(Rules):
    """Both running; a tie when both cross together or both are down at once."""

    layout: type[AntObservation] | type[HumanoidObservation]
    runner = staticmethod(ant_runner)

    @property
    def observation_dim(self) -> int:
        """See `Rules.observation_dim`."""
        return self.layout.size

    def observe(self, sim: BatchSimulation, rows: Rows) -> tuple[np.ndarray, ...]:
        """See `Rules.observe`."""
        return observe_both(self.layout, self.agents, sim, rows)

    def judge(
        self,
        sim: BatchSimulation,
        actions: tuple[np.ndarray, ...],
        before: Before,
        elapsed: np.ndarray,
    ) -> Verdict:
        """See `Rules.judge`."""
        players = [self.runner(self, sim, i, actions[i], before) for i in range(2)]
        crossed = self.reached_goal(self.com_x(sim))
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
    """Run to Goal with ants."""

    scene = Scene(ANT, facing_poses(1.0, 0.75), timestep=0.01)
    layout = AntObservation


class RunToGoalHumans(_RunToGoal):
    """Run to Goal with humanoids."""

    scene = Scene(HUMANOID, facing_poses(1.0, 1.4), timestep=0.003)
    layout = HumanoidObservation
    runner = staticmethod(humanoid_runner)
