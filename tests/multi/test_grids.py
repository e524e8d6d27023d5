"""Named sweeps: how many trials, and that each trial is a config that can be."""

import json
from collections import Counter
from pathlib import Path

import pytest

from aprl.configs.multi_train import NAMED_CONFIGS
from aprl.errors import ConfigError
from aprl.multi.axes import (
    LogUniform,
    PowerOfTwo,
    RandInt,
    Uniform,
    axis_from_json,
    axis_to_json,
    flat_axes,
    merged,
    spread,
)
from aprl.multi.config import SweepConfig
from aprl.multi.grids import GRIDS
from aprl.multi.trials import expand

# Trial counts of Gleave et al.'s grids.
COUNTS = {
    "hyper": 200,
    "attack_fast_search": 24,
    "best_guess": 33,
    "paper": 55,
    "dec2018rep": 36,
    "dense_env_reward": 12,
    "dense_env_reward_anneal_search": 10,
    "kick_and_defend_sparse_vs_dense": 30,
    "single_agent_baseline": 12,
    "vec_normalize": 36,
    "finetune_nolearn": 2,
    "gym_compete_from_scratch": 12,
    "finetune_best_guess": 33,
    "finetune_gentle_mlp": 9,
    "finetune_gentle_youshallnotpass": 3,
    "finetune_gentle_lstm": 9,
    "lstm_policies": 30,
    "noise_ball_search": 20,
    "noise_ball": 12,
    "finetune_defense": 55,
    "hyper_finetune_defense": 11 * 20,
}


def trials_of(*names, **entries):
    values = {}
    for name in names:
        values |= NAMED_CONFIGS[name]
    config = SweepConfig(**values | entries)
    config.check()
    return expand(config.make_grid(), config.seed)


@pytest.mark.parametrize("name", COUNTS)
def test_as_many_trials_as_published_all_of_them_possible(name):
    trials = trials_of(name)
    assert len(trials) == COUNTS[name]
    assert len({trial.name for trial in trials}) == len(trials)
    for trial in trials:
        trial.config().resolve()


@pytest.mark.parametrize(
    "modifiers, grid, count, name",
    [
        (["defense_single"], "finetune_defense", 55, "finetune_defense_single"),
        (["defense_dual"], "finetune_defense", 175, "finetune_defense_dual"),
        (["defense_single", "defense_only_mlp"], "finetune_defense", 5,
         "finetune_defense_single_mlp"),
        (["defense_dual", "defense_only_mlp"], "finetune_defense", 5, "finetune_defense_dual_mlp"),
        (["defense_dual"], "hyper_finetune_defense", 35 * 20, "hyper_finetune_defense_dual"),
        (["defense_only_mlp"], "hyper_finetune_defense", 100, "hyper_finetune_defense_single_mlp"),
        (["defense_dual"], "finetune_defence", 175, "finetune_defense_dual"),
    ],
)  # fmt: skip
def test_modifiers_work_in_any_order(modifiers, grid, count, name):
    for order in ([*modifiers, grid], [grid, *reversed(modifiers)]):
        values = {}
        for each in order:
            values |= NAMED_CONFIGS[each]
        config = SweepConfig(**values)
        config.check()
        made = config.make_grid()
        assert made.name == name
        assert len(expand(made, 0)) == count


@pytest.mark.parametrize(
    "names, complaint",
    [
        (["finetune_defense", "defense_single", "defense_dual"], "contradict"),
        (["finetune_defense", "adv_finetune"], "adv_finetune is for"),
        (["adv_against_hardened", "adv_finetune", "adv_from_scratch"], "contradict"),
        (["paper", "defense_dual"], "defense_dual is for"),
        (["paper", "defense_only_mlp"], "defense_only_mlp is for"),
    ],
)
def test_modifiers_that_do_not_fit_are_refused(names, complaint):
    values = {}
    for name in names:
        values |= NAMED_CONFIGS[name]
    with pytest.raises(ConfigError, match=complaint):
        SweepConfig(**values).check()


def test_every_grid_is_counted_or_needs_trained_victims():
    assert set(GRIDS) - set(COUNTS) == {"adv_against_hardened", "hyper_adv_against_hardened"}


def hardened_tree(root, env_name, tags):
    """Hardened victims, and adversaries, as finished runs of 10 games."""
    for victim_side, kind in ((True, "hardened"), (False, "adversary")):
        for tag in tags:
            run = root / kind / f"run-{tag}"
            (run / "rl").mkdir(parents=True)
            (run / "final_model").mkdir()
            config = {
                "env_name": env_name,
                "embed_index": 1 if victim_side else 0,
                "embed_types": ["ppo" if victim_side else "zoo"],
                "embed_paths": ["somewhere" if victim_side else tag],
                "load_policy": {"type": "zoo", "path": tag} if victim_side else {},
            }
            (run / "config.json").write_text(json.dumps(config))
            header = {"architecture": {"network": "mlp"}, "kind": "ppo", "format": "aprl-policy",
                      "format_version": 1, "observation_space": {}, "action_space": {},
                      "provenance": {}, "weights_sha256": None}  # fmt: skip
            del header["weights_sha256"]
            (run / "final_model" / "policy.json").write_text(json.dumps(header))
            (run / "final_model" / "policy.safetensors").write_bytes(b"")
            columns = "game_count_win0,game_count_win1,game_count_tie"
            (run / "rl" / "progress.csv").write_text(f"{columns}\n6,3,1\n")
    return root


def test_attacks_on_hardened_victims_are_looked_up_in_trees(tmp_path):
    env_name = "multicomp/KickAndDefend-v1"
    hardened_tree(tmp_path, env_name, ["1", "3"])
    trees = {"hardened": str(tmp_path / "hardened"), "adversaries": str(tmp_path / "adversary")}
    config = SweepConfig(grid="adv_against_hardened", **trees)
    grid = config.make_grid()
    trials = expand(grid, 0)
    assert grid.name == "adv_from_scratch_against_finetune_defense_single"
    assert len(trials) == 2 * 5
    assert Counter(Path(t.train["embed_path"]).parent.name for t in trials) == {
        "run-1": 5,
        "run-3": 5,
    }
    assert {t.train["embed_type"] for t in trials} == {"ppo"}
    assert len([text for text in grid.missing if "no hardened version" in text]) == 11 - 2


@pytest.mark.parametrize(
    "value, wanted",
    [
        ([1, 2], [1, 2]),
        ({"uniform": [0, 1]}, Uniform(0, 1)),
        ({"loguniform": [1e-5, 1e-2]}, LogUniform(1e-5, 1e-2)),
        ({"randint": [1, 11]}, RandInt(1, 11)),
        ({"power_of_two": [0, 7]}, PowerOfTwo(0, 7)),
    ],
)
def test_axes_are_plain_json(value, wanted):
    assert axis_from_json("key", value) == wanted
    assert axis_from_json("key", json.loads(json.dumps(axis_to_json(wanted)))) == wanted


@pytest.mark.parametrize(
    "key, value, complaint",
    [
        ("a", [], "must be a list of values"),
        ("a", 3, "must be a list of values"),
        ("a:b", [[1, 2], [3]], "sets 2 entries at a time"),
        ("a", {"normal": [0, 1]}, "normal"),
        ("a", {"uniform": [1, 0]}, "low < high"),
        ("a", {"loguniform": [0, 1]}, "low above 0"),
        ("a", {"randint": [0.5, 3]}, "two whole numbers"),
        ("a:b", {"uniform": [0, 1]}, "sets several entries"),
        ("a", {"uniform": [0, 1], "randint": [0, 1]}, "one distribution"),
        ("a", {"uniform": [0, float("nan")]}, "low < high"),
    ],
)
def test_axes_that_cannot_be_are_refused(key, value, complaint):
    with pytest.raises(ConfigError, match=complaint):
        axis_from_json(key, value)


def test_axes_may_be_nested_as_sacred_makes_them():
    nested = {
        "rl_args": {"gamma": {"uniform": [0, 1]}, "policy_kwargs": {"net_arch": [[8], [16]]}},
        "seed:rl_args": {"n_epochs": [[0, 1], [1, 2]]},
        "learning_rate": {"nonsense": [0, 1]},
    }
    assert flat_axes(nested) == {
        "rl_args.gamma": {"uniform": [0, 1]},
        "rl_args.policy_kwargs.net_arch": [[8], [16]],
        "seed:rl_args.n_epochs": [[0, 1], [1, 2]],
        "learning_rate": {"nonsense": [0, 1]},
    }
    assert flat_axes(flat_axes(nested)) == flat_axes(nested)


def test_joint_keys_are_taken_apart():
    assert spread({"a:b": (1, 2), "c": 3}) == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(ConfigError, match="two axes set 'a'"):
        spread({"a:b": (1, 2), "a": 3})


def test_dots_lead_into_nested_entries():
    base = {"rl_args": {"gamma": 0.99}, "seed": 0}
    assert merged(base, {"rl_args.ent_coef": 0.1, "seed": 1}) == {
        "rl_args": {"gamma": 0.99, "ent_coef": 0.1},
        "seed": 1,
    }
    assert base == {"rl_args": {"gamma": 0.99}, "seed": 0}
    with pytest.raises(ConfigError, match="has no entries"):
        merged({"seed": 0}, {"seed.x": 1})


def test_sampled_axes_are_drawn_within_bounds_and_the_same_for_the_same_seed():
    first = trials_of("hyper")
    again = trials_of("hyper")
    other = trials_of("hyper", seed=1)
    assert [t.values for t in first] == [t.values for t in again]
    assert [t.values for t in first] != [t.values for t in other]
    for trial in first:
        entries = trial.train
        assert entries["batch_size"] in {2**n for n in range(11, 16)}
        assert 0 <= entries["rl_args"]["ent_coef"] < 0.02
        assert 1 <= entries["rl_args"]["noptepochs"] <= 10
        assert 1e-5 <= entries["learning_rate"] <= 1e-2
        assert entries["rl_args"]["nminibatches"] in {2**n for n in range(7)}
        assert 0 <= entries["seed"] < 1000


def test_own_axes_replace_those_of_the_grid():
    config = SweepConfig(grid="paper", axes={"seed": [7], "learning_rate": {"uniform": [0, 1e-3]}})
    trials = expand(config.make_grid(), 0)
    assert len(trials) == 11
    assert {t.train["seed"] for t in trials} == {7}
    assert len({t.train["learning_rate"] for t in trials}) == 11
