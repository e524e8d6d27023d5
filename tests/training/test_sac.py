"""The off-policy learner: arguments, and its policy as something that plays."""

import numpy as np
import pytest
import torch

from aprl.errors import ConfigError
from aprl.policies import load_saved, save_policy
from aprl.training.normalize import VecNormalize
from aprl.training.sac import make_sac, sac_arguments, sac_policy_of
from tests.outputs import assert_same_outputs
from tests.training.test_learner import line_env, rps_env, samples

SMALL = {
    "minibatch_size": 16,
    "gradient_steps": 2,
    "learning_starts": 16,
    "buffer_size": 500,
    "net_arch": [12, 10],
}
ARGUMENTS = sac_arguments(SMALL, batch_size=16, num_env=4)


def test_arguments():
    assert ARGUMENTS == {
        "train_freq": (4, "step"),
        "gradient_steps": 2,
        "batch_size": 16,
        "learning_starts": 16,
        "buffer_size": 500,
        "policy_kwargs": {"net_arch": [12, 10]},
    }
    defaults = sac_arguments({}, batch_size=1024, num_env=64)
    assert defaults["train_freq"] == (16, "step") and defaults["gradient_steps"] == 32


@pytest.mark.parametrize(
    ("rl_args", "message"),
    [
        ({"noptepochs": 4}, "unknown rl_args entry 'noptepochs' of sac"),
        ({"tau": 2}, r"tau.*in \[0, 1\], got 2"),
        ({"gradient_steps": 0}, "gradient_steps.*at least 1, got 0"),
        ({"ent_coef": "much"}, "ent_coef.*got 'much'"),
        ({"net_arch": []}, "net_arch"),
        ({"learning_starts": True}, "learning_starts"),
    ],
)
def test_arguments_that_are_refused(rl_args, message):
    with pytest.raises(ConfigError, match=message):
        sac_arguments(rl_args, 64, 4)


def test_environments_must_divide_the_batch_and_act_continuously():
    with pytest.raises(ConfigError, match="batch_size 63 is not a multiple of num_env 4"):
        sac_arguments({}, 63, 4)
    with pytest.raises(ConfigError, match="continuous actions"):
        make_sac(rps_env(), ARGUMENTS, 3e-4, 0)


def trained():
    env = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_sac(env, ARGUMENTS, 3e-3, seed=1)
    learner.learn(64)
    env.training = False
    return env, learner


def test_the_policy_acts_and_judges_as_the_learner_does(tmp_path):
    env, learner = trained()
    policy = sac_policy_of(learner, env)
    obs = samples(env.observation_space)
    seen = env.normalize_obs(obs)
    expected, _ = learner.predict(seen, deterministic=True)
    np.testing.assert_allclose(policy.predict(obs, deterministic=True)[0], expected, atol=1e-6)
    np.testing.assert_allclose(policy.mean(obs), expected, atol=1e-6)
    with torch.no_grad():
        z = torch.as_tensor(seen)
        values = torch.stack(learner.critic(z, learner.actor(z, deterministic=True))).min(0).values
    scale = np.sqrt(env.ret_rms.var + env.epsilon)
    np.testing.assert_allclose(policy.value(obs), values[:, 0] * scale, rtol=1e-4)
    save_policy(policy, tmp_path / "policy", {})
    again = load_saved(tmp_path / "policy", seed=5)
    assert_same_outputs(again.mean(obs), policy.mean(obs))
    assert {k: v.shape for k, v in again.hidden(obs).items()} == {
        "ff_policy": (50, 22),
        "ff_value": (50, 22),
    }


def test_samples_follow_the_learners_distribution():
    env, learner = trained()
    policy = sac_policy_of(learner, env)
    obs = np.tile(samples(env.observation_space, 1), (20000, 1))
    drawn = policy.predict(obs)[0]
    assert (np.abs(drawn) <= 1).all()
    mean, log_std, _ = learner.actor.get_action_dist_params(
        torch.as_tensor(env.normalize_obs(obs[:1]))
    )
    gaussian = np.arctanh(np.clip(drawn, -0.999999, 0.999999))
    assert abs(np.median(gaussian) - mean.item()) < 0.05 * log_std.exp().item()
    low, high = np.quantile(gaussian, [0.1587, 0.8413])
    assert (high - low) / 2 == pytest.approx(log_std.exp().item(), rel=0.05)


def test_going_on_from_a_saved_policy():
    env, learner = trained()
    start = sac_policy_of(learner, env)
    raw = line_env()
    again = make_sac(raw, ARGUMENTS, 0.0, seed=9, start=start)
    for one, other in (("critic", "critic_target"), ("critic", "critic")):
        for a, b in zip(
            getattr(again, one).parameters(), getattr(again, other).parameters(), strict=True
        ):
            assert torch.equal(a, b)
    back = sac_policy_of(again, None)
    obs = samples(raw.observation_space)
    assert_same_outputs(back.mean(obs), start.mean(obs))
    for ours, theirs in zip(learner.critic.parameters(), again.critic.parameters(), strict=True):
        assert torch.equal(ours, theirs)
