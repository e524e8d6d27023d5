"""Defences on rock paper scissors: whom the victim meets, what it learns, rounds, resumption."""

import pytest

from aprl.alternating import MATRIX_FILE, alternate, read_matrix
from aprl.envs import make_vec
from aprl.errors import ConfigError, RunError
from aprl.files import read_json
from aprl.policies import ActorCriticMlp, MlpPolicy, save_policy
from aprl.train import choose_opponents, newest_unfinished, resume, train
from aprl.training.config import TrainConfig
from aprl.training.defences import DEFENCES, make_defence
from aprl.training.interruption import Interrupted

ROCK, PAPER, SCISSORS = range(3)
SMALL = {
    "env_name": "aprl/RockPaperScissors-v0",
    "num_env": 16,
    "batch_size": 1600,
    "learning_rate": 1e-2,
    "total_timesteps": 24_000,
    "progress": False,
}


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    """A victim that plays rock, one that plays scissors, and a run with an adversary."""
    root = tmp_path_factory.mktemp("arena")
    space = make_vec(SMALL["env_name"], 1).action_spaces[0]
    for name, choice in (("victim", ROCK), ("scissors", SCISSORS), ("paper", PAPER)):
        network = ActorCriticMlp(3, 3, discrete=True)
        network.policy_tower[-1].bias.data[:] = 0
        network.policy_tower[-1].bias.data[choice] = 2
        save_policy(MlpPolicy(network, space, space), root / name, {})
    train(
        TrainConfig(
            **SMALL,
            root_dir=str(root / "tree"),
            embed_type="ppo",
            embed_path=str(root / "victim"),
        )
    )
    return root


def defended(arena, root, **changes):
    return TrainConfig(
        **{
            **SMALL,
            "root_dir": str(root / "hardened"),
            "load_policy": {"type": "ppo", "path": str(arena / "victim")},
            "normalize_observations": False,
            "adversaries": str(arena / "tree"),
            "normal_opponent": {"type": "ppo", "path": str(arena / "scissors")},
            "eval_episodes": 40,
            **changes,
        }
    )


def losses(scores):
    """Share of the games that each opponent won."""
    return {role: score.win_rate(1).rate for role, score in scores.items()}


def test_single_hardens_against_the_adversary(arena, tmp_path):
    result = train(defended(arena, tmp_path, defence="single"))
    assert losses(result.before) == {"adversary": 1.0, "normal opponent": 0.0}
    assert losses(result.after)["adversary"] == 0.0


@pytest.mark.parametrize("defence", ["dual", "population"])
def test_mixtures_harden_and_keep_normal_play(arena, tmp_path, defence):
    result = train(defended(arena, tmp_path, defence=defence))
    assert losses(result.after) == {"adversary": 0.0, "normal opponent": 0.0}
    config = read_json(result.run_dir / "config.json")
    assert config["embed_weights"] == [0.5, 0.5] and len(config["embed_paths"]) == 2


def test_whom_a_population_is_made_of(arena, tmp_path):
    params = {
        "adversaries": [str(arena / "paper"), str(arena / "victim")],
        "opponents": [str(arena / "scissors")],
        "normal_ratio": 0.2,
    }
    config = choose_opponents(
        defended(arena, tmp_path, defence="population", defence_params=params)
    ).resolve()
    assert [path.rsplit("/", 1)[1] for path in config.embed_paths] == [
        "paper",
        "victim",
        "scissors",
    ]
    assert config.embed_weights == pytest.approx([0.4, 0.4, 0.2])
    assert config.embed_index == 1 and config.agent_idx == 0


def test_dual_follows_its_ratio(arena, tmp_path):
    config = defended(arena, tmp_path, defence="dual", defence_params={"normal_ratio": 0.25})
    assert choose_opponents(config).embed_weights == [0.75, 0.25]


ROUNDS = {
    "defence": "alternating",
    "defence_params": {
        "rounds": 2,
        "attack_timesteps": 24_000,
        "attack_start": "",
        "attack_config": {"learning_rate": 2e-2},
    },
    "adversaries": None,
}


def test_rounds_of_attack_and_defence(arena, tmp_path):
    result = alternate(defended(arena, tmp_path, **ROUNDS))
    matrix = read_matrix(result.run_dir / MATRIX_FILE)
    assert list(matrix) == ["victim 0", "victim 1", "victim 2"]
    lost = {victim: losses(row) for victim, row in matrix.items()}
    assert set(lost["victim 2"]) == {"adversary 1", "adversary 2", "normal opponent"}
    assert lost["victim 0"]["adversary 1"] == 1.0  # the attack of round 1 works,
    assert lost["victim 1"]["adversary 1"] == 0.0  # and its defence too, without
    assert lost["victim 1"]["normal opponent"] == 0.0  # unlearning normal play
    assert lost["victim 2"]["adversary 1"] == 0.0
    assert result.before == matrix["victim 0"] and result.after == matrix["victim 2"]
    stages = read_json(result.run_dir / "rounds.json")["stages"]
    assert list(stages) == ["round1-attack", "round1-defence", "round2-attack", "round2-defence"]
    pool = read_json(result.run_dir / stages["round2-defence"] / "config.json")
    assert pool["embed_weights"] == [0.25, 0.25, 0.5]
    attack = read_json(result.run_dir / stages["round2-attack"] / "config.json")
    assert attack["learning_rate"] == 2e-2 and attack["embed_index"] == 0
    assert attack["embed_paths"] == [str(result.run_dir / stages["round1-defence"] / "final_model")]


def test_rounds_are_resumed_where_they_stopped(arena, tmp_path, monkeypatch):
    short = {**ROUNDS, "total_timesteps": 4800, "eval_episodes": 16, "checkpoint_interval": 1600}
    short["defence_params"] = {**ROUNDS["defence_params"], "attack_timesteps": 4800}
    whole = alternate(defended(arena, tmp_path / "a", **short))
    import aprl.training.run as run_module

    train_it = run_module.TrainingRun._train
    started = []

    def stop_in_the_third_stage(run):
        started.append(run.run_dir.name)
        if len(started) == 3:
            run.directory.signals.received = 15
        return train_it(run)

    monkeypatch.setattr(run_module.TrainingRun, "_train", stop_in_the_third_stage)
    with pytest.raises(Interrupted) as stopped:
        alternate(defended(arena, tmp_path / "b", **short))
    (root,) = (tmp_path / "b" / "hardened").iterdir()
    # What goes on is the whole, not the attack that was stopped.
    assert str(stopped.value).endswith(f"python -m aprl.train with resume={root}")
    assert newest_unfinished(str(root.parent)) == root
    matrix = read_matrix(root / MATRIX_FILE)
    assert list(matrix) == ["victim 0", "victim 1"]
    result = resume(root)
    assert [name.split("-", 1)[1] for name in started] == [
        *("round1-attack", "round1-defence", "round2-attack"),
        *("round2-attack", "round2-defence"),
    ]
    assert (result.before, result.after) == (whole.before, whole.after)
    with pytest.raises(RunError, match="no unfinished run"):
        newest_unfinished(str(root.parent))
    started.clear()
    assert resume(root).after == whole.after and started == []


def test_rounds_with_a_damaged_matrix(arena, tmp_path):
    short = {**ROUNDS, "total_timesteps": 1600, "eval_episodes": 16}
    short["defence_params"] = {"rounds": 1, "attack_timesteps": 1600, "attack_start": ""}
    result = alternate(defended(arena, tmp_path, **short))
    (result.run_dir / MATRIX_FILE).write_text('{"victim 0": 3}')
    with pytest.raises(RunError, match=r"matrix\.json is damaged"):
        resume(result.run_dir)


def test_attacks_are_as_long_as_defences_unless_told_otherwise(arena, tmp_path):
    short = {**ROUNDS, "total_timesteps": 1600, "eval_episodes": 0}
    short["defence_params"] = {"rounds": 1, "attack_start": ""}
    result = alternate(defended(arena, tmp_path, **short))
    name = read_json(result.run_dir / "rounds.json")["stages"]["round1-attack"]
    assert read_json(result.run_dir / name / "config.json")["total_timesteps"] == 1600


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"defence": "duel"}, "unknown defence 'duel'; did you mean 'dual'"),
        ({"defence": "dual", "normal_opponent": {}}, "needs normal_opponent"),
        (
            {"defence": "dual", "defence_params": {"normal_ratio": 1}},
            r"normal_ratio must be",
        ),
        ({"defence": "dual", "defence_params": {"ratio": 0.5}}, "ratio"),
        ({"defence": "single", "adversaries": None}, "needs adversaries"),
        ({"defence": "single", "embed_type": "zero"}, "embed_type does not go with a defence"),
        ({"defence": "single", "load_policy": {}}, "needs a victim"),
        ({"defence_params": {"rounds": 1}}, "defence_params was given without defence"),
        ({**ROUNDS, "defence_params": {"rounds": 0}}, "rounds must be"),
        (
            {**ROUNDS, "defence_params": {"attack_config": {"learning_rat": 1}}},
            "learning_rat.*learning_rate",
        ),
        ({**ROUNDS, "normal_opponent": {}}, "needs normal_opponent"),
    ],
)
def test_what_cannot_work_is_refused(arena, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        train(defended(arena, tmp_path, **changes))
    assert not (tmp_path / "hardened").exists()


def test_population_without_runs(arena, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="holds no finished run against"):
        train(defended(arena, tmp_path, defence="population", adversaries=str(tmp_path / "empty")))


@pytest.mark.parametrize("name", DEFENCES)
def test_every_defence_has_usable_defaults(name):
    assert make_defence(name, {}).name == name
