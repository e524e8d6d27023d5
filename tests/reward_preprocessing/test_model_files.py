"""Finding and naming the models of a figure."""

import json
import os

import pytest

from aprl.errors import ConfigError, RewardError, RunError
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.model_files import (
    certificate_rows,
    load_models,
    model_file,
    row_title,
    sorted_paths,
)
from aprl.rewards import save_reward_net


def test_order_and_titles_of_rows():
    paths = ["x/m_random", "mine", "x/m_antidense", "x/m_unshaped", "x/m_dense"]
    ordered = sorted_paths(paths)
    titles = [row_title(path) for path in ordered]
    assert titles == ["Unshaped", "Dense", "Negative", "Random", "mine"]


def test_models_of_either_format(tmp_path):
    net = Maze(4).reward_net()
    save_reward_net(net, tmp_path / "a.unmodified.pt")
    save_reward_net(net, tmp_path / "b.unmodified.safetensors")
    models = load_models(str(tmp_path), ["a", "b"], ["unmodified"])
    assert [list(m) for m in models] == [["unmodified"]] * 2
    with pytest.raises(
        RewardError, match=r"a\.sparse_l1\.pt.*aprl\.reward_preprocessing\.preprocess"
    ):
        load_models(str(tmp_path), ["a"], ["sparse_l1"])
    with pytest.raises(ConfigError, match="model_base_paths is empty"):
        load_models(str(tmp_path), [], ["unmodified"])


def test_table_of_certificates(tmp_path):
    record = {"objective_before": 1, "objective_after": 0.25, "method": "exact", "passed": True}
    (tmp_path / "a.sparse_l1.certificate.json").write_text(json.dumps(record))
    rows = certificate_rows(str(tmp_path), ["a", "b"], ["unmodified", "sparse_l1"])
    assert rows[1:] == [["a", "sparse_l1", "exact", "1.000000", "0.250000", "yes"]]
    assert certificate_rows(str(tmp_path), ["b"], ["sparse_l1"]) == []
    (tmp_path / "a.sparse_l1.certificate.json").write_text("[]")
    with pytest.raises(RunError, match="not a certificate"):
        certificate_rows(str(tmp_path), ["a"], ["sparse_l1"])


@pytest.mark.parametrize("newer", [".pt", ".safetensors"])
def test_the_newer_of_two_formats_counts(tmp_path, newer):
    for suffix in (".pt", ".safetensors"):
        path = tmp_path / f"maze.smooth_l1{suffix}"
        path.touch()
        os.utime(path, (100, 200 if suffix == newer else 100))
    assert model_file(tmp_path / "maze", "smooth_l1").suffix == newer
    with pytest.raises(RewardError, match="there is no model"):
        model_file(tmp_path / "maze", "sparse_l1")
