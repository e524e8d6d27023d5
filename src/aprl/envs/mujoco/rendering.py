"""Pictures of a game in play, off screen, on whatever OpenGL the machine has."""

import copy
import ctypes.util
import importlib
import os
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from aprl.envs.mujoco.engine import MujocoGame
from aprl.envs.mujoco.scene import NUM_AGENTS, add_visuals, build_spec
from aprl.errors import AprlError, unknown_name

VICTIM_BLUE = (55, 126, 184)
OPPONENT_RED = (228, 26, 28)
TIE_BLACK = (0, 0, 0)

# Library that must be there, per way to get an off-screen OpenGL context; tried in this order.
_BACKENDS = {"egl": "EGL", "osmesa": "OSMesa", "glfw": None}


class RenderError(AprlError):
    """No picture can be made on this machine."""


@dataclass(frozen=True)
class Camera:
    """Where the scene is seen from.

    Attributes:
        azimuth: degrees.
        distance: metres from what it looks at.
        elevation: degrees; negative looks down.
        lookat: point in the scene, metres.
        track: index of the agent that it follows instead; None stays on `lookat`.
    """

    azimuth: float
    distance: float
    elevation: float
    lookat: tuple[float, float, float] = (0.0, 0.0, 0.0)
    track: int | None = None


# Presets of the published videos (Gleave et al., 2020); Run to Goal's are ours.
CAMERAS: dict[str, dict[str, Camera]] = {
    "KickAndDefend": {
        "default": Camera(0, 10, -16.5),
        "close": Camera(0, 10, -15),
        "track": Camera(0, 7, -25, track=0),
    },
    "RunToGoal": {
        "default": Camera(90, 10, -25),
        "close": Camera(90, 7, -22),
        "track": Camera(90, 6, -25, track=0),
    },
    "SumoAnts": {
        "default": Camera(90, 10, -25),
        "close": Camera(90, 10, -25),
        "track": Camera(90, 10, -25, track=0),
    },
    "SumoHumans": {
        "default": Camera(90, 8, -23),
        "close": Camera(90, 7.2, -22.5),
        "track": Camera(90, 7, -30, track=0),
    },
    "YouShallNotPass": {
        "default": Camera(140, 9, -21, (-1.5, 0.5, 0)),
        "close": Camera(150, 9, -23, (-2, 1, 0)),
        "track": Camera(140, 5, -30, track=1),
    },
}


def cameras(game: str) -> dict[str, Camera]:
    """Presets of a game, by its name without namespace and version."""
    return next(presets for name, presets in CAMERAS.items() if game.startswith(name))


@dataclass(frozen=True)
class Caption:
    """One column of text on top of a picture."""

    text: str
    colour: tuple[int, int, int]
    bold: bool = False


class GameRenderer:
    """Draws environments of one batch; the victim is blue, its opponent red.

    Args:
        game: what to draw.
        width: of the pictures, in pixels.
        height: of the pictures, in pixels.
        camera: name of one of the game's presets, or a `Camera`.
        victim: index of the agent that is drawn blue.

    Raises:
        ConfigError: no such preset.
        RenderError: no OpenGL; the message says what to install.
    """

    def __init__(
        self,
        game: MujocoGame,
        width: int = 640,
        height: int = 480,
        camera: str | Camera = "default",
        victim: int = 0,
    ) -> None:
        if isinstance(camera, str):
            presets = cameras(type(game.rules).__name__)
            if camera not in presets:
                raise unknown_name("camera", camera, presets)
            camera = presets[camera]
        self.game = game
        self.camera = camera
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        self._context = _open_gl(width, height)
        spec = build_spec(game.rules.scene, game.profile)
        add_visuals(spec)
        spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
        spec.visual.quality.shadowsize = 1024
        self._model = spec.compile()
        self._paint(victim)
        self._data = mujoco.MjData(self._model)
        self._scene = mujoco.MjvScene(self._model, maxgeom=1000)
        self._options = mujoco.MjvOption()
        self._eye = mujoco.MjvCamera()
        self._eye.azimuth, self._eye.distance = camera.azimuth, camera.distance
        self._eye.elevation = camera.elevation
        self._eye.lookat[:] = camera.lookat
        if camera.track is not None:
            self._eye.type = mujoco.mjtCamera.mjCAMERA_TRACKING
            self._eye.trackbodyid = game.rules.agents[camera.track].torso
        self._gl = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._gl)
        # Also at the interpreter's end, before the libraries that release it are gone.
        self._release = weakref.finalize(self, _release, self._gl, self._context)

    def _paint(self, victim: int) -> None:
        for agent in range(NUM_AGENTS):
            colour = VICTIM_BLUE if agent == victim else OPPONENT_RED
            for geom in range(self._model.ngeom):
                if self._model.geom(geom).name.startswith(f"agent{agent}/"):
                    self._model.geom_rgba[geom] = [*(c / 255 for c in colour), 1.0]

    def frame(self, env: int = 0, captions: Sequence[Caption] = ()) -> np.ndarray:
        """A picture of one environment as it stands, `(height, width, 3)` uint8."""
        self._context.make_current()
        self.game.rules.copy_to(self._model, self._data, self.game.state, env)
        mujoco.mj_forward(self._model, self._data)
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._options,
            None,
            self._eye,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_render(self._viewport, self._scene, self._gl)
        picture = np.empty((self._viewport.height, self._viewport.width, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, self._viewport, self._gl)
        picture = picture[::-1]
        return _write(picture, captions) if captions else np.ascontiguousarray(picture)

    def close(self) -> None:
        """Release the OpenGL context."""
        self._release()


def _release(gl: mujoco.MjrContext, context: Any) -> None:
    gl.free()
    context.free()


class Window:
    """Shows environment 0 of a game in MuJoCo's own viewer.

    Raises:
        RenderError: no display.
    """

    def __init__(self, game: MujocoGame) -> None:
        if os.environ.get("DISPLAY", "") == "" and os.name == "posix" and sys.platform != "darwin":
            raise RenderError("no display for a window; use render_mode='rgb_array'")
        import mujoco.viewer  # looks for a display when it is imported

        self.game = game
        self._model = copy.copy(game.model)
        self._data = mujoco.MjData(self._model)
        self._viewer = mujoco.viewer.launch_passive(self._model, self._data)

    def show(self) -> None:
        """Bring the window up to date."""
        self.game.rules.copy_to(self._model, self._data, self.game.state, 0)
        mujoco.mj_forward(self._model, self._data)
        self._viewer.sync()

    def close(self) -> None:
        """Close the window."""
        self._viewer.close()


def _write(picture: np.ndarray, captions: Sequence[Caption]) -> np.ndarray:
    """Put columns of text on the upper edge."""
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    size = max(10, image.height // 20)
    font = ImageFont.load_default(size)
    for column, caption in enumerate(captions):
        x = image.width * (2 * column + 1) / (2 * len(captions))
        draw.multiline_text(
            (x, size // 2),
            caption.text,
            fill=caption.colour,
            font=font,
            anchor="ma",
            align="center",
            stroke_width=1 if caption.bold else 0,
            stroke_fill=caption.colour,
        )
    return np.asarray(image)


def _open_gl(width: int, height: int) -> Any:
    """Make an off-screen OpenGL context current, by MUJOCO_GL if it is set, else what works."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    tried = []
    for backend, library in _BACKENDS.items():
        if wanted in _BACKENDS and backend != wanted:
            continue
        if library is not None and ctypes.util.find_library(library) is None:
            tried.append(f"{backend}: no library lib{library}")
            continue
        if library is None and not os.environ.get("DISPLAY"):
            tried.append(f"{backend}: no display")
            continue
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
        except Exception as error:  # whatever a broken driver raises
            tried.append(f"{backend}: {str(error).splitlines()[0] if str(error) else error!r}")
            continue
        return context
    raise RenderError(
        "no off-screen OpenGL, so no pictures or videos; install libegl1 (on Debian and Ubuntu: "
        f"apt-get install libegl1) or libosmesa6 ({'; '.join(tried)})"
    )
