"""Videos: what is filmed, what the JSON says, what is left behind when something fails."""

import json

import imageio.v2 as imageio
import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.errors import ConfigError, RunError
from aprl.score_agent import ScoreConfig, score
from aprl.videos import VideoOptions, VideoRecorder
from tests.envs.test_parallel import needs_opengl

SMALL = {"width": 64, "height": 48, "fps": 10}
ANTS = {"env_name": "multicomp/RunToGoalAnts-v1", "agent_a_type": "zero", "agent_b_type": "zero"}


def config(tmp_path, **options):
    params = SMALL | options.pop("video_params", {})
    return ScoreConfig(
        **ANTS,
        root_dir=str(tmp_path),
        videos=True,
        video_params=params,
        max_episode_steps=8,
        num_threads=1,
        progress=False,
        **options,
    )


@needs_opengl
def test_one_file_with_all_games(tmp_path):
    result = score(config(tmp_path, episodes=3))
    assert result.games == 3
    files = sorted(p.name for p in (tmp_path / "videos").iterdir())
    assert files == ["game_000000.json", "game_000000.mp4"]
    about = json.loads((tmp_path / "videos" / "game_000000.json").read_text())
    assert about["games"] == 3 * [{"winner": None, "length": 8}]
    assert about["fps"] == 10.0
    pictures = imageio.mimread(tmp_path / "videos" / "game_000000.mp4", memtest=False)
    # per game 4 pictures of its steps, one of the next game's start, 7 held at the end
    assert len(pictures) == 1 + 3 * (4 + 7)
    assert pictures[0].shape == (48, 64, 3)
    assert any((picture != pictures[0]).any() for picture in pictures)


@needs_opengl
def test_one_file_per_game(tmp_path):
    out = tmp_path / "elsewhere"
    score(config(tmp_path, episodes=2, video_params={"single_file": False, "save_dir": str(out)}))
    assert [p.name for p in sorted(out.glob("*.mp4"))] == ["game_000000.mp4", "game_000001.mp4"]


@needs_opengl
def test_a_film_without_a_finished_game_leaves_nothing(tmp_path):
    venv = make_vec("multicomp/RunToGoalAnts-v1", 1, num_threads=1)
    film = VideoRecorder(venv, tmp_path / "v", ["a", "b"], 0, VideoOptions(**SMALL))
    film.reset()
    film.step([np.zeros((1, 8), np.float32)] * 2)
    film.close()
    assert list((tmp_path / "v").iterdir()) == []


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"width": 63}, "video width must be an even number of pixels, got 63"),
        ({"fps": 0}, "video fps must be at least 1"),
        ({"font": "times"}, "unknown config entry 'font'"),
        ({"height": "tall"}, "height must be a whole number"),
    ],
)
def test_unusable_options_are_refused_before_anything_is_played(tmp_path, params, message):
    with pytest.raises(ConfigError, match=message):
        score(config(tmp_path, episodes=1, video_params=params))


@needs_opengl
def test_unknown_camera(tmp_path):
    with pytest.raises(ConfigError, match="unknown camera 'drone'"):
        score(config(tmp_path, episodes=1, video_params={"camera": "drone"}))


def test_games_without_pictures_and_options_without_videos(tmp_path):
    with pytest.raises(ConfigError, match="only MuJoCo games can be filmed"):
        ScoreConfig(
            env_name="aprl/RockPaperScissors-v0",
            agent_a_type="zero",
            agent_b_type="zero",
            videos=True,
        ).check()
    with pytest.raises(ConfigError, match="video_params was given without videos=True"):
        ScoreConfig(**ANTS, video_params={"fps": 5}).check()


@needs_opengl
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "videos").write_text("a file")
    with pytest.raises(RunError, match="videos"):
        score(config(tmp_path, episodes=1))
