"""What every `VecMultiEnv` must keep; import `check_vec_multi_env` to hold a game to it.

Each check drives the game with uniformly random actions. The actions of environment `i` do not
depend on how many environments there are, so that runs of different sizes can be compared.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.base import VecMultiEnv

MakeEnv = Callable[[int, int], VecMultiEnv]


@dataclass
class Record:
    """What a run showed: per step observations, rewards, dones, infos and reward terms (copies)."""

    observations: list[tuple[np.ndarray, ...]]
    rewards: list[np.ndarray]
    dones: list[np.ndarray]
    infos: list[list[dict[Any, Any]]]
    terms: list[list[dict[str, np.ndarray]]]


def check_vec_multi_env(
    make: MakeEnv,
    steps: int,
    *,
    sizes: tuple[int, ...] = (1, 3, 8),
    random_starts: bool = True,
) -> None:
    """Assert that the games `make` builds keep the contract of `VecMultiEnv`.

    Args:
        make: called with `num_envs` and `seed`; a new, unused game.
        steps: steps of every run. At least one episode must end in them, and one step remain.
        sizes: numbers of environments to compare with each other, ascending.
        random_starts: the game draws its starts at random, so other seeds give other starts.
    """
    check_layout(make, sizes[-1])
    check_steps(make, steps, sizes[-1])
    check_determinism(make, steps, sizes[-1], random_starts)
    check_prefix(make, steps, sizes)
    check_state_round_trip(make, steps, sizes[-1])
    check_caller_owns_arrays(make, steps, sizes[-1])


def random_actions(env: VecMultiEnv, steps: int, seed: int = 0) -> list[list[np.ndarray]]:
    """Per step and agent a batch of actions; row `i` is the same for every number of rows."""
    streams = [np.random.default_rng([seed, i]) for i in range(env.num_envs)]

    def draw(space: spaces.Space) -> np.ndarray:
        if isinstance(space, spaces.Discrete):
            return np.array(
                [rng.integers(space.n) + space.start for rng in streams], dtype=np.int64
            )
        assert isinstance(space, spaces.Box), f"no random actions for {space}"
        rows = [rng.uniform(space.low, space.high) for rng in streams]
        return np.array(rows, dtype=space.dtype)

    return [[draw(space) for space in env.action_spaces] for _ in range(steps)]


def run(env: VecMultiEnv, actions: list[list[np.ndarray]]) -> Record:
    """Step through `actions`, without a reset first, and copy all that the game returns."""
    record = Record([], [], [], [], [])
    for step_actions in actions:
        observations, rewards, dones, infos = env.step(step_actions)
        record.observations.append(tuple(rows.copy() for rows in observations))
        record.rewards.append(rewards.copy())
        record.dones.append(dones.copy())
        record.infos.append(copy.deepcopy(infos))
        record.terms.append(copy.deepcopy([env.terms(i) for i in range(env.num_agents)]))
    return record


def assert_same(left: Any, right: Any, where: str = "") -> None:
    """Assert exact equality of nested dicts, sequences, arrays and scalars, types included."""
    assert type(left) is type(right), f"{where}: {type(left)} and {type(right)}"
    if isinstance(left, dict):
        assert left.keys() == right.keys(), f"{where}: {left.keys()} and {right.keys()}"
        for key in left:
            assert_same(left[key], right[key], f"{where}[{key!r}]")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), f"{where}: lengths {len(left)} and {len(right)}"
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, f"{where}: {left.dtype} and {right.dtype}"
        np.testing.assert_array_equal(left, right, err_msg=where)
    else:
        assert left == right, f"{where}: {left!r} and {right!r}"


def assert_same_runs(left: Record, right: Record) -> None:
    """Assert that two runs showed exactly the same."""
    for name in ("observations", "rewards", "dones", "infos", "terms"):
        assert_same(getattr(left, name), getattr(right, name), name)


def first_rows(record: Record, num_envs: int) -> Record:
    """The same run as seen in the first `num_envs` environments only."""
    return Record(
        [tuple(rows[:num_envs] for rows in step) for step in record.observations],
        [rewards[:, :num_envs] for rewards in record.rewards],
        [dones[:num_envs] for dones in record.dones],
        [infos[:num_envs] for infos in record.infos],
        [
            [{k: values[:num_envs] for k, values in terms.items()} for terms in step]
            for step in record.terms
        ],
    )


def check_observations(env: VecMultiEnv, observations: Any) -> None:
    """A tuple over agents of batches with the space's shape and type, every row in the space."""
    assert type(observations) is tuple
    assert len(observations) == env.num_agents
    for rows, space in zip(observations, env.observation_spaces, strict=True):
        assert isinstance(rows, np.ndarray)
        assert rows.shape == (env.num_envs, *space.shape)
        assert rows.dtype == space.dtype
        assert all(space.contains(row) for row in rows), f"outside {space}"


def check_layout(make: MakeEnv, num_envs: int) -> None:
    """Spaces, sizes, and the observations of `reset`."""
    env = make(num_envs, 0)
    assert env.num_envs == num_envs
    assert type(env.observation_spaces) is tuple and type(env.action_spaces) is tuple
    assert env.num_agents == len(env.observation_spaces) == len(env.action_spaces) >= 1
    for space in env.observation_spaces:
        expected = np.int64 if isinstance(space, spaces.Discrete) else np.float32
        assert space.dtype == expected
    assert env.unwrapped.unwrapped is env.unwrapped
    check_observations(env, env.reset())
    env.close()


def check_steps(make: MakeEnv, steps: int, num_envs: int) -> None:
    """Layout of every step, and infos that agree with the rewards counted from outside."""
    env = make(num_envs, 0)
    env.reset()
    returns = np.zeros((env.num_agents, num_envs))
    lengths = np.zeros(num_envs, dtype=np.int64)
    endings = 0
    for actions in random_actions(env, steps):
        observations, rewards, dones, infos = env.step(actions)
        check_observations(env, observations)
        assert rewards.shape == (env.num_agents, num_envs) and rewards.dtype == np.float64
        assert np.isfinite(rewards).all()
        assert dones.shape == (num_envs,) and dones.dtype == np.bool_
        assert type(infos) is list and len(infos) == num_envs
        terms = [env.terms(i) for i in range(env.num_agents)]
        for agent_terms in terms:
            assert {"reward_move", "reward_remaining"} <= agent_terms.keys()
            for name, values in agent_terms.items():
                assert values.shape == (num_envs,), name
                assert values.dtype in (np.float64, np.bool_), name
        returns += rewards
        lengths += 1
        for i, (done, info) in enumerate(zip(dones, infos, strict=True)):
            if done:
                expected = {f"r{a}": r for a, r in enumerate(returns[:, i])}
                check_terminal_info(env, info, [{k: v[i] for k, v in t.items()} for t in terms])
                assert info["episode"].keys() == {*expected, "l"}
                assert type(info["episode"]["l"]) is int
                assert info["episode"]["l"] == lengths[i]
                for key, value in expected.items():
                    np.testing.assert_allclose(info["episode"][key], value, rtol=0, atol=1e-9)
            else:
                assert info == {}, "infos are empty while an episode goes on"
        endings += int(dones.sum())
        returns[:, dones] = 0.0
        lengths[dones] = 0
    assert endings > 0, f"no episode ended in {steps} steps; give the check more"
    assert (lengths > 0).any(), "no step was taken after an episode ended; give the check more"
    env.close()


def check_terminal_info(
    env: VecMultiEnv, info: dict[Any, Any], terms: list[dict[str, float]]
) -> None:
    """Keys, types and values of one environment's info at the end of its episode."""
    agents = set(range(env.num_agents))
    expected = agents | {"terminal_observation", "TimeLimit.truncated", "episode"}
    assert info.keys() == expected, info.keys()
    assert type(info["TimeLimit.truncated"]) is bool
    last = info["terminal_observation"]
    assert type(last) is tuple and len(last) == env.num_agents
    for row, space in zip(last, env.observation_spaces, strict=True):
        assert row.dtype == space.dtype
        assert space.contains(row), f"terminal observation outside {space}"
    winners = [agent for agent in sorted(agents) if "winner" in info[agent]]
    assert len(winners) <= 1
    for agent in agents:
        shown = dict(info[agent])
        assert shown.pop("winner", True) is True
        assert shown == terms[agent]


def check_determinism(make: MakeEnv, steps: int, num_envs: int, random_starts: bool) -> None:
    """The seed decides everything; another seed, if the game is random, gives other starts."""
    first, again, other = make(num_envs, 5), make(num_envs, 5), make(num_envs, 6)
    actions = random_actions(first, steps)
    start = first.reset()
    assert_same(start, again.reset(), "first observations")
    start = copy.deepcopy(start)
    record = run(first, actions)
    assert_same_runs(record, run(again, actions))
    if not random_starts:
        return
    other_start = other.reset()
    assert any((a != b).any() for a, b in zip(start, other_start, strict=True)), "seed ignored"
    for rows in zip(*start, strict=True):
        same = [all((a == b).all() for a, b in zip(rows, o)) for o in zip(*start)]  # noqa: B905
        assert sum(same) == 1, "two environments started alike"
    for observations, infos in zip(record.observations, record.infos, strict=True):
        for i, info in enumerate(infos):
            if info:
                pairs = zip(info["terminal_observation"], observations, strict=True)
                assert any((last != rows[i]).any() for last, rows in pairs), (
                    "the step that ends an episode returns the next one's first observation"
                )


def check_prefix(make: MakeEnv, steps: int, sizes: tuple[int, ...]) -> None:
    """The first environments behave the same however many follow them."""
    assert len(sizes) > 1
    largest = make(sizes[-1], 3)
    starts = copy.deepcopy(largest.reset())
    full = run(largest, random_actions(largest, steps))
    for size in sizes[:-1]:
        env = make(size, 3)
        assert_same(env.reset(), tuple(rows[:size] for rows in starts), f"starts of {size}")
        assert_same_runs(run(env, random_actions(env, steps)), first_rows(full, size))


def check_state_round_trip(make: MakeEnv, steps: int, num_envs: int) -> None:
    """A saved state continues identically in the same game and in a new one of another seed."""
    env = make(num_envs, 1)
    env.reset()
    run(env, random_actions(env, max(1, steps // 2), seed=1))
    state = env.state_dict()
    check_plain(state)
    snapshot = copy.deepcopy(state)
    terms = copy.deepcopy([env.terms(i) for i in range(env.num_agents)])
    env.reset()
    assert_same(state, snapshot, "a saved state changed in a reset")
    env.load_state_dict(copy.deepcopy(snapshot))
    actions = random_actions(env, steps, seed=2)
    expected = run(env, actions)
    assert any(dones.any() for dones in expected.dones), "no episode began after the restore"
    assert_same(state, snapshot, "a saved state changed while the game went on")
    fresh = make(num_envs, 99)
    for target in (env, fresh):
        target.load_state_dict(copy.deepcopy(snapshot))
        assert_same([target.terms(i) for i in range(env.num_agents)], terms, "restored terms")
        assert_same(target.state_dict(), snapshot, "state saved again")
        assert_same_runs(run(target, actions), expected)


def check_plain(state: Any, where: str = "state") -> None:
    """A state is nested dicts and lists of numeric arrays and JSON types, no pickles."""
    if isinstance(state, dict):
        for key, value in state.items():
            assert isinstance(key, str), f"{where}: key {key!r}"
            check_plain(value, f"{where}[{key!r}]")
    elif isinstance(state, list):
        for i, value in enumerate(state):
            check_plain(value, f"{where}[{i}]")
    elif isinstance(state, np.ndarray):
        assert state.dtype.kind in "biuf", f"{where}: {state.dtype}"
    else:
        assert state is None or type(state) in (bool, int, float, str), f"{where}: {type(state)}"


def check_caller_owns_arrays(make: MakeEnv, steps: int, num_envs: int) -> None:
    """Overwriting what the game returned, or the actions it was given, does not change the game."""
    env, spoiled = make(num_envs, 4), make(num_envs, 4)
    actions = random_actions(env, steps)
    env.reset()
    for rows in spoiled.reset():
        rows[...] = 0
    for step_actions in actions:
        expected = copy.deepcopy(env.step(step_actions))
        given = [chosen.copy() for chosen in step_actions]
        observations, rewards, dones, infos = spoiled.step(given)
        assert_same((observations, rewards, dones, infos), expected, "after overwriting")
        for array in (*observations, rewards, dones, *given):
            array[...] = 0
        for agent in range(env.num_agents):
            assert_same(spoiled.terms(agent), env.terms(agent), "terms after overwriting")
    assert_same(spoiled.state_dict(), env.state_dict(), "state after overwriting")
