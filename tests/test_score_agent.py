"""Scoring from the command line: what it prints, keeps and returns."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.experiment import command_line
from aprl.imitation.demonstrations import load_demonstrations
from aprl.score_agent import ScoreConfig, score, score_experiment
from aprl.scoring import Score

ROCK_V_PAPER = {
    "env_name": "aprl/RockPaperScissors-v0",
    "agent_a_type": "constant",
    "agent_a_path": "0",
    "agent_b_type": "constant",
    "agent_b_path": "1",
    "episodes": 7,
    "num_env": 3,
    "max_episode_steps": 10,
}


def test_result_is_json_with_counts_and_intervals():
    result = score(ScoreConfig(**ROCK_V_PAPER)).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["win0"], result["win1"], result["ties"], result["games"]) == (0, 7, 0, 7)
    assert result["mean_length"] == 10 and result["unstable"] == 0
    assert result["interval1"] == pytest.approx([0.6457, 1.0], abs=1e-4)  # Wilson, 7 of 7


def test_paths_may_be_numbers_as_the_command_line_reads_them():
    as_numbers = {**ROCK_V_PAPER, "agent_a_path": 0, "agent_b_path": 1.0}
    assert score(ScoreConfig(**as_numbers)) == score(ScoreConfig(**ROCK_V_PAPER))


def test_progress_counts_games():
    seen = []
    score(ScoreConfig(**ROCK_V_PAPER), on_progress=seen.append)
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == 7


def test_command_line_prints_a_table_and_records_the_result(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    entries = [f"{name}={value}" for name, value in (ROCK_V_PAPER | {"root_dir": "out"}).items()]
    with pytest.raises(SystemExit) as end:
        command_line(score_experiment, "data/scores", ["score", "with", *entries])
    printed = capfd.readouterr()
    assert end.value.code == 0 and printed.err == ""
    assert "7 games" in printed.out and "100.0 % [64.6, 100.0] (7/7)" in printed.out
    (record,) = (tmp_path / "out" / "sacred" / "score").glob("*/run.json")
    assert json.loads(record.read_text())["result"]["win1"] == 7
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_game_of_three_cannot_be_a_match_up():
    config = {**ROCK_V_PAPER, "env_name": "aprl/CrowdedLine-v0"}
    with pytest.raises(ConfigError, match="3 policies are needed"):
        score(ScoreConfig(**config))


ANTS = {"env_name": "multicomp/RunToGoalAnts-v1", "agent_a_type": "zero", "agent_b_type": "zero"}


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"mask_agent_masking_type": "zeros"}, "0"),
        ({"mask_agent_masking_type": "debug"}, "-4.2"),
        ({"mask_agent_masking_type": "additive_noise", "mask_agent_noise": 3.0}, "noise"),
        ({}, "initialization"),
    ],
)
def test_the_masking_type_takes_effect(options, shown, monkeypatch):
    seen = {}

    def first_observations(venv, *args):
        seen["obs"] = venv.reset()
        return Score((0, 1), 0, 0, 1.0)

    monkeypatch.setattr("aprl.score_agent.play_games", first_observations)
    score(ScoreConfig(**ANTS, mask_agent_index=1, num_threads=1, **options))
    masked, truth = seen["obs"][1][:, 107:122], seen["obs"][0][:, 0:15]
    if shown == "noise":
        assert 2 < (masked - truth).std() < 4
    elif shown == "initialization":
        assert (masked == masked[0]).all() and masked[0, 0] == -1
    else:
        np.testing.assert_allclose(masked, float(shown), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_agent_index": 2}, "mask_agent_index must be 0 or 1, got 2"),
        ({"mask_agent_index": 0, "mask_agent_masking_type": "fog"}, "unknown masking type 'fog'"),
        ({"mask_agent_index": 0, "mask_agent_noise": 1.0}, "has no noise"),
        (
            {"mask_agent_index": 0, "env_name": "aprl/RockPaperScissors-v0"},
            "only MuJoCo games can be masked",
        ),
    ],
)
def test_unusable_masks_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ScoreConfig(**(ANTS | options)).check()


def test_recording_one_player(tmp_path):
    path = tmp_path / "games.npz"
    config = ScoreConfig(
        env_name="aprl/RockPaperScissors-v0",
        agent_a_type="random",
        agent_b_type="constant",
        agent_b_path="1",
        episodes=5,
        num_env=2,
        record=str(path),
        record_agent=1,
    )
    score(config)
    recorded = load_demonstrations(path)
    assert len(recorded.trajectories) == 5
    assert all((t.actions == 1).all() for t in recorded.trajectories)
    assert recorded.provenance["policy"] == {"type": "constant", "path": "1"}
    assert recorded.provenance["agent_index"] == 1
    with pytest.raises(ConfigError, match=r"\.npz file, got games\.pkl"):
        score(replace(config, record="games.pkl"))
    with pytest.raises(ConfigError, match="record_agent must be 0 or 1, got 2"):
        score(replace(config, record_agent=2))
