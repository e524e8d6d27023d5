"""From a config to a learner, from a saved policy to a learner, and back to a saved policy."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.envs import make_vec
from aprl.errors import ConfigError
from aprl.policies import ActorCriticMlp, MlpPolicy, ZeroPolicy, load_policy, save_policy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.learner import FrozenNormaliser, make_ppo, policy_of, ppo_arguments
from aprl.training.normalize import VecNormalize
from tests.outputs import assert_same_outputs

ARGUMENTS = ppo_arguments({"nminibatches": 1}, batch_size=32, num_env=4)


def line_env(limit=5):
    """A continuous game with one learner: crowded line with two agents, the other one idle."""
    game = make_vec("aprl/CrowdedLine-v0", 4, num_agents=2, max_episode_steps=limit)
    idle = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    return FlattenSingletonVecEnv(CurryVecEnv(game, idle, 1), 0)


def rps_env():
    game = make_vec("aprl/RockPaperScissors-v0", 4)
    idle = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    return FlattenSingletonVecEnv(CurryVecEnv(game, idle, 1), 0)


def samples(space, n=50):
    space.seed(0)
    return np.stack([space.sample() for _ in range(n)])


# Arguments.


def test_sb2_names_become_sb3_arguments():
    rl_args = {
        "noptepochs": 3,
        "nminibatches": 8,
        "cliprange": 0.1,
        "cliprange_vf": 0.3,
        "lam": 0.9,
        "ent_coef": 0.01,
    }
    assert ppo_arguments(rl_args, batch_size=2048, num_env=8) == {
        "n_steps": 256,
        "batch_size": 256,
        "n_epochs": 3,
        "clip_range": 0.1,
        "clip_range_vf": 0.3,
        "gae_lambda": 0.9,
        "ent_coef": 0.01,
        "policy_kwargs": {"optimizer_kwargs": {"eps": 1e-5}},
    }
    assert rl_args["nminibatches"] == 8  # what was given is left as it was


def test_defaults_are_those_of_stable_baselines_2():
    learner = make_ppo(rps_env(), ppo_arguments({}, batch_size=2048, num_env=4), 3e-4, seed=0)
    assert (learner.n_steps, learner.batch_size, learner.n_epochs) == (512, 512, 4)
    assert (learner.gamma, learner.gae_lambda) == (0.99, 0.95)
    # SB2 clipped the value function like the policy; SB3's default is not to.
    assert learner.clip_range(1.0) == learner.clip_range_vf(1.0) == 0.2
    assert (learner.ent_coef, learner.vf_coef, learner.max_grad_norm) == (0.0, 0.5, 0.5)
    (group,) = learner.policy.optimizer.param_groups
    assert (group["eps"], group["lr"]) == (1e-5, 3e-4)
    towers = [learner.policy.mlp_extractor.policy_net, learner.policy.mlp_extractor.value_net]
    for tower in towers:
        assert [type(layer).__name__ for layer in tower] == ["Linear", "Tanh"] * 2
        assert [tower[0].out_features, tower[2].out_features] == [64, 64]


def test_values_that_switch_something_off_are_accepted():
    rl_args = {"cliprange_vf": None, "target_kl": None, "net_arch": [], "log_std_init": -2}
    args = ppo_arguments(rl_args, batch_size=64, num_env=4)
    assert args["clip_range_vf"] is None and args["target_kl"] is None
    assert args["policy_kwargs"]["net_arch"] == []
    assert args["policy_kwargs"]["log_std_init"] == -2
    two = ppo_arguments({"net_arch": {"pi": [8], "vf": [4, 4]}}, batch_size=64, num_env=4)
    assert two["policy_kwargs"]["net_arch"] == {"pi": [8], "vf": [4, 4]}
    each = ppo_arguments({"normalize_advantage": False}, batch_size=4, num_env=4)
    assert each["batch_size"] == 1


@pytest.mark.parametrize(
    ("rl_args", "batch_size", "num_env", "message"),
    [
        ({"noptepoch": 4}, 64, 4, "unknown rl_args entry 'noptepoch'; known: .*n_epochs"),
        ({"n_steps": 4}, 64, 4, "'n_steps'"),
        ({"learning_rate": 0.1}, 64, 4, "'learning_rate'"),
        ({}, 66, 4, "batch_size 66 is not a multiple of num_env 4"),
        ({}, 6, 3, "nminibatches 4 does not divide batch_size 6"),
        ({"nminibatches": 7}, 64, 4, "nminibatches 7 does not divide batch_size 64"),
        ({"nminibatches": 0}, 64, 4, "nminibatches 0"),
        ({"nminibatches": 2.0}, 64, 4, r"nminibatches 2\.0"),
        ({"nminibatches": 64}, 64, 4, "one step each"),
        ({"noptepochs": 0}, 64, 4, "'noptepochs' must be a whole number of at least 1, got 0"),
        ({"lam": 1.1}, 64, 4, r"'lam' must be a number in \[0, 1\], got 1\.1"),
        ({"gamma": None}, 64, 4, "'gamma'"),
        ({"cliprange": 0}, 64, 4, "'cliprange' must be a number above 0, got 0"),
        ({"cliprange_vf": -1}, 64, 4, "'cliprange_vf' must be a number above 0, or None"),
        ({"ent_coef": "0"}, 64, 4, "'ent_coef' must be a number of at least 0, got '0'"),
        ({"vf_coef": True}, 64, 4, "'vf_coef' must be a number of at least 0, got True"),
        ({"max_grad_norm": float("inf")}, 64, 4, "'max_grad_norm'"),
        ({"normalize_advantage": 0}, 64, 4, "True or False"),
        ({"net_arch": [64, 0]}, 64, 4, "net_arch"),
        ({"net_arch": {"pi": [64], "vf": {"pi": [], "vf": []}}}, 64, 4, "net_arch"),
        ({"log_std_init": None}, 64, 4, "'log_std_init' must be a number"),
    ],
)
def test_arguments_that_cannot_work_are_refused(rl_args, batch_size, num_env, message):
    with pytest.raises(ConfigError, match=message):
        ppo_arguments(rl_args, batch_size, num_env)


def test_the_seed_decides_the_initial_weights():
    first, again, other = (make_ppo(line_env(), ARGUMENTS, 0.0, seed=s) for s in (5, 5, 6))
    weights = [torch.cat([p.flatten() for p in x.policy.parameters()]) for x in (first, again)]
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], torch.cat([p.flatten() for p in other.policy.parameters()]))
    assert "net_arch" not in ARGUMENTS["policy_kwargs"]  # not changed by making learners


# Fine-tuning.


def saved_policy(env, directory):
    """A policy with uneven towers, normaliser, and clip, written to disk."""
    discrete = isinstance(env.action_space, spaces.Discrete)
    torch.manual_seed(0)
    network = ActorCriticMlp(
        3 if discrete else 2,
        3 if discrete else 1,
        policy_layers=[8],
        value_layers=[4, 6],
        discrete=discrete,
        clip=0.7,
    )
    with torch.no_grad():
        for layer in network.policy_tower:
            layer.weight.mul_(3.0)  # so that different observations make a difference
        network.policy_tower[-1].bias.zero_()
        network.obs_mean.copy_(torch.linspace(-0.3, 0.2, network.obs_dim))
        network.obs_std.copy_(torch.linspace(0.5, 1.5, network.obs_dim))
        if not discrete:
            network.log_std.fill_(-1.5)
    policy = MlpPolicy(network, env.observation_space, env.action_space)
    save_policy(policy, directory, {})
    return load(directory, env)


def load(directory, env):
    return load_policy(
        "ppo",
        directory,
        observation_space=env.observation_space,
        action_space=env.action_space,
        env_name="any",
        index=0,
    )


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("make_env", [line_env, rps_env])
def test_loaded_policy_survives_becoming_a_learner(make_env, normalised, tmp_path):
    env = make_env()
    start = saved_policy(env, tmp_path / "start")
    normaliser = None
    if normalised:
        normaliser = env = VecNormalize(env, norm_obs=False, norm_reward=True, gamma=0.99)
    learner = make_ppo(env, ARGUMENTS, 0.0, seed=0, start=start)
    save_policy(policy_of(learner, normaliser), tmp_path / "back", {})
    back = load(tmp_path / "back", make_env())
    obs = samples(env.observation_space)
    assert_same_outputs(back.mean(obs), start.mean(obs))
    assert_same_outputs(
        back.predict(obs, deterministic=True)[0], start.predict(obs, deterministic=True)[0]
    )
    # Before anything is played, a reward of 1 is a reward of 1 (up to the normaliser's epsilon).
    np.testing.assert_allclose(back.value(obs), start.value(obs), rtol=1e-6)
    assert back.architecture() == start.architecture()
    assert back.architecture()["value_layers"] == [4, 6]
    # Samples are as wide as before.
    for policy in (back, start):
        policy.seed(1)
    assert_same_outputs(back.predict(obs)[0], start.predict(obs)[0])
    # SB3's own view of the learner agrees as well.
    own, _ = learner.predict(obs, deterministic=True)
    np.testing.assert_allclose(own, start.predict(obs, deterministic=True)[0], atol=1e-6)
    assert len(np.unique(own)) > 1  # the comparison is not between constants


@pytest.mark.parametrize("make_env", [line_env, rps_env])
def test_learning_changes_neither_the_frozen_normaliser_nor_the_policy_it_started_from(
    make_env, tmp_path
):
    env = make_env()
    start = saved_policy(env, tmp_path / "start")
    obs = samples(env.observation_space)
    before = start.mean(obs)
    learner = make_ppo(env, ARGUMENTS, 0.01, seed=0, start=start)
    learner.learn(64)
    after = policy_of(learner, None)
    assert not np.allclose(after.mean(obs), before, atol=1e-3)
    assert_same_outputs(start.mean(obs), before)
    assert torch.equal(after.network.obs_mean, start.network.obs_mean)
    assert torch.equal(after.network.obs_std, start.network.obs_std)
    assert after.network.clip == 0.7
    # Nor does restoring a learner from other weights, as resuming does.
    weights = learner.policy.state_dict()
    for name in weights:
        if name.endswith(("mean", "std")):
            weights[name] = weights[name] + 1
    learner.policy.load_state_dict(weights)
    assert_same_outputs(start.mean(obs), before)


def test_frozen_normaliser_in_numbers():
    space = spaces.Box(-9, 9, (2,))
    frozen = FrozenNormaliser(space, np.float32([1, 2]), np.float32([2, 0.5]), clip=3.0)
    obs = torch.tensor([[3.0, 2.5], [-9.0, 9.0]])
    np.testing.assert_array_equal(frozen(obs), [[1, 1], [-3, 3]])
    np.testing.assert_array_equal(obs, [[3, 2.5], [-9, 9]])
    assert not list(frozen.parameters())


# Back to a policy.


@pytest.mark.parametrize("learning_rate", [0.0, 3e-4])
def test_running_normaliser_goes_into_the_saved_policy(learning_rate):
    env = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_ppo(env, ARGUMENTS, learning_rate, seed=0)
    learner.learn(64)
    raw = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    raw[0], raw[1] = 50, -50  # beyond the clip of 10 standard deviations
    normalised = env.normalize_obs(raw)
    assert np.abs(normalised).max() == 10
    policy = policy_of(learner, env)
    tensor = torch.from_numpy(normalised)
    with torch.no_grad():
        mean = learner.policy.get_distribution(tensor).mode().numpy()
        value = learner.policy.predict_values(tensor).numpy().ravel()
    np.testing.assert_allclose(policy.mean(raw), mean, atol=1e-5)
    assert np.ptp(mean) > 1e-3
    played, _ = learner.predict(normalised, deterministic=True)
    np.testing.assert_allclose(policy.predict(raw, deterministic=True)[0], played, atol=1e-5)
    scale = np.sqrt(env.ret_rms.var + env.epsilon)  # values in units of the game's reward
    np.testing.assert_allclose(policy.value(raw), value * scale, rtol=1e-4, atol=1e-5)
    assert policy.network.clip == 10
    # Its spaces are the game's.
    assert policy.observation_space == line_env().observation_space


def test_discrete_learner_with_normalised_rewards():
    env = VecNormalize(rps_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_ppo(env, ARGUMENTS, 0.01, seed=0)
    learner.learn(64)
    policy = policy_of(learner, env)
    obs = np.arange(3)
    with torch.no_grad():
        logits = learner.policy.get_distribution(torch.arange(3)).distribution.logits.numpy()
    ours = policy.mean(obs)
    np.testing.assert_allclose(ours - ours[:, :1], logits - logits[:, :1], atol=1e-5)
    assert policy.network.clip == float("inf") and policy.network.log_std is None


@pytest.mark.parametrize(
    ("net_arch", "layers"),
    [([], ([], [])), ([5], ([5], [5])), ({"pi": [3], "vf": [4, 5]}, ([3], [4, 5]))],
)
def test_any_architecture_becomes_a_policy(net_arch, layers, tmp_path):
    arguments = ppo_arguments({"net_arch": net_arch, "log_std_init": -2.5}, 32, 4)
    env = line_env()
    learner = make_ppo(env, arguments, 0.0, seed=0)
    policy = policy_of(learner, None)
    assert (policy.network.policy_layers, policy.network.value_layers) == layers
    assert policy.network.log_std.tolist() == [-2.5]
    obs = samples(env.observation_space)
    own, _ = learner.predict(obs, deterministic=True)
    np.testing.assert_allclose(policy.predict(obs, deterministic=True)[0], own, atol=1e-6)


def test_a_policy_taken_from_a_learner_does_not_learn_on():
    env = VecNormalize(line_env(), norm_obs=True, norm_reward=True, gamma=0.99)
    learner = make_ppo(env, ARGUMENTS, 0.01, seed=0)
    learner.learn(32)
    policy = policy_of(learner, env)
    obs = samples(line_env().observation_space)
    mean, value = policy.mean(obs), policy.value(obs)
    learner.learn(64)
    assert_same_outputs(policy.mean(obs), mean)
    assert_same_outputs(policy.value(obs), value)
    assert not np.allclose(policy_of(learner, env).mean(obs), mean, atol=1e-4)
