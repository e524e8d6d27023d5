import pickle

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import RunError
from aprl.rewards import (
    BasicRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    load_reward,
    save_reward,
)
from aprl.training.checkpoints import load_state, save_state
from aprl.training.random_state import global_random_state

BOX = spaces.Box(-10.0, 10.0, (3,), np.float32)
CHOICE = spaces.Discrete(4)


def nets():
    basic = BasicRewardNet(BOX, CHOICE, use_next_state=True, hidden=(7,))
    shaped = ShapedRewardNet(BasicRewardNet(BOX, CHOICE), 0.9, hidden=(5, 4))
    return {
        "basic": basic,
        "bounded": BasicRewardNet(BOX, CHOICE, spectral_norm=True, normalize_inputs=False),
        "shaped": shaped,
        "ensemble": RewardEnsemble([basic, shaped], std_weight=-1.0),
        "normalized": NormalizedRewardNet(shaped),
    }


def batch(n=6):
    rng = np.random.default_rng(0)
    obs, next_obs = rng.normal(size=(2, n, 3)).astype(np.float32)
    return obs, rng.integers(0, 4, n), next_obs, np.arange(n) % 2


@pytest.mark.parametrize("name", nets())
def test_saved_and_loaded_is_the_same_net(tmp_path, name):
    net = nets()[name].eval()
    net.update_statistics(net.encode(*batch()))
    save_reward(net, tmp_path / "net", {"seed": 3})
    before = global_random_state()
    loaded = load_reward(tmp_path / "net").eval()
    assert torch.equal(before["torch"], global_random_state()["torch"])
    assert type(loaded) is type(net) and loaded.architecture() == net.architecture()
    np.testing.assert_array_equal(loaded.predict(*batch()), net.predict(*batch()))
    assert {p.suffix for p in (tmp_path / "net").iterdir()} == {".json", ".safetensors"}


def test_files_that_cannot_be_used(tmp_path):
    path = save_reward(nets()["basic"], tmp_path / "net", {})
    with pytest.raises(RunError, match="nowhere"):
        load_reward(tmp_path / "nowhere")
    weights = path / "state.safetensors"
    intact = weights.read_bytes()
    weights.write_bytes(intact[:100])
    with pytest.raises(RunError, match="damaged"):
        load_reward(path)
    weights.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(RunError, match="damaged"):
        load_reward(path)
    weights.write_bytes(intact)
    header = load_state(path)
    for change, message in (
        ({"format": "other"}, "holds no aprl-reward"),
        ({"format_version": 99}, "format_version 99"),
        ({"architecture": {"kind": "os.system"}}, "'os.system' is not known"),
        ({"architecture": {"kind": "basic", "layers": 3}}, "not usable"),
        ({"architecture": {**header["architecture"], "hidden": [9]}}, "size mismatch"),
    ):
        save_state(path, {**header, **change})
        with pytest.raises(RunError, match=message):
            load_reward(path)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    net = nets()["basic"]
    with torch.no_grad():
        net.mlp.layers[0].weight[0, 0] = torch.nan
    with pytest.raises(RunError, match="not finite"):
        save_reward(net, tmp_path / "net", {})
    assert not (tmp_path / "net").exists()
