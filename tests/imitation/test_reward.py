"""Signs and scales of what the generator is paid."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import AprlError, ConfigError
from aprl.imitation.reward import ALWAYS_POSITIVE, TRANSFORMS, LearnedReward
from aprl.rewards import MlpRewardNet, RewardNet
from tests.imitation.helpers import transitions
from tests.outputs import assert_same_outputs

BOX = spaces.Box(-np.inf, np.inf, (4,), np.float32)
CHOICE = spaces.Discrete(2)


class FirstObservation(RewardNet):
    """f(s) is the first observed number."""

    def forward(self, state, action, next_state, terminated):
        return state[:, 0]

    def architecture(self):
        return {}

    @classmethod
    def from_architecture(cls, architecture, observation_space, action_space):
        return cls(observation_space, action_space)


def net():
    return FirstObservation(BOX, CHOICE)


def half_choices(obs, actions):
    return torch.full((len(obs),), math.log(0.5))


def reward(transform, **options):
    log_prob = half_choices if transform.startswith("airl") else None
    return LearnedReward(net(), transform, log_prob, **options)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_perfect_discriminator_pays_the_expert_more(transform):
    expert, generated = (
        replace(transitions(1), obs=np.full((1, 4), value, np.float32))
        for value in (8.0, -8.0)  # what the discriminator thinks of them
    )
    for normalize in (False, True):
        learned = reward(transform, normalize=normalize)
        learned.update(transitions(50))
        assert learned(expert)[0] > learned(generated)[0] + 1.0


def test_formulas():
    rows = transitions(100)
    f = rows.obs[:, 0].astype(np.float64)
    discriminator = 1 / (1 + np.exp(-f))
    half = math.log(0.5)
    expected = {
        "softplus": -np.log(1 - discriminator),
        "logit": np.log(discriminator) - np.log(1 - discriminator),
        "airl": f,
        "airl_with_entropy": f - half,
    }
    assert expected.keys() == TRANSFORMS.keys()
    for name, values in expected.items():
        out = reward(name, normalize=False)(rows)
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, values, rtol=1e-4, atol=1e-6)
        assert (out > 0).all() == (name in ALWAYS_POSITIVE)
    logit = reward("airl").logits(net().encode(rows.obs, rows.actions, rows.next_obs, f), None)
    np.testing.assert_allclose(logit, f, rtol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_normalised_after_the_transform(transform):
    learned, raw = reward(transform), reward(transform, normalize=False)
    for seed in range(3):
        learned.update(transitions(40, seed))
    assert learned.norm.count == 120
    seen = np.concatenate([raw(transitions(40, seed)) for seed in range(3)])
    rows = transitions(30, seed=9)
    np.testing.assert_allclose(
        learned(rows), (raw(rows) - seen.mean()) / seen.std(), rtol=1e-3, atol=1e-4
    )
    assert learned.norm.count == 120, "paying changes no statistics"
    uncentred = reward(transform, centre=False)
    uncentred.load_state_dict(learned.state_dict())
    np.testing.assert_allclose(uncentred(rows), raw(rows) / seen.std(), rtol=1e-3, atol=1e-4)


def test_before_any_statistics_rewards_are_as_they_are():
    np.testing.assert_array_equal(reward("logit")(transitions()), transitions().obs[:, 0])


def test_state_travels():
    learned = LearnedReward(MlpRewardNet(BOX, CHOICE), "softplus", None)
    learned.update(transitions(20))
    other = LearnedReward(MlpRewardNet(BOX, CHOICE), "softplus", None)
    other.load_state_dict(learned.state_dict())
    assert_same_outputs(learned(transitions()), other(transitions()))


def test_misuse():
    with pytest.raises(ConfigError, match="reward_transform 'softplu'; did you mean 'softplus'"):
        LearnedReward(net(), "softplu", None)
    for transform in ("airl", "airl_with_entropy"):
        with pytest.raises(ConfigError, match="for GAIL give softplus or logit"):
            LearnedReward(net(), transform, None)


def test_a_diverged_discriminator_is_an_error_not_a_nan_reward():
    diverged = MlpRewardNet(BOX, CHOICE)
    with torch.no_grad():
        diverged.mlp.layers[0].weight[:] = torch.nan
    with pytest.raises(AprlError, match=r"not finite.*disc_learning_rate"):
        LearnedReward(diverged, "softplus", None)(transitions())
