"""Arithmetic of the attacks without memory."""

import numpy as np
import pytest

from aprl.errors import ConfigError, PolicyError
from aprl.policies import RandomPolicy, load_saved, save_policy
from aprl.policies.merged import MergedPolicy
from aprl.training.attacks import ATTACKS, make_attack
from aprl.training.attacks.merge import MergeAgentVecEnv
from tests.training.attacks.helpers import (
    ADVERSARY,
    VICTIM,
    actions_for,
    line,
    network_policy,
    setting,
    stack,
)


def rewards_of(env, flat, steps=20):
    """Rewards, own and victim's sparse terms, dones and victim's observations, per step."""
    env.reset()
    rows = []
    for action in actions_for(env.num_envs, steps):
        _, rewards, dones, _ = env.step(action)
        own, victims = (flat.game.terms(i)["reward_remaining"] for i in (ADVERSARY, VICTIM))
        rows.append((rewards, own, victims, dones))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_baseline_pays_the_own_sparse_reward():
    env, flat, _ = stack(make_attack("baseline", {}))
    rewards, own, _, _ = rewards_of(env, flat)
    np.testing.assert_allclose(rewards, 2.0 * own)


def test_value_difference_takes_the_victims_reward_away():
    env, flat, _ = stack(make_attack("value_difference", {"coefficient": 0.3}))
    rewards, own, victims, _ = rewards_of(env, flat)
    np.testing.assert_allclose(rewards, 2.0 * own - 0.3 * 2.0 * victims)
    assert env.log_values()["attack/bonus"] == pytest.approx((-0.6 * victims).mean())


def test_the_victims_estimate_telescopes():
    """Discounted over an episode, the victim's surprise is its return minus its first estimate."""
    params = {"estimator": "victim", "coefficient": 0.5, "value_scale": 0.2}
    env, flat, _ = stack(make_attack("value_difference", params), deterministic=True)
    env.reset()
    first = 0.2 * env.victim_player.value(env.victim.embedded_obs)
    total, plain = np.zeros(3), np.zeros(3)
    for step, action in enumerate(actions_for(3, 6)):
        _, rewards, dones, _ = env.step(action)
        own, victims = (2.0 * flat.game.terms(i)["reward_remaining"] for i in (ADVERSARY, VICTIM))
        total += 0.9**step * rewards
        plain += 0.9**step * (own - 0.5 * victims)
    assert dones.all()
    np.testing.assert_allclose(total, plain + 0.5 * first, atol=1e-6)


@pytest.mark.parametrize("victim", ["mlp", "lstm"])
def test_value_difference_is_restored(victim):
    attack = make_attack("value_difference", {"estimator": "victim"})
    env, _, _ = stack(attack, victim)
    env.reset()
    for action in actions_for(3, 4):
        env.step(action)
    saved = env.flat.game.state_dict(), env.state_dict()
    expected = [env.step(action)[1] for action in actions_for(3, 10, seed=8)]
    other, _, _ = stack(attack, victim)
    other.reset()
    other.flat.game.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    again = [other.step(action)[1] for action in actions_for(3, 10, seed=8)]
    np.testing.assert_array_equal(again, expected)


# The noise ball.


def ball(deterministic=True, victim_seat=ADVERSARY, noise_val=0.25):
    return MergeAgentVecEnv(
        line(), network_policy("lstm"), victim_seat, noise_val, deterministic=deterministic
    )


def test_the_ball_is_added_to_the_base_policy_and_clipped():
    venv = ball()
    played = []
    inner = venv.venv.step
    venv.venv.step = lambda actions: (played.append(np.array(actions[1])), inner(actions))[1]
    obs = venv.reset()
    assert venv.observation_spaces[1].shape == (3,) and venv.observation_spaces[0].shape == (2,)
    assert venv.action_spaces[1].high == pytest.approx(0.25)
    policy, state, starts = network_policy("lstm"), None, np.ones(3, bool)
    for action in actions_for(3, 20):
        base, state = policy.predict(obs[1][:, :2], state, starts, deterministic=True)
        np.testing.assert_allclose(obs[1][:, 2:], base, rtol=1e-6)
        obs, _, starts, infos = venv.step([np.zeros((3, 1), np.float32), action])
        np.testing.assert_allclose(played[-1], np.clip(base + action, -1, 1), rtol=1e-6)
        for env in np.flatnonzero(starts):
            assert [len(o) for o in infos[env]["terminal_observation"]] == [2, 3]


def test_reset_clears_the_base_policys_memory():
    venv = ball()
    first = venv.reset()[1]
    state = venv.venv.state_dict()
    for action in actions_for(3, 3):
        venv.step([action, action])
    venv.venv.load_state_dict(state)
    venv._player.begin()
    np.testing.assert_array_equal(venv._with_base((first[:, :2],) * 2)[1], first)


def test_what_a_noise_ball_needs():
    for value in (0, float("nan"), float("inf"), True):
        with pytest.raises(ConfigError, match=f"noise_val must be above 0 and finite, got {value}"):
            ball(noise_val=value)
    with pytest.raises(ConfigError, match=r"agent_idx must be in 0\.\.1, got 2"):
        ball(victim_seat=2)
    game = line()
    wrong = RandomPolicy(game.action_spaces[0], game.action_spaces[0])
    with pytest.raises(ConfigError, match="base policy's observation space"):
        MergeAgentVecEnv(game, wrong, 1, 0.1)


def test_the_finished_policy_plays_as_the_perturbed_base_did(tmp_path):
    attack = make_attack("noise_ball", {"noise_val": 0.25, "base_type": "lstm", "base_path": "0"})
    _, flat, _ = stack(attack)
    change = network_policy("mlp", seed=2, env=flat)
    merged = attack.finished_policy(change, setting())
    save_policy(merged, tmp_path / "adversary", {})
    merged = load_saved(tmp_path / "adversary")
    assert isinstance(merged, MergedPolicy)
    base_policy = network_policy("lstm")
    seen = np.random.default_rng(0).uniform(-1, 1, (5, 4, 2)).astype(np.float32)
    base_state = state = None
    for step in seen:
        base, base_state = base_policy.predict(step, base_state, deterministic=True)
        moved, _ = change.predict(np.concatenate([step, base], 1), deterministic=True)
        action, state = merged.predict(step, state, deterministic=True)
        np.testing.assert_allclose(action, np.clip(base + moved, -1, 1), rtol=1e-5)


def test_a_change_that_does_not_fit_is_refused():
    with pytest.raises(PolicyError, match="maps 2 to 1 numbers, the base policy needs 3 to 1"):
        MergedPolicy(network_policy(), network_policy())


# Names and hyperparameters.


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("base_line", {}, "unknown attack 'base_line'.*baseline"),
        ("baseline", {"coefficient": 1}, "coefficient"),
        ("value_difference", {"coefficent": 1}, "coefficent.*coefficient"),
        ("value_difference", {"coefficient": -1}, "coefficient must be at least 0, got -1"),
        ("value_difference", {"estimator": "oracle"}, "estimator 'oracle'"),
        ("noise_ball", {"noise_val": 0}, "noise_val"),
        ("lookback", {"lb_num": 0}, "lb_num"),
        ("lookback", {"keys": []}, "at least one key"),
        ("intrinsic", {"kind": "fear"}, "kind of bonus 'fear'"),
        ("intrinsic", {"anneal_frac": 2}, r"anneal_frac must be in \[0, 1\], got 2"),
        ("intrinsic", {"neighbours": 9, "memory": 4}, "neighbours must not exceed memory"),
    ],
)
def test_unusable_attacks_are_refused(name, params, message):
    with pytest.raises(ConfigError, match=message):
        make_attack(name, params)


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_has_usable_defaults_and_names_its_source(name):
    attack = make_attack(name, {})
    assert "et al." in type(attack).__doc__
