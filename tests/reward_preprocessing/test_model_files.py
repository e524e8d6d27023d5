"""Finding the models that preprocessing wrote."""

import os

import pytest

from aprl.errors import RewardError
from aprl.reward_preprocessing.model_files import model_file


@pytest.mark.parametrize("newer", [".pt", ".safetensors"])
def test_the_newer_of_two_formats_counts(tmp_path, newer):
    for suffix in (".pt", ".safetensors"):
        path = tmp_path / f"maze.smooth_l1{suffix}"
        path.touch()
        os.utime(path, (100, 200 if suffix == newer else 100))
    assert model_file(tmp_path / "maze", "smooth_l1").suffix == newer
    with pytest.raises(RewardError, match="there is no model"):
        model_file(tmp_path / "maze", "sparse_l1")
