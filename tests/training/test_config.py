"""Configs are checked whole before anything is built."""

from dataclasses import asdict

import pytest

from aprl.errors import ConfigError
from aprl.training.config import TrainConfig
from aprl.training.learner import ppo_arguments


def test_defaults_attack_the_games_victim_from_the_zoo():
    config = TrainConfig(env_name="multicomp/YouShallNotPassHumans-v1").resolve()
    assert (config.embed_types, config.embed_paths, config.embed_index) == (["zoo"], ["1"], 1)
    assert config.agent_idx == 0
    ants = TrainConfig(env_name="multicomp/RunToGoalAnts-v1").resolve()
    assert (ants.embed_index, ants.agent_idx) == (0, 1)
    nobody = TrainConfig(embed_types=[], embed_paths=[]).resolve()
    assert nobody.agent_idx == 0 and nobody.embed_types == []


def test_resolving_does_not_change_the_original():
    config = TrainConfig(embed_type="ppo2", embed_path="x", rl_algo="ppo2")
    before = asdict(config)
    resolved = config.resolve()
    assert asdict(config) == before
    assert (resolved.rl_algo, resolved.embed_types) == ("ppo", ["ppo"])
    assert resolved.resolve() == resolved


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env_name": "multicomp/RunToGoalAnt-v1"}, "RunToGoalAnts-v1"),
        ({"embed_paths": ["1"]}, "embed_types"),
        ({"embed_types": ["zoo"]}, "embed_paths"),
        ({"embed_types": ["zoo", "zoo"], "embed_paths": ["1"]}, "2 entries"),
        ({"embed_types": ["zoo", "zoo"], "embed_paths": ["1", "1"]}, "several"),
        ({"embed_type": "zooo"}, "zooo"),
        ({"embed_index": 2}, "embed_index"),
        ({"rl_algo": "gail"}, "gail"),
        ({"num_env": 0}, "num_env"),
        ({"num_env": True}, "num_env"),
        ({"total_timesteps": 1.5}, "total_timesteps"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"batch_size": 100, "num_env": 64}, "multiple"),
        ({"rl_args": {"nminibatches": 7}}, "nminibatches"),
        ({"rl_args": {"noptepoch": 7}}, "noptepoch"),
        ({"aside": 2}, "aside"),
        ({"load_policy": {"path": "x", "kind": "ppo"}}, "load_policy"),
        ({"load_policy": {"path": "x", "type": "ppo"}}, "normalize_observations=False"),
        ({"rew_shape_params": {"anneal_frac": 2}}, "anneal_frac"),
        ({"rew_shape_params": {"weights": {"dense": {}}}}, "sparse"),
        ({"rew_shape_params": {"weights": 3}}, "weights"),
        ({"rew_shape_params": {"weights": {"dense": 3, "sparse": {}}}}, "dense"),
        ({"rew_shape_params": {"anneal_frac": "x"}}, "anneal_frac"),
        ({"env_name": None}, "env_name must be text"),
        ({"load_policy": None}, "load_policy"),
        ({"rl_args": 3}, "rl_args"),
        ({"normalize": "no"}, "normalize"),
        ({"batch_size": 4, "num_env": 4}, "one step each"),
        ({"rl_args": {"noptepochs": 0}}, "noptepochs"),
        ({"rl_args": {"n_epochs": 1.5}}, "n_epochs"),
        ({"rl_args": {"gamma": 1.5}}, "gamma"),
        ({"rl_args": {"lam": "x"}}, "lam"),
        ({"rl_args": {"cliprange": 0}}, "cliprange"),
        ({"rl_args": {"cliprange": None}}, "cliprange"),
        ({"rl_args": {"target_kl": -1}}, "target_kl"),
        ({"rl_args": {"ent_coef": float("nan")}}, "ent_coef"),
        ({"rl_args": {"normalize_advantage": 1}}, "normalize_advantage"),
        ({"rl_args": {"net_arch": 64}}, "net_arch"),
        ({"rl_args": {"net_arch": {"pi": [64]}}}, "net_arch"),
    ],
)
def test_what_cannot_work_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**changes).resolve()


def test_unknown_entries_name_near_ones():
    with pytest.raises(ConfigError, match="learning_rate"):
        TrainConfig.from_dict({"lerning_rate": 1})


def test_sb2_names_become_sb3_arguments():
    rl_args = {"noptepochs": 3, "nminibatches": 8, "cliprange": 0.1, "lam": 0.9, "ent_coef": 0.01}
    args = ppo_arguments(rl_args, batch_size=2048, num_env=8)
    assert args["n_steps"] == 256 and args["batch_size"] == 256
    assert (args["n_epochs"], args["clip_range"], args["gae_lambda"]) == (3, 0.1, 0.9)
    # SB2 clipped the value function like the policy; SB3's default is not to.
    assert args["clip_range_vf"] == 0.2 and args["ent_coef"] == 0.01


def test_values_that_switch_something_off_are_accepted():
    rl_args = {"cliprange_vf": None, "target_kl": None, "net_arch": [], "log_std_init": -2}
    args = ppo_arguments(rl_args, batch_size=64, num_env=4)
    assert args["clip_range_vf"] is None and args["target_kl"] is None
    assert args["policy_kwargs"]["net_arch"] == []
    two = ppo_arguments({"net_arch": {"pi": [8], "vf": [4, 4]}}, batch_size=64, num_env=4)
    assert two["policy_kwargs"]["net_arch"] == {"pi": [8], "vf": [4, 4]}
