"""State on disk comes back exactly."""

import json

import numpy as np
import pytest
import torch

from aprl.errors import RunError
from aprl.training.checkpoints import load_state, save_state


def round_trip(tmp_path, state):
    save_state(tmp_path / "state", state)
    return load_state(tmp_path / "state")


ARRAYS = {
    **{
        name: np.arange(6).reshape(2, 3).astype(name)
        for name in ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
    },
    **{name: np.linspace(-1, 1, 5).astype(name) for name in ("float16", "float32", "float64")},
    "largest": np.array([2**64 - 1], np.uint64),
    "not_finite": np.array([np.nan, np.inf, -np.inf, -0.0]),
    "scalar": np.array(2.5),
    "flag": np.array(True),
    "empty": np.zeros((0, 3), np.float32),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10)[::-3],
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_exactly(tmp_path, name):
    given = ARRAYS[name]
    back = round_trip(tmp_path, {"a": [{"b": given}]})["a"][0]["b"]
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.shape) == (given.dtype, given.shape)
    np.testing.assert_array_equal(back, given)
    np.testing.assert_array_equal(np.signbit(back.astype(float)), np.signbit(given.astype(float)))


TENSORS = {
    "float": torch.tensor([1.0, -2.5]),
    "double": torch.tensor([1e-300], dtype=torch.float64),
    "half": torch.tensor([0.5], dtype=torch.float16),
    "whole": torch.tensor([[2**62]]),
    "bytes": torch.get_rng_state(),
    "flags": torch.tensor([True, False]),
    "scalar": torch.tensor(3.0),
    "empty": torch.zeros(0, 2),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "parameter": torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_come_back_exactly(tmp_path, name):
    given = TENSORS[name]
    back = round_trip(tmp_path, {"a": given})["a"]
    assert isinstance(back, torch.Tensor) and not back.requires_grad
    assert (back.dtype, back.shape) == (given.dtype, given.shape)
    assert torch.equal(back, given.detach())


def test_plain_values_come_back_with_their_types(tmp_path):
    state = {
        "none": None,
        "flags": [True, False],
        "ints": [0, 1, -(2**127) - 1, 2**130],
        "floats": [1.0, 0.1, 1e-308, float("inf"), 5e-324],
        "text": "Zürich \u0000 \"quoted\" 'x'",
        "nested": {"empty": {}, "list": [[], [None, {"a": [1]}]]},
    }
    back = round_trip(tmp_path, state)
    assert repr(back) == repr(state)  # tells 1 from True and from 1.0


def test_numpy_scalars_and_tuples_become_their_plain_counterparts(tmp_path):
    state = {"f": np.float32(0.1), "b": np.bool_(True), "i": np.int64(3), "t": (1, np.arange(2))}
    back = round_trip(tmp_path, state)
    assert back["f"] == float(np.float32(0.1)) and back["b"] is True and type(back["i"]) is int
    assert isinstance(back["t"], list)
    np.testing.assert_array_equal(back["t"][1], [0, 1])


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_random_generators_continue(tmp_path, kind):
    rng = np.random.Generator(kind(1))
    rng.random(3, dtype=np.float32)  # leaves half a draw over
    back = round_trip(tmp_path, {"rng": rng.bit_generator.state})
    again = np.random.Generator(kind())
    again.bit_generator.state = back["rng"]
    np.testing.assert_array_equal(
        again.random(9, dtype=np.float32), rng.random(9, dtype=np.float32)
    )
    assert again.integers(2**62) == rng.integers(2**62)


def test_keys_with_dots_do_not_mix_up_arrays(tmp_path):
    a, b = np.zeros(2), torch.ones(3)
    for state in ({"x.y": a, "x": {"y": b}}, {"x": {"y": b}, "x.y": a}):
        back = round_trip(tmp_path, state)
        np.testing.assert_array_equal(back["x.y"], a)
        assert torch.equal(back["x"]["y"], b)
    back = round_trip(tmp_path, {"x": [a, b], "x.0": b, "x.0'": a})
    assert torch.equal(back["x.0"], b) and torch.equal(back["x"][1], b)
    np.testing.assert_array_equal([back["x"][0], back["x.0'"]], [a, a])


def test_what_is_loaded_can_be_changed_and_leaves_the_files_alone(tmp_path):
    first = round_trip(tmp_path, {"a": np.zeros(3), "t": torch.zeros(3)})
    first["a"][:] = 1
    first["t"][:] = 1
    second = load_state(tmp_path / "state")
    assert not second["a"].any() and not second["t"].any()


def test_saving_replaces_and_failing_to_save_does_not(tmp_path):
    assert round_trip(tmp_path, {"a": 1, "b": np.zeros(2)}).keys() == {"a", "b"}
    assert round_trip(tmp_path, {"a": 2}) == {"a": 2}
    with pytest.raises(TypeError):
        save_state(tmp_path / "state", {"a": object()})
    assert load_state(tmp_path / "state") == {"a": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def damaged(tmp_path, name, change):
    save_state(tmp_path / "s", {"a": np.arange(100), "b": {"c": torch.zeros(3)}})
    path = tmp_path / "s" / name
    change(path)
    return tmp_path / "s"


def truncate(size):
    return lambda path: path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
@pytest.mark.parametrize(
    "change",
    [
        truncate(0),
        truncate(20),
        truncate(-1),
        lambda path: path.write_bytes(b"\xff\x00garbage" * 20),
        lambda path: path.unlink(),
    ],
    ids=["empty", "20 bytes", "last byte lost", "garbage", "gone"],
)
def test_damage_is_named(tmp_path, name, change):
    with pytest.raises(RunError, match=name.replace(".", r"\.")):
        load_state(damaged(tmp_path, name, change))


def test_a_missing_array_is_named(tmp_path):
    def rename(path):
        path.write_text(json.dumps({"a": {"__array__": "state.z"}}))

    with pytest.raises(RunError, match=r"state\.z"):
        load_state(damaged(tmp_path, "state.json", rename))


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(RunError, match=r"nowhere.*does not exist"):
        load_state(tmp_path / "nowhere")
