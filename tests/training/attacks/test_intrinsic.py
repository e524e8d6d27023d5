"""Bonuses of the exploring attacks."""

import numpy as np
import pytest

from aprl.training.attacks import make_attack
from tests.training.attacks.helpers import actions_for, stack

COVERAGE = {"kind": "coverage", "scale": 0.5, "remember_frac": 1.0, "neighbours": 2, "memory": 40}


def bonuses(env, steps, seed=5):
    return np.array([env.step(action)[1] for action in actions_for(env.num_envs, steps, seed)])


def test_coverage_pays_for_the_distance_to_the_nearest_states():
    env, _, _ = stack(make_attack("intrinsic", COVERAGE), num_envs=2)
    env.reset()
    env._moments.update = lambda rows: None  # fixed units, so that distances can be recomputed
    env._memory = np.zeros((2, 32))
    env._memory[1, 0] = 3.0
    obs = np.array([[0.0, 0.0], [0.5, -0.25]])
    states = (obs - env._moments.mean) / np.sqrt(env._moments.var + 1e-8) @ env._projection
    bonus = env.bonus(obs, np.zeros(2, bool))
    apart = np.linalg.norm(states[:, None] - np.eye(1, 32) * np.array([[0.0], [3.0]]), axis=2)
    np.testing.assert_allclose(bonus, 0.5 * np.log1p(apart.mean(axis=1)), rtol=1e-9)


def test_new_states_pay_more_than_known_ones():
    env, _, _ = stack(make_attack("intrinsic", COVERAGE), num_envs=4)
    env.reset()
    here = np.tile([[0.1, 0.1]], (4, 1))
    for _ in range(30):
        env._moments.update(np.random.default_rng(0).uniform(-1, 1, (64, 2)))
        known = env.bonus(here, np.zeros(4, bool))
    new = env.bonus(np.tile([[0.9, -0.9]], (4, 1)), np.zeros(4, bool))
    assert known.max() < 0.01 < 0.2 < new.min()


def test_memory_is_bounded_and_keeps_taking_in():
    env, _, _ = stack(make_attack("intrinsic", {**COVERAGE, "memory": 7}), num_envs=4)
    env.reset()
    bonuses(env, 5)
    before = env._memory.copy()
    bonuses(env, 20, seed=6)
    assert env._memory.shape == (7, 32)
    assert (env._memory != before).any(axis=1).sum() >= 5


def test_risk_pays_for_keeping_the_victim_at_its_start():
    env, _, _ = stack(make_attack("intrinsic", {"kind": "risk", "scale": 2.0}), num_envs=3)
    env.reset()
    env._moments.update = lambda rows: None
    spread = np.sqrt(env._moments.var + 1e-8)
    start = env._starts.mean.copy()
    env.flat.game._obs = np.array([start, start + spread * [3, 4], start - spread], np.float32)
    bonus = env.bonus(np.zeros((3, 2)), np.zeros(3, bool))
    np.testing.assert_allclose(bonus, -2.0 * np.array([0, 5, np.sqrt(2)]) / np.sqrt(2), atol=1e-5)


def test_starts_are_those_of_all_episodes():
    env, _, _ = stack(make_attack("intrinsic", {"kind": "risk"}), num_envs=3, limit=4)
    env.reset()
    starts = [env.victim.embedded_obs.copy()]
    for action in actions_for(3, 12):
        _, _, dones, _ = env.step(action)
        if dones.any():
            starts.append(env.victim.embedded_obs[dones].copy())
    np.testing.assert_allclose(env._starts.mean, np.concatenate(starts).mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("kind", ["coverage", "risk"])
def test_the_bonus_fades_out(kind):
    done = [0.0]
    params = {**COVERAGE, "kind": kind, "anneal_frac": 0.5}
    attack = make_attack("intrinsic", params)
    env, flat, _ = stack(attack, num_envs=8, progress=lambda: done[0])
    env.reset()
    sizes = []
    for done[0] in (0.0, 0.25, 0.5, 0.9):
        extra = [
            np.abs(env.step(a)[1] - 2.0 * flat.game.terms(1)["reward_remaining"]).mean()
            for a in actions_for(8, 20)
        ]
        sizes.append(np.mean(extra[5:]))
        assert env.log_values()["attack/scale"] == pytest.approx(max(0, 0.5 - done[0]))
    assert sizes[0] > 1.3 * sizes[1] > 0
    assert sizes[2] == sizes[3] == 0


@pytest.mark.parametrize("kind", ["coverage", "risk"])
def test_restored_in_the_middle(kind):
    attack = make_attack("intrinsic", {**COVERAGE, "kind": kind, "remember_frac": 0.5})
    env, _, _ = stack(attack)
    env.reset()
    bonuses(env, 9)
    saved = env.flat.game.state_dict(), env.state_dict()
    expected = bonuses(env, 15, seed=1)
    other, _, _ = stack(attack)
    other.reset()
    other.flat.game.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    np.testing.assert_array_equal(bonuses(other, 15, seed=1), expected)
