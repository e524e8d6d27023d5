import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.rewards import (
    BasicRewardNet,
    NormalizedRewardNet,
    RewardEnsemble,
    RewardNet,
    ShapedRewardNet,
)

BOX = spaces.Box(-10.0, 10.0, (3,), np.float32)
CHOICE = spaces.Discrete(4, start=1)


def batch(n=5, seed=0, terminated=False):
    rng = np.random.default_rng(seed)
    obs, next_obs = rng.normal(size=(2, n, 3)).astype(np.float32)
    return obs, rng.integers(1, 5, n), next_obs, np.full(n, terminated)


def test_only_the_parts_in_use_matter():
    obs, actions, next_obs, terminated = batch()
    other = batch(seed=1)[2]
    for uses, changed in (
        ({}, (obs, actions, other, ~terminated)),
        ({"use_state": False}, (other, actions, other, ~terminated)),
        ({"use_action": False}, (obs, actions[::-1], other, terminated)),
    ):
        net = BasicRewardNet(BOX, CHOICE, **uses)
        np.testing.assert_array_equal(net.predict(*batch()), net.predict(*changed))
    net = BasicRewardNet(BOX, CHOICE, use_next_state=True, use_terminated=True)
    for changed in ((obs, actions, other, terminated), (obs, actions, next_obs, ~terminated)):
        assert (net.predict(*batch()) != net.predict(*changed)).all()
    with pytest.raises(ConfigError, match="at least one"):
        BasicRewardNet(BOX, CHOICE, use_state=False, use_action=False)


def test_discrete_actions_enter_one_hot():
    net = BasicRewardNet(BOX, CHOICE, use_state=False, hidden=(), normalize_inputs=False)
    layer = net.mlp.layers[0]
    zeros = np.zeros((4, 3), np.float32)
    rewards = net.predict(zeros, np.array([1, 2, 3, 4]), zeros, np.zeros(4, dtype=bool))
    np.testing.assert_allclose(rewards, (layer.weight[0] + layer.bias).detach(), rtol=1e-6)
    with pytest.raises(ConfigError, match="observation 0 is not in"):
        net.predict(zeros, np.array([0, 1, 2, 3]), zeros, np.zeros(4, dtype=bool))


def test_image_like_boxes_are_flattened():
    image = spaces.Box(0.0, 1.0, (2, 3), np.float32)
    net = BasicRewardNet(image, image)
    rows = np.zeros((4, 2, 3), np.float32)
    assert net.predict(rows, rows, rows, np.zeros(4)).shape == (4,)
    with pytest.raises(ConfigError, match="shape"):
        net.predict(rows[:, 0], rows, rows, np.zeros(4))


def test_shaping_by_hand():
    class Count(RewardNet):
        def forward(self, inputs):
            return inputs.actions.argmax(dim=1).float()

        def architecture(self):
            return {}

    shaped = ShapedRewardNet(Count(BOX, CHOICE), gamma=0.5)
    obs, actions, next_obs, _ = batch()
    with torch.no_grad():
        now, later = (shaped.potential(torch.from_numpy(x)).numpy() for x in (obs, next_obs))
    went_on = shaped.predict(obs, actions, next_obs, np.zeros(5))
    ended = shaped.predict(obs, actions, next_obs, np.ones(5))
    np.testing.assert_allclose(went_on, actions - 1 + 0.5 * later - now, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ended, actions - 1 - now, rtol=1e-5, atol=1e-6)


def test_shaping_telescopes_over_an_episode_that_terminates():
    gamma = 0.9
    base = BasicRewardNet(BOX, CHOICE)
    shaped = ShapedRewardNet(base, gamma)
    path = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    actions = np.array([1, 2, 3, 4, 1, 2])
    terminated = np.array([0, 0, 0, 0, 0, 1])
    extra = shaped.predict(path[:-1], actions, path[1:], terminated) - base.predict(
        path[:-1], actions, path[1:], terminated
    )
    with torch.no_grad():
        potential = float(shaped.potential(torch.from_numpy(path[:1])))
    assert (gamma ** np.arange(6) * extra).sum() == pytest.approx(-potential, abs=1e-5)


def test_gamma_of_the_shaping_is_checked():
    with pytest.raises(ConfigError, match=r"gamma must be in \[0, 1\], got 1.5"):
        ShapedRewardNet(BasicRewardNet(BOX, CHOICE), 1.5)


def test_ensemble_is_mean_and_spread():
    members = [BasicRewardNet(BOX, CHOICE) for _ in range(3)]
    each = np.stack([m.predict(*batch()) for m in members])
    mean = RewardEnsemble(members).predict(*batch())
    careful = RewardEnsemble(members, std_weight=-2.0).predict(*batch())
    np.testing.assert_allclose(mean, each.mean(axis=0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        careful, each.mean(axis=0) - 2 * each.std(axis=0, ddof=1), rtol=1e-4, atol=1e-6
    )
    with pytest.raises(ConfigError, match="at least 2 members"):
        RewardEnsemble(members[:1])
    with pytest.raises(ConfigError, match="same spaces"):
        RewardEnsemble([members[0], BasicRewardNet(BOX, BOX)])


def test_statistics_reach_every_part():
    members = [BasicRewardNet(BOX, CHOICE), ShapedRewardNet(BasicRewardNet(BOX, CHOICE), 0.9)]
    net = NormalizedRewardNet(RewardEnsemble(members))
    net.update_statistics(net.encode(*batch(200)))
    counts = [value.item() for name, value in net.state_dict().items() if name.endswith("count")]
    assert counts == [200] * 4
    rewards = net.predict(*batch(200))
    assert abs(rewards.mean()) < 1e-4 and abs(rewards.std() - 1) < 1e-3


def test_inputs_far_off_are_clipped_on_the_scale_of_what_was_seen():
    net = BasicRewardNet(BOX, CHOICE, use_action=False)
    obs, actions, next_obs, terminated = batch(100)
    net.update_statistics(net.encode(obs, actions, next_obs, terminated))
    far = net.predict(np.full((2, 3), [[1e3], [1e6]], np.float32), actions[:2], obs[:2], [0, 0])
    assert far[0] == far[1]


def test_spectral_norm_bounds_the_slope():
    torch.manual_seed(0)
    net = BasicRewardNet(
        BOX, CHOICE, use_action=False, normalize_inputs=False, spectral_norm=True, hidden=(64,)
    )
    with torch.no_grad():
        for layer in (net.mlp.layers[0], net.mlp.layers[2]):
            layer.parametrizations.weight.original.mul_(50)
    inputs = net.encode(*batch(100))
    net.train()
    for _ in range(50):  # one step of the power iteration each
        net(inputs)
    net.eval()
    obs = inputs.obs.requires_grad_()
    (gradient,) = torch.autograd.grad(net(inputs._replace(obs=obs)).sum(), obs)
    assert gradient.norm(dim=1).max() <= 1.001


def test_prediction_keeps_no_gradient_and_changes_nothing():
    net = NormalizedRewardNet(ShapedRewardNet(BasicRewardNet(BOX, CHOICE), 0.9))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    first, second = net.predict(*batch()), net.predict(*batch())
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.float32
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
