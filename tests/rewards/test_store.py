"""Files of reward nets: they give back what was saved, and run no code."""

import json
import pickle
import sys
import types

import numpy as np
import pytest
import safetensors.torch
import torch
from gymnasium import spaces

from aprl.errors import RewardError
from aprl.policies import ActorCriticMlp, MlpPolicy
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.envs.mountain_car import mountain_car_reward_net
from aprl.rewards import (
    AffineRewardNet,
    MlpRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    TabularRewardNet,
    load_reward_net,
    save_reward_net,
)
from aprl.rewards.potentials import CriticPotential, MlpPotential
from aprl.rewards.store import FORMAT

BOX, ACTIONS = spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(3)
RNG = np.random.default_rng(0)


def vector_rows(n=20):
    states = RNG.normal(size=(2, n, 2)).astype(np.float32)
    return states[0], RNG.integers(3, size=n), states[1], RNG.random(n) < 0.3


def maze_rows(maze):
    t = maze.mdp().table
    return t.states, t.actions, t.next_states, RNG.random(len(t)) < 0.3


def critic():
    potential = CriticPotential(MlpPolicy(ActorCriticMlp(2, 3, discrete=True), BOX, ACTIONS))
    potential.set_coefficients(np.array([2.0, 1.0]))
    return potential


VECTOR_NETS = {
    "mlp": MlpRewardNet(BOX, ACTIONS, ("state", "next_state"), (8, 4)),
    "shaped mlp": ShapedRewardNet(MlpRewardNet(BOX, ACTIONS), MlpPotential(2, 2, 8), 0.9),
    "critic": ShapedRewardNet(MlpRewardNet(BOX, ACTIONS), critic(), 0.9),
    "ensemble": RewardEnsemble([MlpRewardNet(BOX, ACTIONS, seed=s) for s in range(3)]),
    "affine": AffineRewardNet(MlpRewardNet(BOX, ACTIONS), 3.0, -1.0),
    "car": mountain_car_reward_net("random"),
    "dense car": mountain_car_reward_net("dense"),
}


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("net", VECTOR_NETS.values(), ids=VECTOR_NETS)
def test_a_loaded_net_gives_the_same_rewards(net, suffix, tmp_path):
    loaded = load_reward_net(save_reward_net(net, tmp_path / "deep" / f"net{suffix}"))
    rows = vector_rows()
    np.testing.assert_array_equal(loaded.predict(*rows), net.predict(*rows))
    assert loaded.architecture() == net.architecture()
    assert loaded.observation_space == net.observation_space
    assert not any(p.requires_grad for p in loaded.parameters())


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_tables(suffix, tmp_path):
    maze = Maze(6, True, "path", "random")
    net = maze.reward_net()
    loaded = load_reward_net(save_reward_net(net, tmp_path / f"net{suffix}", {"seed": 3}))
    rows = maze_rows(maze)
    np.testing.assert_array_equal(loaded.predict(*rows), net.predict(*rows))


def test_random_state_of_torch_is_left_alone(tmp_path):
    path = save_reward_net(VECTOR_NETS["shaped mlp"], tmp_path / "net.pt")
    before = torch.get_rng_state()
    load_reward_net(path)
    assert torch.equal(torch.get_rng_state(), before)


def test_our_files_are_read_by_the_safe_unpickler(tmp_path):
    path = save_reward_net(VECTOR_NETS["mlp"], tmp_path / "net.pt")
    content = torch.load(path, weights_only=True)
    assert json.loads(content[FORMAT])["architecture"]["kind"] == "mlp"


def test_saving_what_cannot_be_read_back(tmp_path):
    net = TabularRewardNet(spaces.Discrete(2), ACTIONS, table=np.array([[0, np.nan], [0, 0]]))
    with pytest.raises(RewardError, match="not finite"):
        save_reward_net(net, tmp_path / "net.pt")
    with pytest.raises(RewardError, match=r"net\.pkl"):
        save_reward_net(VECTOR_NETS["mlp"], tmp_path / "net.pkl")
    assert not list(tmp_path.iterdir())


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the code in the file ran')",))


def test_a_pickle_does_not_run_unless_its_package_is_installed(tmp_path):
    torch.save(Bomb(), tmp_path / "bomb.pt")
    with pytest.raises(RewardError, match=r"bomb\.pt is a pickled module.*'imitation'"):
        load_reward_net(tmp_path / "bomb.pt")


def rewrite(path, change):
    content = torch.load(path, weights_only=True)
    header = json.loads(content[FORMAT])
    change(header, content["tensors"])
    torch.save({FORMAT: json.dumps(header), "tensors": content["tensors"]}, path)


DAMAGE = {
    "newer": (lambda h, t: h.update(format_version=2), "newer"),
    "kind": (lambda h, t: h["architecture"].update(kind="transformer"), "'transformer'"),
    "sizes": (lambda h, t: h["architecture"].update(hidden_sizes=[9]), "damaged"),
    "spaces": (lambda h, t: h.pop("observation_space"), "observation_space"),
    "space": (lambda h, t: h.update(observation_space=[]), "not the description"),
    "missing tensor": (lambda h, t: t.pop("input_mean"), "input_mean"),
    "extra tensor": (lambda h, t: t.update(x=torch.ones(1)), "x"),
    "type": (lambda h, t: t.update(input_mean=t["input_mean"].float()), "input_mean has type"),
    "infinite": (lambda h, t: t["input_mean"].fill_(np.inf), "not finite"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_one_line_with_the_path(damage, message, tmp_path):
    path = save_reward_net(VECTOR_NETS["mlp"], tmp_path / "net.pt")
    rewrite(path, damage)
    with pytest.raises(RewardError, match=message) as error:
        load_reward_net(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_files_that_are_no_nets(suffix, tmp_path):
    with pytest.raises(RewardError, match="does not exist"):
        load_reward_net(tmp_path / f"none{suffix}")
    path = save_reward_net(VECTOR_NETS["mlp"], tmp_path / f"net{suffix}")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(RewardError, match=f"net{suffix}"):
        load_reward_net(path)
    path.write_bytes(b"garbage")
    with pytest.raises(RewardError, match=f"net{suffix}"):
        load_reward_net(path)
    if suffix == ".pt":
        torch.save({"x": torch.ones(2)}, path)
    else:
        safetensors.torch.save_file({"x": torch.ones(2)}, path)
    with pytest.raises(RewardError, match="no reward net of aprl"):
        load_reward_net(path)


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

    shaped = ShapedRewardNet(net, MlpPotential(2), 0.9)
    path = save_reward_net(shaped, tmp_path / "shaped.pt")
    with pytest.warns(UserWarning, match="can run code"):
        loaded = load_reward_net(path)
    rows = vector_rows()
    np.testing.assert_array_equal(loaded.predict(*rows), shaped.predict(*rows))
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
