"""State on disk comes back exactly; metrics survive kills."""

import csv

import numpy as np
import pytest
import torch

from aprl.errors import RunError
from aprl.training.checkpoints import load_state, save_state
from aprl.training.records import CsvLog


def test_nested_state_round_trip(tmp_path):
    state = {
        "scalar": np.array(2.5),
        "ints": np.arange(3),
        "flags": np.array([True, False]),
        "tensor": torch.tensor([1.0, 2.0]),
        "zero_dim": torch.tensor(3.0),
        "rng": np.random.default_rng(1).bit_generator.state,
        "list": [{"a": np.float32([1, 2])}, None, "text", 1.5],
    }
    save_state(tmp_path / "s", state)
    back = load_state(tmp_path / "s")
    for name in ("scalar", "ints", "flags"):
        assert back[name].dtype == state[name].dtype and back[name].shape == state[name].shape
        np.testing.assert_array_equal(back[name], state[name])
    assert torch.equal(back["tensor"], state["tensor"])
    assert back["zero_dim"].shape == () and back["zero_dim"] == 3
    np.testing.assert_array_equal(back["list"][0]["a"], [1, 2])
    assert back["list"][1:] == [None, "text", 1.5]
    again = np.random.default_rng()
    again.bit_generator.state = back["rng"]
    assert again.random() == np.random.default_rng(1).random()


def test_damage_is_named(tmp_path):
    save_state(tmp_path / "s", {"a": np.arange(100)})
    arrays = tmp_path / "s" / "state.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:50])
    with pytest.raises(RunError, match=r"state\.safetensors"):
        load_state(tmp_path / "s")
    with pytest.raises(RunError, match="does not exist"):
        load_state(tmp_path / "nowhere")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def row(steps, **values):
    return {"time/total_timesteps": steps, **values}


def test_metrics_widen_and_resume(tmp_path):
    path = tmp_path / "rl" / "progress.csv"
    log = CsvLog(path)
    log.write(row(10, a=np.float32(0.1)), {})
    log.write(row(20, a=1, b=2), {})
    assert [r["b"] for r in rows_of(path)] == ["", "2"]
    assert rows_of(path)[0]["a"] == str(float(np.float32(0.1)))
    log.write(row(30, a=3, b=4), {})
    text = path.read_text()
    path.write_text(text[: text.rindex(",")])  # a kill in the middle of a line
    assert len(CsvLog(path, until=30)._rows) == 2
    resumed = CsvLog(path, until=10)
    assert [r["time/total_timesteps"] for r in rows_of(path)] == ["10"]
    resumed.write(row(20, a=5, b=6), {})
    assert [r["a"] for r in rows_of(path)][1:] == ["5"]
