import numpy as np
import pytest
import torch
from gymnasium import spaces

from aprl.errors import ConfigError, DemonstrationError
from aprl.imitation.bc import BCConfig, clone, fit_spread, fresh_policy, negative_log_likelihood
from aprl.imitation.demonstrations import Demonstrations
from aprl.imitation.trajectories import Trajectory
from aprl.policies import load_saved, save_policy
from aprl.policies.network import ActorCriticMlp
from tests.imitation.helpers import demonstrations, same, weights


def gaussian_expert(steps=2000, std=0.3):
    """One long episode in which the action is 2 s + 1, with noise."""
    rng = np.random.default_rng(0)
    obs = rng.normal(3.0, 0.5, (steps + 1, 1)).astype(np.float32)
    actions = (2 * obs[:-1] + 1 + std * rng.normal(size=(steps, 1))).astype(np.float32)
    box = spaces.Box(-100.0, 100.0, (1,), np.float32)
    episode = Trajectory(obs, actions, None, terminated=False, truncated=True)
    return Demonstrations((episode,), box, box, {})


def test_learns_mean_and_spread_of_a_gaussian_expert():
    fitted = clone(gaussian_expert(), BCConfig(epochs=200, learning_rate=3e-3), hidden=(32,))
    obs = np.linspace(2.2, 3.8, 9, dtype=np.float32)[:, None]
    np.testing.assert_allclose(fitted.policy.mean(obs), 2 * obs + 1, atol=0.15)
    assert fitted.policy.network.log_std.exp().item() == pytest.approx(0.3, rel=0.15)
    ideal = 0.5 * np.log(2 * np.pi * np.e * 0.3**2)
    assert min(fitted.validation_loss) == pytest.approx(ideal, abs=0.1)


def test_learns_choices():
    fitted = clone(demonstrations(episodes=10), BCConfig(batch_size=32, epochs=60))
    steps = np.concatenate([t.obs[:-1] for t in demonstrations(episodes=10).trajectories])
    actions = np.concatenate([t.actions for t in demonstrations(episodes=10).trajectories])
    chosen, _ = fitted.policy.predict(steps, deterministic=True)
    assert (chosen == actions).mean() > 0.93


def test_the_best_epoch_counts_and_patience_ends_it():
    config = BCConfig(batch_size=32, epochs=500, learning_rate=0.05, patience=5)
    fitted = clone(demonstrations(episodes=10), config)
    losses = fitted.validation_loss
    assert fitted.best_epoch == int(np.argmin(losses)) == len(losses) - 6 < 494
    short = clone(
        demonstrations(episodes=10),
        BCConfig(batch_size=32, epochs=fitted.best_epoch + 1, learning_rate=0.05),
    )
    assert same(weights(short.policy.network), weights(fitted.policy.network))


def test_spread_is_what_the_means_are_off_by_and_never_nothing():
    network = ActorCriticMlp(1, 2)
    with torch.no_grad():
        network.policy_tower[-1].weight.zero_()
        network.policy_tower[-1].bias.copy_(torch.tensor([1.0, 5.0]))
    actions = torch.tensor([[1.0, 8.0], [1.0, 2.0]])
    fit_spread(network, torch.zeros(2, 1), actions)
    assert network.log_std.exp().tolist() == pytest.approx([1e-3, 3.0])
    exact = ActorCriticMlp(1, 1, policy_layers=())
    with torch.no_grad():
        exact.policy_tower[0].weight.fill_(1.0)
        exact.policy_tower[0].bias.zero_()
    obs = torch.tensor([[3.0], [-3.0]])
    fit_spread(exact, obs, obs)
    assert exact.log_std.exp().item() == pytest.approx(0.03)


def test_same_seed_same_clone():
    one, two, other = (
        clone(demonstrations(), BCConfig(batch_size=16, epochs=3), seed=s) for s in (1, 1, 2)
    )
    assert same(weights(one.policy.network), weights(two.policy.network))
    assert one.train_loss == two.train_loss != other.train_loss


def test_observations_are_normalised_by_the_demonstrations(tmp_path):
    expert = gaussian_expert()
    policy = fresh_policy(expert, seed=0)
    network = policy.network
    assert network.obs_mean.item() == pytest.approx(3.0, abs=0.05)
    assert network.obs_std.item() == pytest.approx(0.5, abs=0.05)
    assert network.clip == 10.0
    assert np.abs(policy.mean(np.array([[3.0], [4.0]], np.float32))).max() < 0.1  # near zero
    save_policy(policy, tmp_path / "p", {})
    assert same(weights(load_saved(tmp_path / "p").network), weights(network))


def test_an_observation_that_never_changes_is_harmless():
    expert = gaussian_expert()
    obs = np.concatenate([expert.trajectories[0].obs, np.full((2001, 1), 7.0)], axis=1)
    episode = Trajectory(obs.astype(np.float32), expert.trajectories[0].actions, None, False, True)
    space = spaces.Box(-100.0, 100.0, (2,), np.float32)
    policy = fresh_policy(Demonstrations((episode,), space, expert.action_space, {}), seed=0)
    assert policy.network.obs_std[1] > 0
    assert np.isfinite(policy.mean(np.array([[3.0, 8.0]], np.float32))).all()


def test_likelihoods():
    network = ActorCriticMlp(2, 3, discrete=True)
    obs, actions = torch.randn(4, 2), torch.tensor([0, 1, 2, 0])
    logits = network.policy(obs)
    expected = -torch.distributions.Categorical(logits=logits).log_prob(actions)
    torch.testing.assert_close(negative_log_likelihood(network, obs, actions), expected)


def test_misuse():
    with pytest.raises(DemonstrationError, match=r"80 demonstrated.*8 of them held out.*of 256"):
        clone(demonstrations())
    for options, message in (
        ({"epochs": 0}, "epochs must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"weight_decay": -1.0}, "weight_decay must not"),
    ):
        with pytest.raises(ConfigError, match=message):
            clone(demonstrations(), BCConfig(**options))
