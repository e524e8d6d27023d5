from dataclasses import replace

import pytest

from aprl.configs.imitation import NAMED_CONFIGS
from aprl.errors import ConfigError
from aprl.imitation.config import ImitationConfig

GIVEN = ImitationConfig(demonstrations="d.npz")


@pytest.mark.parametrize("name", NAMED_CONFIGS)
def test_named_configs_are_complete(name):
    assert replace(GIVEN, **NAMED_CONFIGS[name]).check() == replace(GIVEN, **NAMED_CONFIGS[name])


def test_round_trip_and_parts():
    config = ImitationConfig.from_dict(
        replace(GIVEN, disc_updates=7, gradient_penalty=2.0).to_dict()
    )
    adversarial = config.adversarial()
    assert adversarial.discriminator.updates_per_round == 7
    assert adversarial.discriminator.gradient_penalty == 2.0
    assert config.ppo_arguments()["n_steps"] == 256 and config.ppo_arguments()["batch_size"] == 256


def test_games_imitate_their_victim():
    assert replace(GIVEN, env_name="multicomp/YouShallNotPassHumans-v1").imitated_agent == 1
    assert replace(GIVEN, env_name="aprl/CrowdedLine-v0").imitated_agent == 0
    assert replace(GIVEN, env_name="aprl/CrowdedLine-v0", agent_idx=1).imitated_agent == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"demonstrations": None}, "demonstrations must name"),
        ({"algorithm": "gial"}, "did you mean 'gail'"),
        ({"env_name": "CartPol-v1"}, "CartPole-v1"),
        ({"num_env": 0}, "num_env must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"batch_size": 1001}, "batch_size 1001 is not a multiple"),
        ({"rl_args": {"lambda": 0.9}}, "unknown rl_args entry 'lambda'"),
        ({"learning_rate": 2.0}, "learning_rate must be"),
        ({"learning_rate_schedule": "cosine"}, "'cosine'"),
        ({"reward_transform": "sofplus"}, "did you mean 'softplus'"),
        ({"reward_hidden": [0]}, "reward_hidden must be"),
        ({"policy_hidden": [64, 0]}, "policy_hidden must be"),
        ({"rl_args": {"net_arch": [8]}}, "policy_hidden sets the layers"),
        ({"disc_updates": 0}, "updates_per_round must be"),
        ({"bc_epochs": 0}, "epochs must be"),
        ({"total_timesteps": "many"}, "total_timesteps must be a whole number"),
        ({"env_name": "aprl/CrowdedLine-v0", "opponent_type": "zoom"}, "did you mean 'zoo'"),
        ({"env_name": "aprl/CrowdedLine-v0", "horizon": 5}, "games have max_episode_steps"),
        ({"agent_idx": 2}, "agent_idx must be 0 or 1"),
    ],
)
def test_what_cannot_work(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(GIVEN, **changes).check()


def test_unknown_entries():
    with pytest.raises(ConfigError, match="did you mean horizon"):
        ImitationConfig.from_dict({"horizn": 5})
