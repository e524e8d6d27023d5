"""A million random steps over all games: what comes out is finite, memory stays flat."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.envs.mujoco import GAMES

STEPS, NUM_ENVS, WARM_UP = 10**6, 64, 0.1
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_mb() -> float:
    """Resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MB


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("game", GAMES)
def test_soak(game, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log there
    rng = np.random.default_rng(0)
    venv = make_vec(f"multicomp/{game}-v1", NUM_ENVS, seed=0)
    high = venv.action_spaces[0].high
    steps = STEPS // len(GAMES) // NUM_ENVS
    warm_up = int(WARM_UP * steps)
    venv.reset()
    finished = 0
    for step in range(steps):
        actions = [rng.uniform(-high, high, (NUM_ENVS, high.size)) for _ in range(2)]
        obs, rewards, dones, _ = venv.step(actions)
        for values in (*obs, rewards):
            assert np.isfinite(values).all()
        finished += int(dones.sum())
        if step == warm_up:
            before = resident_mb()
    assert finished > 0
    assert resident_mb() - before < 20
