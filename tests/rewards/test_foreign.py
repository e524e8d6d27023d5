"""Reward nets of the package `imitation`, which are pickles."""

import pickle
import sys
import types

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import RewardError
from aprl.rewards import ShapedRewardNet, load_reward_net, save_reward_net
from aprl.rewards.potentials import MlpPotential
from tests.outputs import assert_same_outputs

BOX, ACTIONS = spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(3)
RNG = np.random.default_rng(0)


def vector_rows(n=20):
    states = RNG.normal(size=(2, n, 2)).astype(np.float32)
    return states[0], RNG.integers(3, size=n), states[1], RNG.random(n) < 0.3


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the code in the file ran')",))


def test_a_pickle_does_not_run_unless_its_package_is_installed(tmp_path):
    torch.save(Bomb(), tmp_path / "bomb.pt")
    with pytest.raises(RewardError, match=r"bomb\.pt is a pickled module.*'imitation'"):
        load_reward_net(tmp_path / "bomb.pt")


class ForeignNet(torch.nn.Module):
    """What a pickled net of another package offers."""

    observation_space, action_space = BOX, ACTIONS

    def predict(self, state, action, next_state, done):
        assert state.dtype == np.float32 and action.dtype == ACTIONS.dtype
        return (state[:, 0] - next_state[:, 1] + action).astype(np.float32)


@pytest.fixture
def package(monkeypatch):
    """A stand-in for the package `imitation`, as far as it is looked for."""
    module = types.ModuleType("imitation")
    module.__spec__ = types.SimpleNamespace(name="imitation")
    monkeypatch.setitem(sys.modules, "imitation", module)


def test_foreign_nets_are_read_with_a_warning(package, tmp_path):
    torch.save(ForeignNet(), tmp_path / "foreign.pt")
    with pytest.warns(UserWarning, match="can run code"):
        net = load_reward_net(tmp_path / "foreign.pt")
    s, a, after, ended = vector_rows()
    np.testing.assert_allclose(
        net.predict(s, a, after, ended), s[:, 0] - after[:, 1] + a, rtol=1e-5
    )

    encoded = net(*net.encode(s, a, after, ended))
    assert_same_outputs(encoded, net.predict(s, a, after, ended))

    shaped = ShapedRewardNet(net, MlpPotential(BOX), 0.9)
    path = save_reward_net(shaped, tmp_path / "shaped.pt")
    with pytest.warns(UserWarning, match="can run code"):
        loaded = load_reward_net(path)
    rows = vector_rows()
    assert_same_outputs(loaded.predict(*rows), shaped.predict(*rows))
    torch.save(Bomb(), tmp_path / "foreign.pt")
    with pytest.raises(RewardError, match="moved or changed"):
        load_reward_net(path)


def test_foreign_files_that_hold_something_else(package, tmp_path):
    torch.save(types.SimpleNamespace(x=1), tmp_path / "other.pt")
    with pytest.warns(UserWarning), pytest.raises(RewardError, match="SimpleNamespace"):
        load_reward_net(tmp_path / "other.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(RewardError, match=r"plain\.pt"):
        load_reward_net(tmp_path / "plain.pt")
