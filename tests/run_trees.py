"""Synthetic run directories."""

import csv
import json

YSNP = "multicomp/YouShallNotPassHumans-v0"
SUMO = "multicomp/SumoHumans-v0"
COUNTS = ("game_count_win0", "game_count_win1", "game_count_tie")


def make_run(
    path,
    rollouts,
    *,
    env_name=YSNP,
    embed_index=1,
    embedded=(("zoo", "1"),),
    load_path=None,
    fingerprints=None,
    status="completed",
    steps=1000,
    finished=True,
    weights=b"weights",
):
    """Write a run; `rollouts` are (win0, win1, tie) or None for a row without game columns."""
    (path / "rl").mkdir(parents=True)
    config = {
        "env_name": env_name,
        "embed_index": embed_index,
        "embed_types": [kind for kind, _ in embedded],
        "embed_paths": [where for _, where in embedded],
        "load_policy": {"type": "ppo" if load_path else None, "path": load_path},
        "seed": 0,
        "exp_name": "test",
        "fingerprints": fingerprints or {"embedded": [None] * len(embedded), "loaded": None},
    }
    (path / "config.json").write_text(json.dumps(config))
    if status is not None:
        record = {"status": status, "num_timesteps": steps}
        (path / "status.json").write_text(json.dumps(record))
    with open(path / "rl/progress.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("game_total", *COUNTS, "time/total_timesteps"))
        for i, row in enumerate(rollouts):
            cells = ("", "", "", "") if row is None else (sum(row), *row)
            writer.writerow((*cells, 100 * (i + 1)))
    if finished:
        (path / "final_model").mkdir()
        (path / "final_model/policy.json").write_text("{}")
        (path / "final_model/policy.safetensors").write_bytes(weights)
    return path


def edit_config(run, **changes):
    """Change entries of a run's config; None removes one."""
    path = run / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
