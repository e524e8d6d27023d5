"""The lookback bonus, beside a slow reference that replays every branch on its own."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.policies import ZeroPolicy
from aprl.training.attacks import make_attack
from aprl.training.embedding import PolicyPlayer
from tests.training.attacks.helpers import (
    ADVERSARY,
    VICTIM,
    actions_for,
    line,
    network_policy,
    stack,
)

PARAMS = {"lb_num": 3, "lb_mul": 0.5, "lb_type": "mlp", "lb_path": "4"}


def reference(history, age, env, limit, kind, base_kind):
    """Victim's activations after `age` steps of the base policy, replayed from the true state."""
    start = history[len(history) - age]
    game = line(1, limit=limit)
    game.reset()
    game.set_simulator_state([0], start["rows"][[env]])
    victim = PolicyPlayer(network_policy(kind), 1, deterministic=True)
    base = PolicyPlayer(network_policy(base_kind, 4), 1, deterministic=True)
    one = np.array([0])
    victim.take_over(one, start["victim"], np.array([env]))
    base.take_over(one, start["base"], np.array([env]))
    obs = [start["obs"][i][[env]] for i in range(2)]
    for _ in range(age):
        chosen = [None, None]
        chosen[ADVERSARY], chosen[VICTIM] = base.act(obs[ADVERSARY]), victim.act(obs[VICTIM])
        obs, _, dones, _ = game.step(chosen)
        victim.observe_ends(dones)
        base.observe_ends(dones)
        if dones[0]:
            return None
    return victim.activations(obs[VICTIM])["ff_policy"][0]


def snapshot(player, policy, n):
    copied = PolicyPlayer(policy, n, deterministic=True)
    copied.take_over(np.arange(n), player, np.arange(n))
    return copied


@pytest.mark.parametrize(("kind", "base_kind"), [("mlp", "mlp"), ("lstm", "lstm")])
def test_bonus_equals_branches_replayed_one_by_one(kind, base_kind):
    n, limit = 3, 5
    env, flat, game = stack(
        make_attack("lookback", {**PARAMS, "lb_type": base_kind}), kind, num_envs=n, limit=limit
    )
    obs = env.reset()
    base_true = PolicyPlayer(network_policy(base_kind, 4), n, deterministic=True)
    history, age = [], 0
    for action in actions_for(n, 14):
        history.append(
            {
                "rows": game.get_simulator_state(np.arange(n)),
                "victim": snapshot(env.victim_player, network_policy(kind), n),
                "base": snapshot(base_true, network_policy(base_kind, 4), n),
                "obs": {ADVERSARY: obs.copy(), VICTIM: env.victim.embedded_obs.copy()},
            }
        )
        base_true.act(obs)
        obs, rewards, dones, _ = env.step(action)
        base_true.observe_ends(dones)
        age += 1
        plain = 2.0 * flat.game.terms(ADVERSARY)["reward_remaining"]
        true = env.victim_player.activations(env.victim.embedded_obs)["ff_policy"]
        for e in range(n):
            expected = 0.0
            if not dones[e]:
                for branch in range(1, min(PARAMS["lb_num"], age) + 1):
                    there = reference(history, branch, e, limit, kind, base_kind)
                    if there is not None:
                        expected += np.linalg.norm(there - true[e])
            assert rewards[e] - plain[e] == pytest.approx(0.5 * expected, abs=1e-5)
        if dones.any():
            assert dones.all()  # the time limit ends all of them together
            age = 0
    assert env.log_values()["attack/bonus"] > 0


def test_acting_like_the_base_policy_pays_nothing():
    """With a deterministic victim, the branch that acts as we do is where we are."""
    base = network_policy("mlp", 4)
    env, flat, _ = stack(
        make_attack("lookback", {**PARAMS, "lb_num": 1}), num_envs=4, deterministic=True
    )
    obs = env.reset()
    for _ in range(12):
        obs, rewards, _, _ = env.step(base.predict(obs, deterministic=True)[0])
        plain = 2.0 * flat.game.terms(ADVERSARY)["reward_remaining"]
        np.testing.assert_allclose(rewards, plain, atol=1e-5)


def test_the_game_goes_on_as_without_the_attack():
    env, _, _ = stack(make_attack("lookback", PARAMS), "lstm")
    plain, _, _ = stack(make_attack("baseline", {}), "lstm")
    np.testing.assert_array_equal(env.reset(), plain.reset())
    for action in actions_for(3, 20):
        ours, theirs = env.step(action), plain.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[2], theirs[2])


def test_restored_in_the_middle():
    attack = make_attack("lookback", {**PARAMS, "keys": ["ff_policy", "ff_value", "obs", "hid"]})
    env, _, _ = stack(attack, "lstm")
    env.reset()
    for action in actions_for(3, 8):
        env.step(action)
    saved = env.flat.game.state_dict(), env.state_dict()
    expected = [env.step(action)[1] for action in actions_for(3, 12, seed=1)]
    other, _, _ = stack(attack, "lstm")
    other.reset()
    other.flat.game.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    again = [other.step(action)[1] for action in actions_for(3, 12, seed=1)]
    np.testing.assert_array_equal(again, expected)


def test_what_it_cannot_look_into_is_refused():
    attack = make_attack("lookback", PARAMS)
    game = line(1)
    zero = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    with pytest.raises(ConfigError, match="ZeroPolicy has no activations"):
        stack(attack, zero)
    with pytest.raises(ConfigError, match="'hid' is the recurrent state; this policy has none"):
        stack(make_attack("lookback", {**PARAMS, "keys": ["hid"]}), "mlp")
