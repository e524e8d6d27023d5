"""The worlds as data: eleven small MDPs, riverswim, trap, and random MDPs.

The eleven are those of the course project on Stackelberg model-based RL (ETH Zurich, 2024); `A, B,
C` there are states 0, 1, 2 and actions `X, Y` are 0, 1. Riverswim follows Strehl and Littman
(2008) with six states.
"""

import re
from collections.abc import Callable

import numpy as np
from scipy import sparse

from aprl.errors import unknown_name
from aprl.stackelberg.mdp import FiniteMDP, Task, WorldError, dense_world

HORIZON = 50
MOST_PAIRS = 1_000_000

_T_A = [[0.1, 0.6, 0.3], [1.0, 0.0, 0.0]]
_T_B = [[0.0, 0.2, 0.8], [0.5, 0.5, 0.0]]
_T_B_STAYS = [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]
_T_B_SLOW = [[0.0, 0.2, 0.8], [0.8, 0.2, 0.0]]
_T_C_ABSORBS = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
_T_C_RETURNS = [[0.0, 0.1, 0.9], [0.1, 0.0, 0.9]]

_R_A = [[1.0, -0.05, 1.0], [0.75, 0.0, 0.0]]
_R_C = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
_REWARDS_1 = [_R_A, [[0.0, -0.05, 1.0], [-0.01, -0.05, 0.0]], _R_C]
_REWARDS_2 = [_R_A, [[0.0, -0.05, 1.0], [0.5, -0.05, 0.0]], _R_C]

_THREE_STATE_WORLDS = {
    "simple_mdp_1": ([_T_A, _T_B, _T_C_ABSORBS], _REWARDS_1, (2,)),
    "simple_mdp_1_variant_1": ([_T_A, _T_B_STAYS, _T_C_ABSORBS], _REWARDS_1, (2,)),
    "simple_mdp_2": ([_T_A, _T_B, _T_C_ABSORBS], _REWARDS_2, (2,)),
    "simple_mdp_2_endless": ([_T_A, _T_B, _T_C_ABSORBS], _REWARDS_2, ()),
    "simple_mdp_2_variant_1": ([_T_A, _T_B_STAYS, _T_C_ABSORBS], _REWARDS_2, (2,)),
    "simple_mdp_2_variant_2": ([_T_A, _T_B_SLOW, _T_C_ABSORBS], _REWARDS_2, (2,)),
    "ergodic_mdp_1": ([_T_A, _T_B, _T_C_RETURNS], _REWARDS_2, ()),
}


def _three_states(name: str) -> FiniteMDP:
    transitions, rewards, final = _THREE_STATE_WORLDS[name]
    return dense_world(name, transitions, rewards, start=1, horizon=HORIZON, final=final)


def _from_moves(
    name: str,
    moves: dict[tuple[int, int], dict[int, float]],
    paid: dict[tuple[int, int, int], float],
    reward_elsewhere: float = 0.0,
) -> FiniteMDP:
    """A world without final states, starting in 0, from `{(state, action): {next: p}}`."""
    states = 1 + max(state for state, _ in moves)
    actions = 1 + max(action for _, action in moves)
    transitions = np.zeros((states, actions, states))
    for (state, action), successors in moves.items():
        for successor, probability in successors.items():
            transitions[state, action, successor] = probability
    rewards = np.full((states, actions, states), reward_elsewhere)
    for index, reward in paid.items():
        rewards[index] = reward
    return dense_world(name, transitions, rewards, start=0, horizon=HORIZON)


def _four_states(name: str, stay: float) -> FiniteMDP:
    """Two loops, one of them paid well; `stay` blurs the moves between states 2 and 3."""
    certain = {(0, 0): 1, (0, 1): 3, (1, 0): 2, (1, 1): 0, (2, 1): 1, (3, 0): 0}
    moves = {pair: {successor: 1.0} for pair, successor in certain.items()}
    moves[2, 0] = {2: stay, 3: 1 - stay}
    moves[3, 1] = {2: 1 - stay, 3: stay}
    paid = {(0, 0, 1): 0.1, (1, 1, 0): 0.1, (2, 0, 3): 9.9, (3, 1, 2): 9.9}
    return _from_moves(name, moves, paid)


def _erg_det_2(name: str) -> FiniteMDP:
    moves = {(state, action): {1 - action: 1.0} for state in range(2) for action in range(2)}
    return _from_moves(name, moves, {(1, 0, 1): 5.0}, reward_elsewhere=1.0)


def _erg_det_3(name: str) -> FiniteMDP:
    successors = {(0, 0): 1, (0, 1): 2, (1, 0): 2, (1, 1): 0, (2, 0): 0, (2, 1): 1}
    moves = {pair: {successor: 1.0} for pair, successor in successors.items()}
    return _from_moves(name, moves, {(1, 0, 2): 5.0, (2, 1, 1): 5.0}, reward_elsewhere=1.0)


def riverswim(n_states: int = 6, horizon: int = HORIZON) -> FiniteMDP:
    """A chain to swim up against the current; the far bank pays 1, the near one 0.005.

    Raises:
        WorldError: fewer than two states.
    """
    if n_states < 2:
        raise WorldError(f"riverswim needs at least 2 states, got {n_states}")
    last = n_states - 1
    moves = {(state, 0): {max(state - 1, 0): 1.0} for state in range(n_states)}
    for state in range(1, last):
        moves[state, 1] = {state - 1: 0.05, state: 0.6, state + 1: 0.35}
    moves[0, 1] = {0: 0.4, 1: 0.6}
    moves[last, 1] = {last - 1: 0.4, last: 0.6}
    world = _from_moves(f"riverswim{n_states}", moves, {(0, 0, 0): 0.005, (last, 1, last): 1.0})
    return world.with_horizon(horizon)


def _trap(name: str) -> FiniteMDP:
    """State 2 pays 10, but the way back to it takes two steps."""
    successors = {(0, 0): 2, (0, 1): 1, (1, 0): 0, (1, 1): 0, (2, 0): 1, (2, 1): 1}
    moves = {pair: {successor: 1.0} for pair, successor in successors.items()}
    paid = {(0, 0, 2): 1.0, (0, 1, 1): 1.0}
    paid |= {(1, a, 0): 1.0 for a in range(2)} | {(2, a, 1): 10.0 for a in range(2)}
    return _from_moves(name, moves, paid)


def random_mdp(
    seed: int,
    n_states: int = 10,
    n_actions: int = 3,
    n_successors: int = 3,
    reward_density: float = 0.15,
    horizon: int = HORIZON,
) -> FiniteMDP:
    """A random world: few successors per pair, sparse rewards, start in state 0.

    Successors are distinct and uniform, their probabilities Dirichlet(1, ..., 1); each triple
    (state, action, next state) pays with probability `reward_density`, uniformly in [0, 1].
    Worlds with more than a million triples are stored sparsely, and then only triples that can
    happen pay.

    Args:
        seed: of the world; the same seed gives the same world.
        n_states: S.
        n_actions: A.
        n_successors: next states per pair, at most S.
        reward_density: probability in [0, 1].
        horizon: steps per episode.

    Raises:
        WorldError: more successors than states, a density that is no probability, or more than a
            million pairs.
    """
    if not 1 <= n_successors <= n_states:
        raise WorldError(f"n_successors must be in [1, {n_states}], got {n_successors}")
    if not 0 <= reward_density <= 1:
        raise WorldError(f"reward_density must be in [0, 1], got {reward_density}")
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    pairs = n_states * n_actions
    if pairs > MOST_PAIRS:
        raise WorldError(
            f"a random world has at most {MOST_PAIRS:,} state-action pairs, got {n_states:,} "
            f"states and {n_actions:,} actions"
        )
    sparsely = pairs * n_states > 1_000_000

    def draw() -> np.ndarray:
        if sparsely:  # a permutation of so many states would take long
            return rng.choice(n_states, n_successors, replace=False)
        return rng.permutation(n_states)[:n_successors]

    successors = np.stack([draw() for _ in range(pairs)])
    probabilities = rng.dirichlet(np.ones(n_successors), size=pairs)
    name = f"random_s{n_states}_a{n_actions}_{seed}"
    rows = np.repeat(np.arange(pairs), n_successors)
    final = np.zeros(n_states, dtype=bool)
    transitions = sparse.csr_array(
        (probabilities.ravel(), (rows, successors.ravel())), shape=(pairs, n_states)
    )
    shape = (pairs, n_successors if sparsely else n_states)
    paid = np.where(rng.random(shape) < reward_density, rng.random(shape), 0.0)
    if not sparsely:
        task = Task(n_states, n_actions, paid, 0, horizon, final)
        return FiniteMDP(task, transitions.toarray(), name)
    rewards = sparse.csr_array((paid.ravel(), (rows, successors.ravel())), shape=(pairs, n_states))
    return FiniteMDP(Task(n_states, n_actions, rewards, 0, horizon, final), transitions, name)


ELEVEN_WORLDS: dict[str, Callable[[str], FiniteMDP]] = {
    **dict.fromkeys(_THREE_STATE_WORLDS, _three_states),
    "ergodic_mdp_2": lambda name: _four_states(name, stay=0.1),
    "deterministic_mdp_1": lambda name: _four_states(name, stay=0.0),
    "mdp_erg_det_2": _erg_det_2,
    "mdp_erg_det_3": _erg_det_3,
}
WORLDS: dict[str, Callable[[str], FiniteMDP]] = {
    **ELEVEN_WORLDS,
    "riverswim6": lambda name: riverswim(6),
    "trap": _trap,
}
RANDOM_WORLD = "random_s10_a3"
_RANDOM_NAME = re.compile(r"random_s(\d+)_a(\d+)(?:_(\d+))?")


def check_world_name(name: str) -> None:
    """Check that `make_world` knows a name.

    Raises:
        ConfigError: it does not; the message lists near matches.
    """
    if name not in WORLDS and _RANDOM_NAME.fullmatch(str(name)) is None:
        raise unknown_name("world", str(name), [*WORLDS, RANDOM_WORLD])


def is_random_family(name: str) -> bool:
    """Whether a name stands for a different random world with each seed."""
    match = _RANDOM_NAME.fullmatch(name)
    return match is not None and match[3] is None


def make_world(name: str, seed: int = 0, horizon: int | None = None) -> FiniteMDP:
    """Build a world by name.

    Args:
        name: one of `WORLDS`, or `random_s<S>_a<A>` for the random world of `seed`, or
            `random_s<S>_a<A>_<k>` for that of seed k whatever `seed` is.
        seed: of the random world.
        horizon: steps per episode; None: the world's own, 50.

    Raises:
        ConfigError: unknown name, or a horizon below 1.
    """
    check_world_name(name)
    if name in WORLDS:
        world = WORLDS[name](name)
    else:
        match = _RANDOM_NAME.fullmatch(name)
        assert match is not None
        states, actions = int(match[1]), int(match[2])
        if states < 1 or actions < 1:
            raise WorldError(f"a random world needs states and actions, got {name!r}")
        world_seed = seed if match[3] is None else int(match[3])
        successors = 3 if states <= 100 else 10
        world = random_mdp(world_seed, states, actions, min(successors, states))
    return world if horizon is None else world.with_horizon(horizon)
