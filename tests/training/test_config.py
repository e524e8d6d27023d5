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
