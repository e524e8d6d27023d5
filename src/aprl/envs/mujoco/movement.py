"""Dense rewards of the players, whatever game they are in: running, standing, fighting."""

import numpy as np

from aprl.envs.mujoco.rules import Before, GameState, Rules, Terms
from aprl.envs.mujoco.scene import ARENA_HEIGHT, AgentSlices
from aprl.envs.mujoco.simulation import BatchSimulation

Movement = tuple[np.ndarray, Terms, np.ndarray]  # dense reward, its terms, whether down

UPRIGHT = 1.0  # metres: a humanoid's torso at least this high counts as standing
ANT_UPRIGHT = 0.28


def contact_cost(sim: BatchSimulation, own: AgentSlices) -> np.ndarray:
    """Penalty for external forces, `(N,)`: 5e-7 times their squared sum, at most 10."""
    forces = sim.cfrc_ext[:, own.bodies]
    return np.minimum(5e-7 * np.einsum("nbf,nbf->n", forces, forces, dtype=np.float64), 10.0)


def control_cost(actions: np.ndarray, weight: float) -> np.ndarray:
    """`weight` times the squared sum of an agent's actions, `(N,)`."""
    return weight * np.einsum("na,na->n", actions, actions, dtype=np.float64)


def _advance(rules: Rules, state: GameState, agent: int, before: Before) -> np.ndarray:
    """How far the agent's centre of mass moved along x in this step, `(N,)`, in metres."""
    return state.sim.subtree_com[:, rules.agents[agent].torso, 0] - before.com_x[agent]


def humanoid_runner(
    rules: Rules, state: GameState, agent: int, action: np.ndarray, before: Before
) -> Movement:
    """A humanoid that runs for its goal line."""
    goal = rules.goals[agent]
    torso_x, torso_z = rules.torso(state.sim, agent, 0), rules.torso(state.sim, agent, 2)
    advance = _advance(rules, state, agent, before)
    forward = 0.25 * advance / rules.scene.timestep * np.sign(goal)
    ctrl = control_cost(action, 0.1)
    contact = contact_cost(state.sim, rules.agents[agent])
    survive = np.where(torso_z >= UPRIGHT, 5.0, -5.0)
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
    rules: Rules, state: GameState, agent: int, action: np.ndarray, before: Before
) -> Movement:
    """An ant that runs for its goal line."""
    torso_z = rules.torso(state.sim, agent, 2)
    forward = _advance(rules, state, agent, before) / rules.dt * np.sign(rules.goals[agent])
    ctrl = control_cost(action, 0.5)
    forces = np.clip(state.sim.cfrc_ext[:, rules.agents[agent].bodies], -1.0, 1.0)
    contact = 0.0005 * np.einsum("nbf,nbf->n", forces, forces, dtype=np.float64)
    survive = np.where(torso_z >= ANT_UPRIGHT, 1.0, -1.0)
    move = forward - ctrl - contact + survive
    terms = {
        "reward_forward": forward,
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_move": move,
    }
    return move, terms, torso_z < ANT_UPRIGHT


def kicker(
    rules: Rules,
    state: GameState,
    agent: int,
    action: np.ndarray,
    before: Before,
    ball_distance: np.ndarray,
) -> Movement:
    """A humanoid that runs along +x and stays close to the ball, `ball_distance` metres away."""
    torso_z = rules.torso(state.sim, agent, 2)
    forward = 0.25 * _advance(rules, state, agent, before) / rules.scene.timestep
    ctrl = control_cost(_clipped(rules, action), 0.1)
    contact = contact_cost(state.sim, rules.agents[agent])
    survive = np.where(torso_z >= UPRIGHT, 5.0, -5.0)
    move = forward - ctrl - contact + survive - ball_distance
    terms = {
        "reward_forward": forward,
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_goal_dist": ball_distance,
        "reward_move": move,
    }
    return move, terms, torso_z < 0.8


def stander(
    rules: Rules, state: GameState, agent: int, action: np.ndarray, in_place: np.ndarray | bool
) -> Movement:
    """A humanoid that is paid for standing, where it is `in_place` `(N,)`: blocker, keeper."""
    torso_z = rules.torso(state.sim, agent, 2)
    ctrl = control_cost(action, 0.1)
    contact = contact_cost(state.sim, rules.agents[agent])
    survive = np.where((torso_z >= UPRIGHT) & in_place, 5.0, -5.0)
    move = survive - ctrl - contact
    terms = {
        "reward_forward": np.zeros_like(move),
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_move": move,
    }
    return move, terms, torso_z <= 0.5


def keeper(
    rules: Rules, state: GameState, agent: int, action: np.ndarray, in_place: np.ndarray
) -> Movement:
    """A `stander` whose control cost counts actions as the motors' limits clip them."""
    return stander(rules, state, agent, _clipped(rules, action), in_place)


def humanoid_fighter(rules: Rules, state: GameState, agent: int, action: np.ndarray) -> Movement:
    """A humanoid that stands in the middle of the ring."""
    return _fighter(rules, state, agent, _clipped(rules, action), UPRIGHT, down=0.5)


def ant_fighter(rules: Rules, state: GameState, agent: int, action: np.ndarray) -> Movement:
    """An ant that stands in the middle of the ring."""
    return _fighter(rules, state, agent, action, ANT_UPRIGHT, down=ANT_UPRIGHT)


def _fighter(
    rules: Rules, state: GameState, agent: int, action: np.ndarray, upright: float, down: float
) -> Movement:
    x, y, z = (rules.torso(state.sim, agent, i) for i in range(3))
    height = z - ARENA_HEIGHT
    center = -np.hypot(x, y)
    ctrl = control_cost(action, 0.1)
    contact = contact_cost(state.sim, rules.agents[agent])
    survive = np.where(height >= upright, 5.0, -5.0)
    move = center - ctrl - contact + survive
    terms = {
        "reward_center": center,
        "reward_ctrl": ctrl,
        "reward_contact": contact,
        "reward_survive": survive,
        "reward_move": move,
    }
    return move, terms, height <= down


def _clipped(rules: Rules, action: np.ndarray) -> np.ndarray:
    limit = rules.scene.body.control_limit
    return np.clip(action, -limit, limit)
