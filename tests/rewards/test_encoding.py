"""Columns of transitions, raw and encoded."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.rewards.encoding import RewardInputs, as_tensor, decode, encode, encoded_width

IMAGE = spaces.Box(0.0, 1.0, (2, 3), np.float32)
SCALAR = spaces.Box(0.0, 1.0, (), np.float32)
CHOICE = spaces.Discrete(4, start=1)
RNG = np.random.default_rng(0)
RAW = {
    "vectors": (spaces.Box(-1.0, 1.0, (3,)), RNG.normal(size=(6, 3))),
    "images": (IMAGE, RNG.random((6, 2, 3))),
    "scalars": (SCALAR, RNG.random(6)),
    "numbers": (CHOICE, RNG.integers(1, 5, 6)),
}


@pytest.mark.parametrize("name", RAW)
def test_encoded_rows_are_flat_floats_and_stay_what_they_are(name):
    space, raw = RAW[name]
    rows = encode(space, as_tensor(raw), torch.float64)
    assert rows.dtype == torch.float64 and rows.shape == (6, encoded_width(space))
    assert encode(space, rows, torch.float64) is rows
    np.testing.assert_array_equal(decode(space, rows), raw)
    np.testing.assert_array_equal(decode(space, as_tensor(raw)), raw)
    assert encode(space, as_tensor(raw)).dtype == torch.float32


def test_numbers_enter_one_hot():
    rows = encode(CHOICE, torch.tensor([1, 4]))
    assert rows.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("space", "column", "message"),
    [
        (CHOICE, torch.tensor([1, 0]), "0 is not in Discrete"),
        (CHOICE, torch.tensor([5, 1]), "5 is not in Discrete"),
        (CHOICE, torch.tensor([[1], [2]]), "shape"),
        (CHOICE, torch.zeros(2, 3), "shape"),
        (CHOICE, torch.zeros(2), "shape"),
        (IMAGE, torch.zeros(4, 3), "shape"),
        (spaces.Box(0.0, 1.0, (3,)), torch.zeros(4), "shape"),
        (spaces.Box(0.0, 1.0, (3,)), torch.zeros(4, 2), "shape"),
    ],
)
def test_values_of_another_space(space, column, message):
    with pytest.raises(ConfigError, match=message):
        encode(space, column)


def test_spaces_without_encoding():
    with pytest.raises(ConfigError, match="MultiBinary"):
        encoded_width(spaces.MultiBinary(3))


def test_types_of_raw_columns_and_read_only_arrays():
    bools = np.zeros(2, bool)
    bools.flags.writeable = False
    columns = RewardInputs.raw(np.zeros((2, 3), np.float32), np.zeros(2, np.int8), bools, bools)
    types = [torch.float64, torch.int64, torch.bool, torch.bool]
    assert [column.dtype for column in columns] == types
    assert len(columns.rows(slice(1)).obs) == 1
