"""The artefacts in data/ are whole, small, portable, and found by the lookup."""

import json
from pathlib import Path

import pytest

from aprl.configs.train import ANT_GAME, ANT_NORMAL_OPPONENT, ANT_VICTIM
from aprl.envs import make_vec
from aprl.highest_win_rate import CACHE_FILE, best_policies
from aprl.policies import load_policy

ROOT = Path(__file__).parents[2]


def test_files_are_small_and_portable():
    files = [path for path in (ROOT / "data").rglob("*") if path.is_file()]
    shipped = [p for p in files if p.relative_to(ROOT / "data").parts[0] in SHIPPED]
    assert len(shipped) >= 12
    assert max(path.stat().st_size for path in shipped) < 1_000_000
    for path in shipped:
        if path.suffix == ".json":
            assert not absolute_paths(json.loads(path.read_text())), path


SHIPPED = ("victims", "opponents", "adversaries")


def absolute_paths(value):
    if isinstance(value, dict):
        return [found for v in value.values() for found in absolute_paths(v)]
    if isinstance(value, list):
        return [found for v in value for found in absolute_paths(v)]
    return [value] if isinstance(value, str) and value.startswith("/") else []


def test_lookup_finds_the_adversary_from_its_cache():
    cache = ROOT / "data" / "adversaries" / CACHE_FILE
    before = cache.read_bytes()
    best = best_policies(ROOT / "data" / "adversaries").lookup(ANT_GAME, 0, ANT_VICTIM)
    assert cache.read_bytes() == before, "the shipped cache is stale"
    assert best.policy_dir.is_dir() and best.win_rate.games >= 1000


@pytest.mark.parametrize(("path", "index"), [(ANT_VICTIM, 0), (ANT_NORMAL_OPPONENT, 1)])
def test_policies_load_and_act(path, index):
    venv = make_vec(ANT_GAME, 2, num_threads=1)
    policy = load_policy(
        "ppo",
        str(ROOT / path),
        observation_space=venv.observation_spaces[index],
        action_space=venv.action_spaces[index],
        env_name=ANT_GAME,
        index=index,
    )
    actions, _ = policy.predict(venv.reset()[index])
    assert actions.shape == (2, 8) and abs(actions).max() <= 1
