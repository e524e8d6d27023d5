import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError, DemonstrationError
from aprl.imitation.adversarial import default_reward_net
from aprl.imitation.discriminator import (
    Discriminator,
    DiscriminatorConfig,
    discriminator_statistics,
)
from aprl.imitation.reward import LearnedReward
from aprl.imitation.trajectories import Transitions
from aprl.rewards import MountainCarRewardNet, TabularRewardNet
from tests.imitation.helpers import same, transitions, weights
from tests.rewards.helpers import numbered_rows

BOX = spaces.Box(-np.inf, np.inf, (4,), np.float32)
SEED = np.random.SeedSequence(0)


def shifted(n, by, seed):
    rows = transitions(n, seed)
    return Transitions(**{**rows.arrays(), "obs": rows.obs + np.float32(by)})


def make(expert=None, **options):
    torch.manual_seed(0)
    net = default_reward_net("gail", BOX, spaces.Discrete(2), gamma=0.99)
    reward = LearnedReward(net, "softplus", None)
    config = DiscriminatorConfig(**{"batch_size": 32, "updates_per_round": 10, **options})
    return Discriminator(reward, expert or shifted(200, 1.0, seed=1), config, SEED)


def test_learns_to_tell_the_sides_apart():
    discriminator = make(learning_rate=1e-2)
    rounds = [discriminator.train(shifted(100, -1.0, seed)) for seed in range(6)]
    first, last = rounds[0], rounds[-1]
    assert last["accuracy"] > 0.95 > first["accuracy"]
    assert last["loss"] < 0.2 < first["loss"] and last["entropy"] < first["entropy"]
    assert last["logit_expert"] > 2 and last["logit_generator"] < -2  # high is the expert
    assert not discriminator.reward.net.training


def test_nothing_to_tell_means_log_two():
    discriminator = make(expert=shifted(400, 0.0, seed=1))
    for seed in range(5):
        last = discriminator.train(shifted(400, 0.0, 10 + seed))
    assert last["loss"] == pytest.approx(np.log(2), abs=0.05)
    assert last["entropy"] == pytest.approx(np.log(2), abs=0.05)


def test_statistics_by_hand():
    expert, generated = torch.tensor([2.0, -1.0]), torch.tensor([-3.0, -4.0])
    values = discriminator_statistics(expert, generated)
    losses = [np.log1p(np.exp(-x)) for x in (2, -1)] + [np.log1p(np.exp(x)) for x in (-3, -4)]
    p = 1 / (1 + np.exp(-np.array([2.0, -1, -3, -4])))
    assert values == pytest.approx(
        {
            "loss": np.mean(losses),
            "accuracy": 0.75,
            "accuracy_expert": 0.5,
            "accuracy_generator": 1.0,
            "entropy": -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p)),
            "proportion_called_expert": 0.25,
            "logit_expert": 0.5,
            "logit_generator": -3.5,
        },
        rel=1e-5,
    )


def test_statistics_are_of_all_updates_not_of_the_last():
    seen = []
    discriminator = make(updates_per_round=7)
    logits = discriminator.reward.logits

    def watch(*args):
        seen.append(logits(*args).detach())
        return logits(*args)

    discriminator.reward.logits = watch
    values = discriminator.train(shifted(100, -1.0, 0))
    assert len(seen) == 14
    assert values["logit_expert"] == pytest.approx(torch.cat(seen[::2]).mean().item(), abs=1e-6)
    assert values["logit_generator"] == pytest.approx(torch.cat(seen[1::2]).mean().item(), abs=1e-6)


def test_newest_rollouts_are_kept():
    discriminator = make(replay_rounds=2)
    for seed in range(3):
        discriminator.train(shifted(40, -1.0, seed))
    kept = discriminator.state_dict()["rollouts"]
    assert len(kept) == 2
    np.testing.assert_array_equal(kept[0]["obs"], shifted(40, -1.0, 1).obs)


def test_inputs_are_scaled_by_the_expert_alone():
    discriminator = make()
    count = discriminator.reward.net.mlp.norm.count.item()
    discriminator.train(shifted(40, 1e6, 0))
    assert discriminator.reward.net.mlp.norm.count == count == 200


def test_gradient_penalty_flattens_the_net():
    slopes = []
    for penalty in (0.0, 10.0):
        discriminator = make(gradient_penalty=penalty, learning_rate=1e-2, updates_per_round=50)
        for seed in range(4):
            values = discriminator.train(shifted(100, -1.0, seed))
        inputs = discriminator.reward.encode(shifted(100, 0.0, 9))
        obs = inputs.obs.requires_grad_()
        output = discriminator.reward.net(*inputs._replace(obs=obs)).sum()
        slopes.append(torch.autograd.grad(output, obs)[0].norm(dim=1).mean().item())
    assert "gradient_penalty" in values
    assert slopes[1] < slopes[0] and slopes[1] < 1.5


def test_a_reward_without_weights_cannot_learn():
    fixed = LearnedReward(MountainCarRewardNet(BOX, spaces.Discrete(2)), "logit", None)
    with pytest.raises(ConfigError, match="MountainCarRewardNet has no weights to train"):
        Discriminator(fixed, shifted(40, 0.0, 0), DiscriminatorConfig(batch_size=32), SEED)


def test_a_penalty_needs_a_net_with_a_slope():
    table = TabularRewardNet(spaces.Discrete(5), spaces.Discrete(3))
    rows = Transitions(*numbered_rows(40), np.zeros(40, dtype=bool))
    config = DiscriminatorConfig(batch_size=32, gradient_penalty=1.0)
    discriminator = Discriminator(LearnedReward(table, "logit", None), rows, config, SEED)
    with pytest.raises(ConfigError, match="gradient_penalty needs a reward net that is different"):
        discriminator.train(rows)


def test_same_seed_same_weights_and_resumed_goes_on():
    one, two, resumed = (make(gradient_penalty=1.0) for _ in range(3))
    for seed in range(2):
        assert one.train(shifted(40, -1.0, seed)) == two.train(shifted(40, -1.0, seed))
    assert same(weights(one.reward.net), weights(two.reward.net))
    resumed.reward.load_state_dict(one.reward.state_dict())
    resumed.load_state_dict(one.state_dict())
    one.train(shifted(40, -1.0, 5))
    assert not same(weights(one.reward.net), weights(resumed.reward.net))
    resumed.train(shifted(40, -1.0, 5))
    assert same(weights(one.reward.net), weights(resumed.reward.net))


def test_misuse():
    with pytest.raises(DemonstrationError, match=r"20 demonstrated.*batch of 32.*disc_batch_size"):
        make(expert=shifted(20, 0.0, 0))
    for options, message in (
        ({"batch_size": 0}, "batch_size must be"),
        ({"updates_per_round": 1.5}, "updates_per_round must be"),
        ({"learning_rate": 0}, "disc_learning_rate must be"),
        ({"gradient_penalty": -1}, "gradient_penalty must not"),
    ):
        with pytest.raises(ConfigError, match=message):
            make(**options)
