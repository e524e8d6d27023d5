"""Videos of games: an mp4 file with a running score, and a JSON that says what is in it."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np

from aprl.envs.base import Observations, Step, VecMultiEnv, VecMultiWrapper
from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.mujoco.rendering import (
    OPPONENT_RED,
    TIE_BLACK,
    VICTIM_BLUE,
    Caption,
    GameRenderer,
)
from aprl.errors import ConfigError, RunError
from aprl.files import atomic_path, require_writable_directory, write_json
from aprl.training.embedding import GameOutcomes, game_outcome

END_HOLD_S = 0.7  # how long a game's last picture stays


@dataclass(frozen=True)
class VideoOptions:
    """How videos look.

    Attributes:
        camera: name of one of the game's presets: default, close, track.
        width: pixels, even.
        height: pixels, even.
        fps: pictures per second at most; fewer where the game has fewer steps per second.
        annotated: write the score on the pictures.
        single_file: one file for all games; else one per game.
    """

    camera: str = "default"
    width: int = 640
    height: int = 480
    fps: int = 30
    annotated: bool = True
    single_file: bool = True

    def check(self) -> None:
        """Refuse what cannot be encoded.

        Raises:
            ConfigError: a size that is not even and positive, or a rate below 1.
        """
        for name in ("width", "height"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 2 or value % 2:
                raise ConfigError(f"video {name} must be an even number of pixels, got {value!r}")
        if not isinstance(self.fps, int) or self.fps < 1:
            raise ConfigError(f"video fps must be at least 1, got {self.fps!r}")


class VideoRecorder(VecMultiWrapper):
    """Films environment 0 of a MuJoCo game in real time.

    Files are `game_<first game, 6 digits>.mp4` with a `.json` of the same name beside each: the
    games in it, their winners and lengths. A file appears when it is complete.

    Args:
        venv: the game; wrap it before it is reset.
        directory: where the files go; made if need be.
        labels: name of each player, by agent index.
        victim: index of the player that is drawn blue.
        options: see `VideoOptions`.

    Raises:
        ConfigError: no MuJoCo game, or unusable options.
        RenderError: this machine has no OpenGL.
        RunError: the directory is not writable.
    """

    def __init__(
        self,
        venv: VecMultiEnv,
        directory: str | Path,
        labels: Sequence[str],
        victim: int,
        options: VideoOptions | None = None,
    ) -> None:
        super().__init__(venv)
        game = venv.unwrapped
        if not isinstance(game, MujocoGame):
            raise ConfigError("only MuJoCo games can be filmed")
        self.options = options or VideoOptions()
        self.options.check()
        self.directory = require_writable_directory(directory)
        self.labels = list(labels)
        self.victim = victim
        self.files: list[Path] = []
        self._renderer = GameRenderer(
            game, self.options.width, self.options.height, self.options.camera, victim
        )
        steps_per_s = 1 / game.rules.dt
        self._stride = max(1, round(steps_per_s / self.options.fps))
        self._fps = steps_per_s / self._stride
        self._score = GameOutcomes(venv.num_agents)
        self._writing = contextlib.ExitStack()
        self._writer: Any = None
        self._last: np.ndarray | None = None
        self._games: list[dict[str, Any]] = []
        self._first_game = 0
        self._steps = 0

    def reset(self) -> Observations:
        """See `VecMultiEnv.reset`."""
        obs = self.venv.reset()
        self._film()
        return obs

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`."""
        result = self.venv.step(actions)
        _, _, dones, infos = result
        self._steps += 1
        if dones[0]:
            self._end(infos[0])
        if dones[0] or self._steps % self._stride == 0:
            self._film()
        return result

    def _end(self, info: dict[Any, Any]) -> None:
        self._score.count(info)
        winner = game_outcome(info)
        self._games.append({"winner": winner, "length": info["episode"]["l"]})
        # The next game has begun already: the last picture of this one stays for a moment.
        assert self._last is not None
        for _ in range(round(END_HOLD_S * self._fps)):
            self._append(self._last)
        self._steps = 0
        if not self.options.single_file:
            self._finish()

    def _film(self) -> None:
        self._last = self._renderer.frame(0, self._captions())
        self._append(self._last)

    def _append(self, picture: np.ndarray) -> None:
        path = self._path
        with _naming(path):
            if self._writer is None:
                temporary = self._writing.enter_context(atomic_path(path))
                self._writer = imageio.get_writer(
                    temporary, format="FFMPEG", fps=self._fps, macro_block_size=2
                )
            self._writer.append_data(picture)

    @property
    def _path(self) -> Path:
        return self.directory / f"game_{self._first_game:06d}.mp4"

    def _captions(self) -> list[Caption]:
        if not self.options.annotated:
            return []
        last = self._games[-1]["winner"] if self._games else None
        columns = []
        for name, agent in (("Opponent", 1 - self.victim), ("Victim", self.victim)):
            text = f"{name}: {self._score.wins[agent]}\n{self.labels[agent]}"
            colour = VICTIM_BLUE if agent == self.victim else OPPONENT_RED
            columns.append(Caption(text, colour, bold=bool(self._games) and last == agent))
        ties = Caption(
            f"Ties: {self._score.ties}", TIE_BLACK, bold=bool(self._games) and last is None
        )
        return [columns[0], ties, columns[1]]

    def _finish(self) -> None:
        """Complete the file that is being written, and what belongs to it."""
        path = self._path
        with _naming(path):
            self._writer.close()
            self._writer = None
            self._writing.close()
        write_json(
            path.with_suffix(".json"),
            {
                "first_game": self._first_game,
                "games": self._games,
                "labels": self.labels,
                "victim_index": self.victim,
                "fps": self._fps,
            },
        )
        self.files.append(path)
        self._first_game += len(self._games)
        self._games = []

    def close(self) -> None:
        """Complete the last file, if a game of it was finished, and release everything."""
        if self._games:
            self._finish()
        elif self._writer is not None:
            self._writer.close()
            with contextlib.suppress(_Discarded), self._writing:
                raise _Discarded
        self._renderer.close()
        self.venv.close()


class _Discarded(Exception):
    """Makes `atomic_path` throw away what was written."""


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn errors of the encoder and the disk into a RunError that names the file."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write the video {path}: {error.strerror or error}") from None
