"""A reward is the same in imitation and in preprocessing, whichever made its file."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.imitation.adversarial import AdversarialConfig, AdversarialTrainer
from aprl.imitation.config import ImitationConfig
from aprl.imitation.demonstrations import save_demonstrations
from aprl.imitation.discriminator import DiscriminatorConfig
from aprl.imitation.reward import LearnedReward
from aprl.imitation.run import start_run
from aprl.reward_preprocessing.configs import RolloutsConfig
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.preprocess import PreprocessConfig, preprocess_model
from aprl.rewards import (
    MlpRewardNet,
    ShapedRewardNet,
    load_reward_net,
    save_reward_net,
)
from aprl.rewards.potentials import LinearPotential
from tests.imitation.helpers import demonstrations, ppo, same, transitions, weights
from tests.outputs import assert_same_outputs

CARTPOLE = spaces.Box(-np.inf, np.inf, (4,), np.float32), spaces.Discrete(2)


def learned_by_imitation(tmp_path, algorithm):
    expert = save_demonstrations(demonstrations(), tmp_path / "expert.npz")
    config = ImitationConfig(
        algorithm=algorithm,
        demonstrations=str(expert),
        root_dir=str(tmp_path / "imitation"),
        horizon=20,
        num_env=2,
        batch_size=40,
        total_timesteps=120,
        rl_args={"n_epochs": 1, "nminibatches": 2},
        disc_batch_size=32,
        disc_updates=3,
        eval_episodes=0,
        progress=False,
    )
    run = start_run(config)
    run.train()
    return run


def preprocessed(tmp_path, model_path, **changes):
    config = PreprocessConfig(
        env=EnvConfig(name="CartPole-v1"),
        rollouts=RolloutsConfig(rollouts=[{"random_prob": 1.0}], steps=200),
        model_path=str(model_path),
        save_path=str(tmp_path / "readable"),
        objectives=["sparse_l1"],
        potential="linear",
        progress=False,
        **changes,
    )
    return preprocess_model(config)


@pytest.mark.parametrize("algorithm", ["gail", "airl"])
@pytest.mark.parametrize("model_format", ["pt", "safetensors"])
def test_a_reward_learned_by_imitation_is_preprocessed(tmp_path, algorithm, model_format):
    run = learned_by_imitation(tmp_path, algorithm)
    files = preprocessed(tmp_path, run.run_dir, model_format=model_format)
    certificate = files.certificates["sparse_l1"]
    assert certificate.passed and certificate.objective_after < certificate.objective_before
    rows = transitions(50)
    columns = (rows.obs, rows.actions, rows.next_obs, rows.terminated)
    trained = run.trainer.reward.net.predict(*columns)
    direct, unmodified = map(load_reward_net, (run.run_dir, files.models["unmodified"]))
    for net in (direct, unmodified):
        assert_same_outputs(net.predict(*columns), trained)
        assert same(weights(net), weights(run.trainer.reward.net))
    readable = load_reward_net(files.models["sparse_l1"])
    phi = [readable.potential.of(states) for states in (rows.obs, rows.next_obs)]
    assert_same_outputs(readable.predict(*columns), trained + 0.99 * phi[1] - phi[0])


def test_a_preprocessed_reward_pays_and_trains_a_generator(tmp_path):
    generator = ppo()
    spaces_of = generator.observation_space, generator.action_space
    source = save_reward_net(MlpRewardNet(*spaces_of), tmp_path / "mlp.pt")
    path = preprocessed(tmp_path, source).models["sparse_l1"]
    net, rows = load_reward_net(path), transitions(50)
    pays = LearnedReward(net, "logit", None, normalize=False)
    columns = (rows.obs, rows.actions, rows.next_obs, rows.terminated)
    assert_same_outputs(pays(rows), net.predict(*columns).astype(np.float32))
    before = weights(net)
    config = AdversarialConfig(
        "gail", discriminator=DiscriminatorConfig(32, 3, gradient_penalty=1.0)
    )
    trainer = AdversarialTrainer(generator, demonstrations().trajectories, config, net)
    trainer.train(80)
    assert trainer.round == 2
    changed = [name for name, value in weights(net).items() if (value != before[name]).any()]
    assert {"base.mlp.layers.0.weight", "potential.weight"} <= set(changed)
    again = load_reward_net(save_reward_net(net, tmp_path / "trained.safetensors"))
    assert_same_outputs(again.predict(*columns), net.predict(*columns))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_precisions_mix(precision):
    net = ShapedRewardNet(MlpRewardNet(*CARTPOLE, precision=precision), LinearPotential(4), 0.9)
    rows = transitions(20)
    columns = (rows.obs, rows.actions, rows.next_obs, rows.terminated)
    assert_same_outputs(net(*net.encode(*columns)).detach(), net.predict(*columns))
    assert net.predict(*columns).dtype == np.float64
