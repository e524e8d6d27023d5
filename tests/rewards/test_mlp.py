"""Rewards that are perceptrons, with fixed and with running scales of their inputs."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.rewards import MlpRewardNet
from aprl.rewards.mlp import INPUTS
from tests.outputs import assert_same_outputs
from tests.rewards.helpers import ACTIONS, BOX, CHOICE, NUMBERED, batch, numbered_rows, running_net


def test_only_the_parts_in_use_matter():
    obs, actions, next_obs, terminated = batch()
    other = batch(seed=1)[2]
    for inputs, changed in (
        (("state", "action"), (obs, actions, other, ~terminated)),
        (("action",), (other, actions, other, ~terminated)),
        (("state",), (obs, actions[::-1], other, terminated)),
    ):
        net = running_net(inputs=inputs)
        assert_same_outputs(net.predict(*batch()), net.predict(*changed))
    net = running_net(inputs=INPUTS)
    for changed in ((obs, actions, other, terminated), (obs, actions, next_obs, ~terminated)):
        assert (net.predict(*batch()) != net.predict(*changed)).all()
    with pytest.raises(ConfigError, match=r"some of state, action, .* got \(\)"):
        running_net(inputs=())
    with pytest.raises(ConfigError, match=r"got .*stat"):
        running_net(inputs=("stat",))


def test_networks_see_only_their_inputs():
    box, rng = spaces.Box(-np.inf, np.inf, (2,), np.float32), np.random.default_rng(0)
    net = MlpRewardNet(box, ACTIONS, ("state", "action"), (8,), seed=1)
    states = rng.normal(size=(6, 2)).astype(np.float32)
    actions, ended = np.arange(6) % 3, np.zeros(6, bool)
    first, second = (net.predict(states, actions, states + d, ended) for d in (0, 5))
    assert_same_outputs(first, second)
    assert (net.predict(states, (actions + 1) % 3, states, ended) != first).all()


def test_discrete_actions_enter_one_hot():
    net = running_net(inputs=("action",), hidden_sizes=(), input_scaling="none")
    layer = net.mlp.layers[0]
    zeros = np.zeros((4, 3), np.float32)
    rewards = net.predict(zeros, np.array([1, 2, 3, 4]), zeros, np.zeros(4, dtype=bool))
    np.testing.assert_allclose(rewards, (layer.weight[0] + layer.bias).detach(), rtol=1e-6)
    with pytest.raises(ConfigError, match="0 is not in"):
        net.predict(zeros, np.array([0, 1, 2, 3]), zeros, np.zeros(4, dtype=bool))


def test_networks_take_numbered_states():
    net = MlpRewardNet(NUMBERED, ACTIONS, ("state", "next_state"), (8,))
    assert len(np.unique(net.predict(*numbered_rows(200)))) > 10


def test_image_like_boxes_are_flattened():
    image = spaces.Box(0.0, 1.0, (2, 3), np.float32)
    net = running_net(image, image)
    rows = np.zeros((4, 2, 3), np.float32)
    assert net.predict(rows, rows, rows, np.zeros(4)).shape == (4,)
    with pytest.raises(ConfigError, match="shape"):
        net.predict(rows[:, 0], rows, rows, np.zeros(4))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_encoded_columns_give_the_same_rewards_as_raw_ones(precision):
    net = running_net(inputs=INPUTS, precision=precision)
    rewards = net(*net.encode(*batch()))
    assert rewards.dtype == getattr(torch, precision)
    assert_same_outputs(rewards.detach(), net.predict(*batch()))
    assert net.predict(*batch()).dtype == precision


def test_inputs_far_off_are_clipped_on_the_scale_of_what_was_seen():
    net = running_net(inputs=("state",))
    obs, actions, next_obs, terminated = batch(100)
    net.update_statistics(*net.encode(obs, actions, next_obs, terminated))
    far = net.predict(np.full((2, 3), [[1e3], [1e6]], np.float32), actions[:2], obs[:2], [0, 0])
    assert_same_outputs(far[0], far[1])


def test_spectral_norm_bounds_the_slope():
    torch.manual_seed(0)
    net = running_net(
        BOX, CHOICE, ("state",), input_scaling="none", spectral_norm=True, hidden_sizes=(64,)
    )
    with torch.no_grad():
        for layer in (net.mlp.layers[0], net.mlp.layers[2]):
            layer.parametrizations.weight.original.mul_(50)
    inputs = net.encode(*batch(100))
    net.train()
    for _ in range(50):  # one step of the power iteration each
        net(*inputs)
    net.eval()
    obs = inputs.obs.requires_grad_()
    (gradient,) = torch.autograd.grad(net(*inputs._replace(obs=obs)).sum(), obs)
    assert gradient.norm(dim=1).max() <= 1.001
