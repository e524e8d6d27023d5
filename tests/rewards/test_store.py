"""Files of reward nets: they give back what was saved, and run no code."""

import json

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
    NormalizedRewardNet,
    RewardEnsemble,
    ShapedRewardNet,
    TabularRewardNet,
    load_reward_net,
    save_reward_net,
)
from aprl.rewards.potentials import CriticPotential, MlpPotential
from aprl.rewards.store import FORMAT, FORMAT_VERSION
from tests.outputs import assert_same_outputs
from tests.rewards.helpers import batch, running_net, running_shaped_net

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
    "shaped mlp": ShapedRewardNet(MlpRewardNet(BOX, ACTIONS), MlpPotential(BOX, (8, 8)), 0.9),
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
    assert_same_outputs(loaded.predict(*rows), net.predict(*rows))
    assert loaded.architecture() == net.architecture()
    assert loaded.observation_space == net.observation_space
    assert not any(p.requires_grad for p in loaded.parameters())


def running_nets():
    """As imitation trains them."""
    basic = running_net(inputs=("state", "action", "next_state", "terminated"), hidden_sizes=(7,))
    shaped = running_shaped_net()
    return {
        "basic": basic,
        "bounded": running_net(spectral_norm=True, input_scaling="none"),
        "shaped": shaped,
        "ensemble": RewardEnsemble([basic, shaped], std_weight=-1.0),
        "normalized": NormalizedRewardNet(shaped),
    }


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("name", running_nets())
def test_running_statistics_and_precision_are_kept(name, suffix, tmp_path):
    net = running_nets()[name].eval()
    net.update_statistics(*net.encode(*batch()))
    path = save_reward_net(net, tmp_path / f"net{suffix}", {"seed": 3})
    before = torch.get_rng_state()
    loaded = load_reward_net(path)
    assert torch.equal(before, torch.get_rng_state())
    assert type(loaded) is type(net) and loaded.architecture() == net.architecture()
    assert_same_outputs(loaded.predict(*batch()), net.predict(*batch()))
    assert loaded.predict(*batch()).dtype == np.float32


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_run_directory_stands_for_the_file_in_it(suffix, tmp_path):
    net = VECTOR_NETS["mlp"]
    save_reward_net(net, tmp_path / "run" / f"reward_net{suffix}")
    rows = vector_rows()
    assert_same_outputs(load_reward_net(tmp_path / "run").predict(*rows), net.predict(*rows))
    (tmp_path / "other").mkdir()
    with pytest.raises(RewardError, match=r"other is a directory, and holds no reward_net\.pt or"):
        load_reward_net(tmp_path / "other")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_tables(suffix, tmp_path):
    maze = Maze(6, True, "path", "random")
    net = maze.reward_net()
    loaded = load_reward_net(save_reward_net(net, tmp_path / f"net{suffix}", {"seed": 3}))
    rows = maze_rows(maze)
    assert_same_outputs(loaded.predict(*rows), net.predict(*rows))


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


def rewrite(path, change):
    content = torch.load(path, weights_only=True)
    header = json.loads(content[FORMAT])
    change(header, content["tensors"])
    torch.save({FORMAT: json.dumps(header), "tensors": content["tensors"]}, path)


DAMAGE = {
    "newer": (lambda h, t: h.update(format_version=FORMAT_VERSION + 1), "newer"),
    "older": (lambda h, t: h.update(format_version=FORMAT_VERSION - 1), "older"),
    "kind": (lambda h, t: h["architecture"].update(kind="transformer"), "'transformer'"),
    "option": (lambda h, t: h["architecture"].update(layers=3), "layers"),
    "sizes": (lambda h, t: h["architecture"].update(hidden_sizes=[9]), "damaged"),
    "spaces": (lambda h, t: h.pop("observation_space"), "observation_space"),
    "space": (lambda h, t: h.update(observation_space=[]), "not the description"),
    "missing tensor": (lambda h, t: t.pop("mlp.norm.mean"), "mlp.norm.mean"),
    "extra tensor": (lambda h, t: t.update(x=torch.ones(1)), "x"),
    "type": (
        lambda h, t: t.update({"mlp.norm.mean": t["mlp.norm.mean"].float()}),
        "mlp.norm.mean has type",
    ),
    "infinite": (lambda h, t: t["mlp.norm.mean"].fill_(np.inf), "not finite"),
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


def test_empty_and_headless_files_are_damaged(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(b"")
    with pytest.raises(RewardError, match=r"net\.pt is damaged"):
        load_reward_net(path)
    save_reward_net(VECTOR_NETS["mlp"], path)
    content = torch.load(path, weights_only=True)
    for tensors in ({}, {"tensors": 3}, {"tensors": {"a": 3}}):
        torch.save({k: v for k, v in content.items() if k != "tensors"} | tensors, path)
        with pytest.raises(RewardError, match=r"net\.pt is damaged: it has no tensors"):
            load_reward_net(path)
