"""Noise on another policy's actions."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError
from aprl.policies import ConstantPolicy, ZeroPolicy
from aprl.policies.noise import NoisyPolicy

SPACE = spaces.Box(-4, 4, (2,), np.float32)
OBS = spaces.Box(-1, 1, (3,), np.float32)


def noisy(constant=(1.0, -2.0), sigma=0.1, seed=0):
    return NoisyPolicy(ConstantPolicy(OBS, SPACE, constant), lambda: sigma, seed)


@pytest.mark.parametrize("deterministic", [True, False])
def test_noise_is_multiplicative(deterministic):
    actions, _ = noisy().predict(np.zeros((20000, 3), np.float32), deterministic=deterministic)
    np.testing.assert_allclose(actions.mean(axis=0), [1, -2], atol=0.01)
    np.testing.assert_allclose(actions.std(axis=0), [0.1, 0.2], rtol=0.05)
    assert abs(np.corrcoef(actions.T)[0, 1]) < 0.05  # each component has its own


def test_zero_stays_zero_and_the_box_is_kept():
    obs = np.zeros((100, 3), np.float32)
    assert (NoisyPolicy(ZeroPolicy(OBS, SPACE), lambda: 5.0).predict(obs)[0] == 0).all()
    actions, _ = noisy((4, 4), sigma=1).predict(obs)
    assert actions.max() == 4 and actions.min() >= -4


def test_noise_follows_the_annealer():
    policy = noisy()
    obs = np.zeros((500, 3), np.float32)
    spreads = []
    for sigma in (0.3, 0.1, 0.0):
        policy._sigma = lambda sigma=sigma: sigma
        spreads.append(policy.predict(obs)[0][:, 0].std())
    assert spreads[0] > 2 * spreads[1] > 0 and spreads[2] == 0


def test_seed_and_restored_state_repeat_the_noise():
    obs = np.zeros((5, 3), np.float32)
    policy = noisy(seed=3)
    state = policy.state_dict()
    first = policy.predict(obs)[0]
    assert not np.array_equal(policy.predict(obs)[0], first)
    policy.load_state_dict(state)
    np.testing.assert_array_equal(policy.predict(obs)[0], first)
    np.testing.assert_array_equal(noisy(seed=3).predict(obs)[0], first)


def test_choices_are_refused():
    with pytest.raises(ConfigError, match=r"continuous actions, not Discrete\(3\)"):
        NoisyPolicy(ZeroPolicy(spaces.Discrete(3), spaces.Discrete(3)), lambda: 0.1)
