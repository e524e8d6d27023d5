"""A picture of every game, for the documentation: `python scripts/game_pictures.py [FOLDER]`."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES, MujocoGame
from aprl.envs.mujoco.rendering import GameRenderer
from aprl.envs.names import victim_index

STEPS = {"SumoAnts": 15, "SumoHumans": 25}  # until both stand on the platform


def main(folder: str = "docs/games") -> None:
    """Write `<Game>.png`, 480 x 320 pixels."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in GAMES:
        if name.endswith("AutoContact"):  # looks the same as the game without
            continue
        game = make_vec(f"multicomp/{name}-v1", num_envs=1, seed=1)
        assert isinstance(game, MujocoGame)
        game.reset()
        still = [np.zeros((1, *space.shape), np.float32) for space in game.action_spaces]
        for _ in range(STEPS.get(name, 5)):
            game.step(still)
        renderer = GameRenderer(game, 480, 320, victim=victim_index(name))
        Image.fromarray(renderer.frame()).quantize(64).save(f"{folder}/{name}.png", optimize=True)
        renderer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
