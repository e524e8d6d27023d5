"""Configs are checked whole before anything is built."""

import copy
import json
from dataclasses import asdict, fields

import pytest

from aprl.configs.train import NAMED_CONFIGS
from aprl.errors import ConfigError
from aprl.training.config import TrainConfig, default_weights

YSNP, ANTS = "multicomp/YouShallNotPassHumans-v1", "multicomp/RunToGoalAnts-v1"
RPS = "aprl/RockPaperScissors-v0"
NO_POLICY = {"path": None, "type": None}


# What is filled in.


@pytest.mark.parametrize(
    ("env_name", "victim"),
    [
        (YSNP, 1),
        ("multicomp/YouShallNotPassHumans-v0", 1),
        (ANTS, 0),
        ("multicomp/RunToGoalHumans-v0", 0),
        (RPS, 0),
    ],
)
def test_by_default_the_games_victim_is_embedded_from_the_zoo(env_name, victim):
    config = TrainConfig(env_name=env_name)
    resolved = config.resolve()
    assert (resolved.embed_types, resolved.embed_paths) == (["zoo"], ["1"])
    assert (resolved.embed_type, resolved.embed_path) == (None, None)
    assert resolved.embed_index == victim
    assert resolved.agent_idx == config.agent_idx == 1 - victim


@pytest.mark.parametrize("index", [0, 1])
def test_a_given_index_goes_before_the_default(index):
    for env_name in (YSNP, ANTS):
        config = TrainConfig(env_name=env_name, embed_index=index)
        assert config.resolve().embed_index == index
        assert config.resolve().agent_idx == config.agent_idx == 1 - index


def test_nobody_embedded():
    config = TrainConfig(embed_types=[], embed_paths=[])
    resolved = config.resolve()
    assert (resolved.embed_types, resolved.embed_paths) == ([], [])
    assert resolved.agent_idx == config.agent_idx == 0


@pytest.mark.parametrize(
    ("changes", "types", "paths"),
    [
        ({"embed_type": "ppo"}, ["ppo"], ["1"]),
        ({"embed_path": "2"}, ["zoo"], ["2"]),
        ({"embed_path": 2}, ["zoo"], ["2"]),  # as the command line reads it
        ({"embed_type": "constant", "embed_path": 0}, ["constant"], ["0"]),
        ({"embed_type": "ppo2", "embed_path": "a/b"}, ["ppo"], ["a/b"]),
        ({"embed_types": ["ppo2"], "embed_paths": [3]}, ["ppo"], ["3"]),
        ({"embed_types": ("zero",), "embed_paths": ("none",)}, ["zero"], ["none"]),
    ],
)
def test_embedded_policies_become_lists(changes, types, paths):
    resolved = TrainConfig(**changes).resolve()
    assert (resolved.embed_types, resolved.embed_paths) == (types, paths)


def test_old_names_of_algorithms_and_policies():
    resolved = TrainConfig(
        rl_algo="ppo2",
        load_policy={"type": "ppo2", "path": "x"},
        normal_opponent={"type": "ppo2", "path": 3},
        normalize_observations=False,
    ).resolve()
    assert resolved.rl_algo == "ppo"
    assert resolved.load_policy == {"type": "ppo", "path": "x"}
    assert resolved.normal_opponent == {"type": "ppo", "path": "3"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, NO_POLICY),
        ({"type": "ppo"}, NO_POLICY),
        ({"path": "x"}, {"path": "x", "type": "ppo"}),
        ({"path": "x", "type": None}, {"path": "x", "type": "ppo"}),
        ({"path": 1, "type": "zoo"}, {"path": "1", "type": "zoo"}),
    ],
)
@pytest.mark.parametrize("name", ["load_policy", "normal_opponent"])
def test_references_to_policies_are_completed(name, given, expected):
    config = TrainConfig(**{name: given}, normalize_observations=False)
    assert getattr(config.resolve(), name) == expected


def test_weights_of_rewards_are_filled_in():
    assert TrainConfig().resolve().rew_shape_params == {
        "weights": {"dense": {"reward_move": 0.1}, "sparse": {"reward_remaining": 0.01}}
    }
    sparse = TrainConfig(rew_shape_params={"anneal_frac": 0.0}).resolve()
    assert sparse.rew_shape_params == {"anneal_frac": 0.0, "weights": default_weights()}
    own = {"weights": {"dense": {}, "sparse": {"x": 1}}}
    assert TrainConfig(rew_shape_params=own).resolve().rew_shape_params == own


def test_text_may_be_given_as_a_number():
    assert TrainConfig(exp_name=5).resolve().exp_name == "5"


# What resolving leaves alone.


def test_resolving_changes_nothing_that_was_given_and_twice_is_once():
    given = {
        "embed_types": ["ppo2"],
        "embed_paths": [1],
        "rl_algo": "ppo2",
        "rl_args": {"noptepochs": 2, "nminibatches": 8},
        "rew_shape_params": {"anneal_frac": 0.5},
        "load_policy": {"path": "x"},
        "normalize_observations": False,
    }
    before, defaults = copy.deepcopy(given), copy.deepcopy(default_weights())
    config = TrainConfig(**given)
    whole = copy.deepcopy(asdict(config))
    resolved = config.resolve()
    assert given == before and asdict(config) == whole and defaults == default_weights()
    assert resolved.resolve() == resolved
    assert resolved.rl_args == before["rl_args"]


def test_a_resolved_config_survives_json():
    resolved = TrainConfig(embed_types=("zero",), embed_paths=("none",), seed=3).resolve()
    text = json.dumps(resolved.to_dict(), allow_nan=False)
    assert TrainConfig.from_dict(json.loads(text)).resolve() == resolved


def test_configs_do_not_share_their_dicts():
    TrainConfig().rl_args["gamma"] = 0.5
    assert TrainConfig().rl_args == {}


# What is refused.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # names
        ({"env_name": "multicomp/RunToGoalAnt-v1"}, "unknown env id.*'multicomp/RunToGoalAnts-v1'"),
        ({"env_name": "a b"}, "no environment id"),
        ({"rl_algo": "gail"}, "unknown rl_algo 'gail'; known: ppo"),
        # the embedded policies
        ({"embed_paths": ["1"]}, "embed_paths was given without embed_types"),
        ({"embed_types": ["zoo"]}, "embed_types was given without embed_paths"),
        (
            {"embed_types": ["zoo", "zoo"], "embed_paths": ["1"]},
            "embed_types has 2 entries and embed_paths 1",
        ),
        ({"load_policy": {"type": "zoo"}}, "load_policy.type is 'zoo', but load_policy.path"),
        (
            {"embed_type": "zoo", "embed_types": [], "embed_paths": []},
            "embed_type was given beside",
        ),
        ({"embed_weights": [1, 2]}, "embed_weights is for several"),
        (
            {"embed_types": ["zero", "random"], "embed_paths": ["", ""]},
            "embed_paths must be a path, a tag or numbers, got ''",
        ),
        (
            {"embed_types": ["zero"] * 2, "embed_paths": ["-"] * 2, "embed_weights": [1]},
            "2 policies need as many weights",
        ),
        ({"transparent_params": ["ff_plicy"]}, "transparency key 'ff_plicy'"),
        ({"embed_noise": True, "embed_noise_params": {"anneal_frac": 0}}, "no noise"),
        (
            {"embed_noise": True, "embed_noise_params": {"metric": "sparse"}, "rew_shape": False},
            "needs rew_shape=True",
        ),
        ({"embed_noise": True, "transparent_params": ["obs"]}, "does not go with embed_noise"),
        # attacks
        ({"attack": "basline"}, "unknown attack 'basline'"),
        ({"attack_params": {"kind": "risk"}}, "attack_params was given without attack"),
        ({"attack": "baseline", "rew_shape": False}, "needs rew_shape=True"),
        ({"attack": "baseline", "embed_types": [], "embed_paths": []}, "nobody is embedded"),
        (
            {"attack": "lookback", "embed_types": ["zero"] * 2, "embed_paths": ["-"] * 2},
            "attack=lookback needs one embedded policy, got 2",
        ),
        ({"embed_type": "zooo"}, "unknown policy type in embed_types: 'zooo'.*'zoo'"),
        (
            {"embed_types": ["gail"], "embed_paths": ["1"]},
            "'gail'.*constant, ppo, random",
        ),
        ({"embed_index": 2}, "embed_index must be 0 or 1, got 2"),
        ({"embed_index": -1}, "embed_index must be 0 or 1, got -1"),
        # other policies
        ({"load_policy": {"path": "x", "kind": "ppo"}}, "load_policy.*kind"),
        ({"load_policy": {"path": "x", "type": "pppo"}}, r"load_policy\.type.*'pppo'"),
        ({"load_policy": {"path": "x", "type": "ppo"}}, "normalize_observations=False"),
        ({"normal_opponent": {"path": "x", "type": "nobody"}}, r"normal_opponent\.type"),
        # counts
        *(
            ({name: value}, f"{name} must be a whole number of at least 1, got {value}")
            for name in ("num_env", "total_timesteps", "batch_size", "checkpoint_interval")
            for value in (0, -5)
        ),
        ({"max_episode_steps": 0}, "max_episode_steps must be a whole number of at least 1"),
        *(
            ({name: -1}, f"{name} must be a whole number of at least 0, got -1")
            for name in ("num_threads", "eval_episodes", "seed")
        ),
        # numbers
        ({"learning_rate": -1e-4}, r"learning_rate must be in \[0, 1\), got -0\.0001"),
        ({"learning_rate": 1}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        (
            {"learning_rate_schedule": "liner"},
            "unknown learning_rate_schedule 'liner'; did you mean 'linear'",
        ),
        ({"aside": 2}, r"aside must be in \[0, 1\], got 2"),
        ({"aside": -0.1}, "aside"),
        # types
        ({"env_name": None}, "env_name must be text, got None"),
        ({"num_env": True}, "num_env must be a whole number, got True"),
        ({"total_timesteps": 1.5}, r"total_timesteps must be a whole number, got 1\.5"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, got 'fast'"),
        ({"embed_types": "zoo", "embed_paths": "1"}, "embed_types must be a list or None"),
        ({"load_policy": None}, "load_policy must be named entries"),
        ({"rl_args": 3}, "rl_args must be named entries"),
        ({"normalize": "no"}, "normalize must be True or False, got 'no'"),
        # the algorithm
        ({"batch_size": 100, "num_env": 64}, "batch_size 100 is not a multiple of num_env 64"),
        ({"batch_size": 4, "num_env": 4}, "one step each"),
        ({"rl_args": {"nminibatches": 7}}, "nminibatches 7 does not divide"),
        ({"rl_args": {"noptepoch": 7}}, "noptepoch"),
        ({"rl_args": {"gamma": 1.5}}, "gamma"),
        # rewards
        ({"rew_shape_params": {"anneal_frac": 2}}, "anneal_frac must be a number in.*got 2"),
        ({"rew_shape_params": {"anneal_frac": "x"}}, "anneal_frac"),
        ({"rew_shape_params": {"weight": {}}}, "unknown entry of rew_shape_params 'weight'"),
        ({"rew_shape_params": {"weights": {"dense": {}}}}, "sparse"),
        ({"rew_shape_params": {"weights": 3}}, "weights"),
        ({"rew_shape_params": {"weights": {"dense": 3, "sparse": {}}}}, "dense"),
    ],
)
def test_what_cannot_work_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**changes).resolve()


def test_what_is_not_used_is_not_checked():
    TrainConfig(rew_shape=False, rew_shape_params={"weights": {"dense": {}}}).resolve()
    # Without observation normalisation of its own the learner takes over the loaded policy's.
    for off in ({"normalize": False}, {"normalize_observations": False}):
        TrainConfig(load_policy={"path": "x"}, **off).resolve()


def test_edges_that_do_work():
    resolved = TrainConfig(
        num_env=1, batch_size=8, total_timesteps=1, learning_rate=0, aside=1, max_episode_steps=1
    ).resolve()
    assert resolved.num_env == 1


@pytest.mark.parametrize(
    ("name", "near"),
    [("lerning_rate", "learning_rate"), ("embed_typ", "embed_type"), ("num_envs", "num_env")],
)
def test_unknown_entries_name_near_ones(name, near):
    with pytest.raises(ConfigError, match=rf"unknown config entry '{name}'; did you mean .*{near}"):
        TrainConfig.from_dict({name: 1})


def test_known_entries_are_taken():
    values = TrainConfig(seed=4, num_env=8).to_dict()
    assert set(values) == {f.name for f in fields(TrainConfig)}
    assert TrainConfig.from_dict(values) == TrainConfig(seed=4, num_env=8)


@pytest.mark.parametrize("name", NAMED_CONFIGS)
def test_named_configs_resolve(name):
    TrainConfig.from_dict(copy.deepcopy(NAMED_CONFIGS[name])).resolve()


def test_attacks_start_from_the_sparse_reward():
    assert TrainConfig(attack="baseline").resolve().rew_shape_params["anneal_frac"] == 0
    given = TrainConfig(attack="baseline", rew_shape_params={"anneal_frac": 0.5}).resolve()
    assert given.rew_shape_params["anneal_frac"] == 0.5
    assert "anneal_frac" not in TrainConfig().resolve().rew_shape_params


# What the game is told.


def test_options_of_the_game():
    assert TrainConfig(env_name=RPS).env_options() == {}
    assert TrainConfig(env_name=RPS, max_episode_steps=7, aside=0.5).env_options() == {
        "max_episode_steps": 7
    }
    plain = TrainConfig(env_name=ANTS, num_threads=2)
    assert plain.env_options() == {"num_threads": 2, "end_when_down": None, "aside": None}
    aids = TrainConfig(env_name=ANTS, embed_index=1, end_when_down=True, aside=0.25)
    for config in (aids, aids.resolve()):  # the learner is agent 0, the one in the way agent 1
        options = config.env_options()
        assert (options["end_when_down"], options["aside"]) == (0, (1, 0.25))
    default = TrainConfig(env_name=ANTS, end_when_down=True)
    assert default.env_options()["end_when_down"] == 1


def test_the_embedded_agents_view_is_masked_as_configured():
    config = TrainConfig(
        env_name=ANTS, mask_embed=True, mask_embed_kwargs={"masking_type": "zeros"}
    )
    ((agent, mask),) = config.resolve().env_options()["masks"].items()
    assert agent == 0 and mask.masking_type == "zeros"
    assert "masks" not in TrainConfig(env_name=ANTS).resolve().env_options()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_embed": True, "mask_embed_kwargs": {"masking_type": "fog"}}, "masking type 'fog'"),
        ({"mask_embed": True, "mask_embed_kwargs": {"kind": "zeros"}}, "entry of the mask 'kind'"),
        ({"mask_embed": True, "env_name": RPS}, "mask_embed is for MuJoCo games only"),
        ({"end_when_down": True, "env_name": RPS}, "end_when_down is for MuJoCo games only"),
        ({"aside": 0.5, "env_name": RPS}, "aside is for MuJoCo games only"),
    ],
)
def test_options_of_mujoco_games_are_checked(options, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**({"env_name": ANTS} | options)).resolve()
