"""The commands as a user types them: named configs, files, errors of one line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aprl.experiment import command_line
from aprl.policies.store import load_saved
from aprl.reward_preprocessing import (
    create_models,
    create_rollouts,
    plot_heatmaps,
    plot_reward_curves,
    preprocess,
    tour,
    train_drlhp,
    train_rl,
)
from aprl.reward_preprocessing.configs import ENV_NAMED
from aprl.reward_preprocessing.trajectories import load_trajectories
from aprl.rewards import TabularRewardNet, load_reward_net, save_reward_net

EXPERIMENTS = {
    "create_models": create_models.create_models_experiment,
    "create_rollouts": create_rollouts.create_rollouts_experiment,
    "preprocess": preprocess.preprocess_experiment,
    "plot_heatmaps": plot_heatmaps.plot_heatmaps_experiment,
    "plot_reward_curves": plot_reward_curves.plot_reward_curves_experiment,
    "train_rl": train_rl.train_rl_experiment,
    "train_drlhp": train_drlhp.train_drlhp_experiment,
    "tour": tour.tour_experiment,
}


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command in a folder of its own; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(name, *entries):
        experiment = EXPERIMENTS[name]
        observers = list(experiment.observers)
        try:
            with pytest.raises(SystemExit) as end:
                argv = [name, "with", *entries] if entries else [name]
                command_line(experiment, "runs", argv)
        finally:
            experiment.observers[:] = observers
        captured = capfd.readouterr()
        return end.value.code, captured.out, captured.err

    return command


@pytest.fixture
def succeeds(run):
    def command(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    return command


@pytest.fixture
def fails(run):
    def command(*arguments):
        code, _, err = run(*arguments)
        lines = err.strip().splitlines()
        assert code == 1 and len(lines) == 1 and lines[0].startswith("error: "), err
        return lines[0]

    return command


def test_from_models_to_heat_maps(succeeds, tmp_path):
    succeeds("create_models")
    models = Path("results/ground_truth_models")
    assert len(list(models.glob("*.pt"))) == 28 == len(list(models.iterdir()))
    for shaping in ("random", "unshaped"):
        name = f"empty_maze_4_goal_{shaping}"
        out = succeeds(
            "preprocess",
            "env.empty_maze_4",
            "fast",
            f"model_path={models}/{name}.pt",
            f"save_path=results/{name}",
        )
        assert "sparse_l1 (exact), 80 transitions" in out and "optimal actions are the same" in out
    out = succeeds(
        "plot_heatmaps",
        "env.empty_maze_4",
        "l1",
        "model_base_paths=['empty_maze_4_goal_random', 'empty_maze_4_goal_unshaped']",
    )
    assert out.count("figure: ") == 4
    page = Path("results/heatmaps.html").read_text()
    assert page.index("Unshaped") < page.index("Random") and "0.061875" in page
    assert page.count("<img") == 1
    sizes = {path.suffix: path.stat().st_size for path in Path("results").glob("heatmaps.*")}
    assert set(sizes) == {".pdf", ".png", ".svg", ".html"} and min(sizes.values()) > 5000


def test_a_maze_with_a_key(succeeds, fails):
    succeeds("create_models")
    for shaping in ("dense", "random"):
        succeeds(
            "preprocess",
            "env.key_maze_6",
            "objectives=['sparse_l1']",
            f"model_path=results/ground_truth_models/key_maze_6_path_{shaping}.pt",
            f"save_path=results/key_{shaping}",
        )
    figure = ("plot_heatmaps", "env.key_maze_6", "objectives=['unmodified','sparse_l1']")
    succeeds(*figure, "model_base_paths=['key_dense']", "save_path=results/one.pdf")
    assert "without key, with key" in Path("results/one.html").read_text()
    line = fails(*figure, "model_base_paths=['key_dense','key_random']", "save_path=results/two")
    assert "one model, got 2" in line and not list(Path("results").glob("two*"))


def test_from_models_to_reward_curves(succeeds, fails):
    succeeds("create_models", "model_format=safetensors")
    for shaping in ("unshaped", "dense"):
        succeeds(
            "preprocess",
            "env.mountain_car",
            "rollouts.random_rollouts",
            "rollouts.steps=300",
            "epochs=5",
            f"model_path=results/ground_truth_models/shaped_mountain_car_{shaping}.safetensors",
            f"save_path=results/car_{shaping}",
        )
    bases = "model_base_paths=['car_unshaped', 'car_dense']"
    succeeds("plot_reward_curves", "env.mountain_car", bases, "rollout_steps=450")
    page = Path("results/reward_curves.html").read_text()
    assert "Unshaped, Value shaped" in page and page.count("<img") == 1
    assert "gridworlds" in fails("plot_heatmaps", "env.mountain_car", bases)
    assert "another environment" in fails("plot_reward_curves", "env.pendulum", bases)


def test_rollouts_of_a_trained_policy(succeeds):
    out = succeeds(
        *("train_rl", "empty_maze_4", "path", "dense"),
        *("total_timesteps=512", "batch_size=256", "eval_episodes=3", "progress=False"),
    )
    assert "return: " in out and "95 %" in out
    (run_dir,) = Path("runs/reward_preprocessing").glob("*-rl")
    config = json.loads((run_dir / "config.json").read_text())
    assert config["env"]["options"] == {"reward": "path", "shaping": "dense"}
    assert json.loads((run_dir / "status.json").read_text())["status"] == "completed"
    assert load_saved(run_dir / "final_model").observation_space.n == 16
    sources = f"[(0.2, '{run_dir}', 'mixed'), {{'random_prob': 1, 'name': 'random'}}]"
    succeeds("create_rollouts", "env.empty_maze_4", f"rollouts={sources}", "min_timesteps=[20, 9]")
    counts = [
        sum(len(t) for t in load_trajectories(f"results/rollouts/{name}.npz"))
        for name in ("mixed", "random")
    ]
    assert counts == [24, 16]
    before = Path("results/rollouts/random.npz").read_bytes()
    succeeds("create_rollouts", "env.empty_maze_4", f"rollouts={sources}", "min_timesteps=[20, 9]")
    saved = load_trajectories("results/rollouts/random.npz")
    assert len(before) == Path("results/rollouts/random.npz").stat().st_size and len(saved) == 2


def test_learning_from_preferences(succeeds):
    out = succeeds(
        *("train_drlhp", "empty_maze_4", "goal", "total_timesteps=1024", "batch_size=256"),
        *("total_comparisons=250", "comparisons_per_iteration=100", "temperature=0"),
        *("save_path=results/learned.pt", "progress=False"),
    )
    assert "agrees with" in out and "250 comparisons" in out
    (run_dir,) = Path("runs/reward_preprocessing").glob("*-drlhp")
    reports = json.loads((run_dir / "iterations.json").read_text())
    assert [r["comparisons"] for r in reports] == [100, 200, 250]
    assert reports[-1]["steps"] >= 1024 and reports[-1]["accuracy"] > 0.8
    net = load_reward_net("results/learned.pt")
    assert isinstance(net, TabularRewardNet) and net.inputs == ("state", "next_state")
    succeeds(
        *("preprocess", "env.empty_maze_4", "env.goal", "objectives=['sparse_l1']"),
        *("model_path=results/learned.pt", "save_path=results/readable"),
    )
    assert Path("results/readable.sparse_l1.pt").is_file()


def test_train_on_a_reward_net(succeeds):
    net = TabularRewardNet(*load_spaces(), ("state",), np.arange(16.0))
    save_reward_net(net, "reward.pt")
    succeeds(
        *("train_rl", "empty_maze_4", "reward_path=reward.pt", "total_timesteps=256"),
        *("batch_size=256", "eval_episodes=0", "progress=False"),
    )


def load_spaces():
    from gymnasium import spaces

    return spaces.Discrete(16), spaces.Discrete(5)


@pytest.mark.parametrize("named", [["env.dense", "env.goal"], ["env.goal", "env.dense"]])
def test_options_of_several_named_configs_are_merged(named, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        preprocess,
        "preprocess_model",
        lambda config, report: seen.update(config.env.options) or 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        preprocess.preprocess_experiment.run(
            named_configs=["env.empty_maze_10", *named],
            options={"--loglevel": "CRITICAL", "--force": True},
        )
    assert seen == {"shaping": "dense", "reward": "goal"}


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["preprocess", "env.empty_maze_11"], ["env.empty_maze_11", "env.empty_maze_10"]),
        (["preprocess", "env.empty_maze_4", "save_path=x"], ["model_path is missing"]),
        (["preprocess", "env.empty_maze_4", "model_path=no.pt", "save_path=x"], ["no.pt", "exist"]),
        (["preprocess", "env.empty_maze_4", "modell_path=x"], ["modell_path", "model_path"]),
        (["preprocess", "env.empty_maze_4", "env.colour=x"], ["colour"]),
        (["preprocess", "env.empty_maze_4", "gamma=2", "model_path=x", "save_path=y"], ["gamma"]),
        (["preprocess", "env.empty_maze_4", "gamma=x", "model_path=x", "save_path=y"], ["gamma"]),
        (["plot_heatmaps", "env.empty_maze_4"], ["model_base_paths"]),
        (["plot_heatmaps", "env.empty_maze_4", "vmin=2"], ["vmin"]),
        (["plot_reward_curves", "env.mountain_car", "rollout_steps=0"], ["rollout_steps"]),
        (["create_rollouts", "env.empty_maze_4"], ["no rollouts"]),
        (["create_rollouts", "env.empty_maze_4", "rollouts=[(1.0,)]"], ["<unnamed>"]),
        (
            ["create_rollouts", "env.empty_maze_4", "random_rollouts", "min_timesteps=[1,2]"],
            ["min_timesteps has 2 entries"],
        ),
        (["create_models", "model_format=pkl"], ["model_format"]),
        (["train_rl", "progress=False"], ["no environment"]),
        (["train_rl", "empty_maze_4", "learning_rate=2"], ["learning_rate"]),
        (["train_rl", "empty_maze_4", "reward_path=none.pt"], ["none.pt"]),
        (["train_drlhp", "empty_maze_4", "reward_type=tree"], ["'tree'"]),
        (["train_drlhp", "empty_maze_4", "reward_args.depth=2"], ["depth"]),
        (["train_drlhp", "empty_maze_4", "random_frac=2"], ["random_frac"]),
        (["tour", "out_dir=/proc/none"], ["not writable"]),
    ],
)
def test_bad_input_is_one_line(fails, arguments, parts):
    line = fails(*arguments)
    assert all(part in line for part in parts), line
    left = [p for p in Path().glob("**/*") if p.is_file() and "sacred" not in p.parts]
    assert left == []


@pytest.mark.parametrize("name", ENV_NAMED)
def test_every_named_environment_is_known_to_every_command(name):
    for command in ("preprocess", "train_rl", "create_rollouts", "plot_heatmaps"):
        (part,) = (i for i in EXPERIMENTS[command].ingredients if i.path == "env")
        assert name in part.named_configs


@pytest.mark.slow
def test_the_tour(tmp_path):
    command = [sys.executable, "-m", "aprl.reward_preprocessing.tour", "with", "progress=False"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results" / "tour" / "index.html").read_text()
    assert page.count("<img") == 2 and page.count("<td>yes</td>") == 16
    for reward in ("goal", "path"):
        for suffix in ("pdf", "png", "svg", "html"):
            assert (tmp_path / "results" / "tour" / f"gridworlds_{reward}.{suffix}").is_file()
