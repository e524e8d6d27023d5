"""The MuJoCo engine: batches, seeds, states, rules on hand-made positions, broken physics."""

from functools import partial

import mujoco
import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES
from aprl.envs.mujoco.simulation import BatchSimulation
from aprl.errors import ConfigError
from tests.envs.contract import check_vec_multi_env

ANTS, WALK = "multicomp/RunToGoalAnts-v1", "multicomp/YouShallNotPassHumans-v1"
BLOCKER, WALKER = 0, 24  # where each player's qpos begins


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """MuJoCo writes MUJOCO_LOG.TXT to the working directory when a simulation is unstable."""
    monkeypatch.chdir(tmp_path)


def actions_for(venv, steps, seed=0):
    """Random actions `[step][agent]`, the same for an environment whatever the batch's size."""
    rng = np.random.default_rng(seed)
    width = venv.action_spaces[0].shape[0]
    high = venv.action_spaces[0].high
    drawn = rng.uniform(-high, high, (steps, 2, 32, width)).astype(np.float32)
    return [list(step[:, : venv.num_envs]) for step in drawn]


def play(venv, actions):
    """Observations of agent 0 after each step, `(steps, num_envs, obs_dim)`."""
    venv.reset()
    return np.array([venv.step(a)[0][0] for a in actions])


def test_keeps_the_contract_of_a_vec_multi_env():
    check_vec_multi_env(
        lambda num_envs, seed: make_vec(ANTS, num_envs, seed, max_episode_steps=6, num_threads=1),
        steps=14,
    )


@pytest.mark.parametrize("game", GAMES)
def test_an_environments_trajectory_depends_on_neither_batch_size_nor_threads(game):
    make = partial(make_vec, f"multicomp/{game}-v1", seed=5, max_episode_steps=8)
    whole = play(make(num_envs=32, num_threads=2), actions_for(make(num_envs=32), 20))
    for num_envs, threads in ((1, 1), (8, 1), (8, 3), (32, 1)):
        part = play(
            make(num_envs=num_envs, num_threads=threads), actions_for(make(num_envs=num_envs), 20)
        )
        np.testing.assert_array_equal(part, whole[:, :num_envs])


def test_repeated_equal_resets_give_equal_states():
    venv = make_vec(ANTS, 3, seed=7, num_threads=1)
    state = venv.state_dict()
    first = venv.reset()
    for _ in range(3):
        venv.load_state_dict(state)
        for again, expected in zip(venv.reset(), first, strict=True):
            np.testing.assert_array_equal(again, expected)


def break_by_action(venv, actions):
    actions[0][1, 3] = np.nan


def break_by_state(venv, actions):
    qpos, qvel = venv.get_physics_state([1])
    venv.set_physics_state([1], qpos, np.full_like(qvel, 1e12))


@pytest.mark.parametrize("damage", [break_by_action, break_by_state])
def test_broken_game_ends_as_a_tie_and_spares_the_others(damage):
    def run(broken):
        venv = make_vec(ANTS, 3, seed=2, num_threads=1)
        script = actions_for(venv, 6)
        venv.reset()
        for t, actions in enumerate(script):
            if broken and t == 2:
                damage(venv, actions)
            obs, rewards, dones, infos = venv.step(actions)
            if broken and t == 2:
                assert dones.tolist() == [False, True, False]
                assert infos[1]["unstable"] is True
                assert not any(infos[1][i].get("winner") for i in range(2))
                np.testing.assert_array_equal(rewards[:, 1], [0, 0])
        assert venv.unstable_games == (1 if broken else 0)
        assert all(np.isfinite(o).all() for o in obs)
        return obs[0]

    np.testing.assert_array_equal(run(True)[[0, 2]], run(False)[[0, 2]])


def test_every_break_is_noticed_also_the_next_one_of_the_same_game():
    venv = make_vec(ANTS, 2, seed=2, num_threads=1)
    venv.reset()
    for t in range(4):
        qpos, qvel = venv.get_physics_state([1])
        venv.set_physics_state([1], qpos, np.full_like(qvel, 1e8))
        _, _, dones, infos = venv.step([np.zeros((2, 8), np.float32)] * 2)
        assert dones.tolist() == [False, True] and infos[1]["unstable"] is True
        assert venv.unstable_games == t + 1
        assert infos[1]["episode"] == {"r0": 0.0, "r1": 0.0, "l": 1}
    _, _, dones, infos = venv.step([np.zeros((2, 8), np.float32)] * 2)
    assert not dones.any() and infos == [{}, {}] and venv.unstable_games == 4


def test_repeated_equal_writes_reach_the_simulation():
    """`mjbatch` forgets a write made before a reset if it repeats the value last written."""
    model = make_vec(ANTS, 1, num_threads=1).model
    sim = BatchSimulation(model, 3, num_threads=1)
    rng = np.random.default_rng(0)
    qpos = model.qpos0 + rng.uniform(-0.1, 0.1, (2, model.nq))
    qvel = rng.standard_normal((2, model.nv))
    seen = []
    for played in (0, 0, 2):
        for _ in range(played):
            sim.step(np.full((3, model.nu), 0.5))
        for _ in range(2):  # the same values again, with nothing in between
            sim.reset(np.array([0, 2]), qpos, qvel)
        np.testing.assert_array_equal(sim.qpos[[0, 2]], qpos)
        np.testing.assert_array_equal(sim.qvel[[0, 2]], qvel)
        sim.step(np.zeros((3, model.nu)))
        seen.append(sim.copy_state([0, 2]))
    np.testing.assert_array_equal(seen[1], seen[0])
    np.testing.assert_array_equal(seen[2], seen[0])


def test_simulator_states_can_be_copied_back_and_elsewhere():
    venv = make_vec(WALK, 3, num_threads=1)
    script = actions_for(venv, 6)
    venv.reset()
    for actions in script[:3]:
        venv.step(actions)
    rows = venv.get_simulator_state([0, 2])
    ahead = [venv.step(actions)[0][0] for actions in script[3:]]
    venv.set_simulator_state([0, 2], rows)
    np.testing.assert_array_equal(venv.get_simulator_state([0, 2]), rows)
    again = [venv.step(actions)[0][0] for actions in script[3:]]
    for first, second in zip(ahead, again, strict=True):
        np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
    venv.set_simulator_state([1], rows[:1])  # environment 0's state, with 0's actions, in 1
    for expected, actions in zip(ahead, script[3:], strict=True):
        for side in actions:
            side[1] = side[0]
        np.testing.assert_array_equal(venv.step(actions)[0][0][1], expected[0])


def test_physics_state_round_trip():
    venv = make_vec(WALK, 2, num_threads=1)
    venv.reset()
    qpos, qvel = venv.get_physics_state([1])
    venv.set_physics_state([1], qpos + 0.01, qvel * 2)
    moved, faster = venv.get_physics_state([1])
    np.testing.assert_array_equal(moved, qpos + 0.01)
    np.testing.assert_array_equal(faster, qvel * 2)
    np.testing.assert_allclose(venv.observe()[0][1, :24], moved[0, :24], rtol=1e-6)


@pytest.mark.parametrize("game", GAMES)
def test_a_step_of_the_fast_physics_needs_positions_and_velocities_alone(game):
    venv = make_vec(f"multicomp/{game}-v1", 1, seed=4, num_threads=1)
    venv.reset()
    rng = np.random.default_rng(0)
    width = venv.action_spaces[0].shape[0]
    for _ in range(12):
        venv.step([rng.uniform(-0.4, 0.4, (1, width)).astype(np.float32) for _ in range(2)])
    qpos, qvel = venv.get_physics_state([0])
    outcomes = []
    for start in (None, rng.standard_normal(qvel.shape)):
        venv.set_physics_state([0], qpos, qvel, start)
        venv.step([np.zeros((1, width), np.float32)] * 2)
        outcomes.append(venv.get_physics_state([0]))
    for ours, theirs in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def lying(start):
    """qpos entries of a humanoid on its back."""
    pose = {2: 0.2, 3: np.sqrt(0.5), 4: 0.0, 5: -np.sqrt(0.5), 6: 0.0}
    return {f"q{start + i}": value for i, value in pose.items()}


def place(game, **moves):
    """One environment, one step after some qpos entries (by index) were set."""
    venv = make_vec(game, 1, num_threads=1)
    venv.reset()
    qpos, qvel = venv.get_physics_state([0])
    for index, value in moves.items():
        qpos[0, int(index[1:])] = value
    venv.set_physics_state([0], qpos, qvel * 0)
    width = venv.action_spaces[0].shape[0]
    _, _, dones, infos = venv.step([np.zeros((1, width), np.float32)] * 2)
    goal = [venv.terms(i)["reward_remaining"][0] for i in range(2)]
    winner = [i for i in range(2) if dones[0] and infos[0][i].get("winner")]
    return bool(dones[0]), winner, goal


def test_you_shall_not_pass_rules():
    x = f"q{WALKER}"
    walker_down, blocker_down = lying(WALKER), lying(BLOCKER)
    assert place(WALK) == (False, [], [0, 0])
    assert place(WALK, **{x: -4.5}) == (True, [1], [-1000, 1000])
    assert place(WALK, **walker_down) == (True, [0], [1000, -1000])
    # The blocker wins when it is down itself, but is paid nothing.
    assert place(WALK, **walker_down, **blocker_down) == (True, [0], [0, -1000])
    # A walker that falls across the line has passed; a blocker that is down has not lost.
    assert place(WALK, **{**walker_down, x: -4.9}) == (True, [1], [-1000, 1000])
    assert place(WALK, **blocker_down) == (False, [], [0, 0])


def test_you_shall_not_pass_ends_after_500_steps():
    venv = make_vec(WALK, 1, num_threads=1)
    venv.reset()
    venv._episodes.lengths[:] = 498
    idle = [np.zeros((1, 17), np.float32)] * 2
    assert not venv.step(idle)[2][0]
    _, _, dones, infos = venv.step(idle)
    assert dones[0] and infos[0][0]["winner"] and not infos[0]["TimeLimit.truncated"]
    assert [infos[0][i]["reward_remaining"] for i in range(2)] == [0, -1000]


def test_run_to_goal_rules():
    assert place(ANTS) == (False, [], [0, 0])
    assert place(ANTS, q0=4.5) == (True, [0], [1000, -1000])
    assert place(ANTS, q15=-4.5) == (True, [1], [-1000, 1000])
    assert place(ANTS, q0=4.5, q15=-4.5) == (True, [], [0, 0])
    # Across the wrong line is nothing; down counts only when both are.
    assert place(ANTS, q0=-4.5) == (False, [], [0, 0])
    down = {0: {"q2": 0.26, "q3": 0, "q4": 1, "q5": 0, "q6": 0}}
    down[1] = {"q17": 0.26, "q18": 0, "q19": 1, "q20": 0, "q21": 0}
    assert place(ANTS, **down[0]) == place(ANTS, **down[1]) == (False, [], [0, 0])
    assert place(ANTS, **down[0], **down[1]) == (True, [], [0, 0])


def test_time_limit_is_a_truncated_tie():
    venv = make_vec(ANTS, 2, max_episode_steps=3, num_threads=1)
    venv.reset()
    for step in range(3):
        _, _, dones, infos = venv.step([np.zeros((2, 8), np.float32)] * 2)
        assert dones.all() == (step == 2)
    assert infos[0]["TimeLimit.truncated"] is True and infos[0]["episode"]["l"] == 3
    assert not any(infos[0][i].get("winner") for i in range(2))


def test_training_aids():
    venv = make_vec(ANTS, 1, end_when_down=1, num_threads=1)
    venv.reset()
    qpos, qvel = venv.get_physics_state([0])
    qpos[0, 17:22] = [0.26, 0, 1, 0, 0]  # on its back
    venv.set_physics_state([0], qpos, qvel * 0)
    _, _, dones, infos = venv.step([np.zeros((1, 8), np.float32)] * 2)
    assert dones[0] and infos[0][0]["winner"] and infos[0][1]["reward_remaining"] == -1000
    aside = make_vec(ANTS, 50, aside=(1, 0.5), num_threads=1)
    aside.reset()
    y = np.abs(aside.get_physics_state(range(50))[0][:, [1, 16]])
    assert (y[:, 0] < 0.2).all()
    assert 10 < (y[:, 1] > 2.5).sum() < 40


def test_profiles():
    published, fast = (
        make_vec(f"multicomp/RunToGoalHumans-v{v}", 1, num_threads=1).model.opt for v in (0, 1)
    )
    assert published.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert published.solver == mujoco.mjtSolver.mjSOL_PGS and published.iterations == 1000
    assert fast.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert fast.solver == mujoco.mjtSolver.mjSOL_NEWTON
    assert fast.disableflags == mujoco.mjtDisableBit.mjDSBL_WARMSTART
    assert published.disableflags == 0


def test_masses_and_inertia_are_those_of_mujoco_131():
    humans = make_vec(WALK, 1, num_threads=1).model
    ants = make_vec(ANTS, 1, num_threads=1).model
    expected = [8.32208, 2.03575, 5.85279, 4.52556, 2.63249, 1.76715, 4.52556, 2.63249, 1.76715]
    expected += [1.59406, 1.19834, 1.59406, 1.19834]
    for start in (1, 14):
        np.testing.assert_allclose(humans.body_mass[start : start + 13], expected, atol=6e-6)
    np.testing.assert_allclose(
        np.sort(humans.body_inertia[1]), [0.033132, 0.147625, 0.15914], atol=6e-7
    )
    np.testing.assert_allclose(ants.body_mass[1:].sum(), 2 * 0.87871, atol=2e-5)


def test_bad_values_are_refused():
    with pytest.raises(ConfigError, match="num_envs"):
        make_vec(ANTS, 0)
    venv = make_vec(ANTS, 2, num_threads=1)
    for ids in ([1, 0], [0, 0], [2], [-1]):
        with pytest.raises(ConfigError, match="env_ids"):
            venv.get_physics_state(ids)
