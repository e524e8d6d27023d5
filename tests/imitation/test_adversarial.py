"""GAIL and AIRL as a whole: schedules, speed, seeds, resumption, guards."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from aprl.errors import AprlError, ConfigError, DemonstrationError
from aprl.imitation.adversarial import AdversarialConfig, AdversarialTrainer, default_reward_net
from aprl.imitation.discriminator import DiscriminatorConfig
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.generator import TransitionRecorder
from aprl.rewards import ShapedRewardNet
from aprl.training.checkpoints import load_state, save_state
from aprl.training.random_state import global_random_state
from tests.imitation.helpers import demonstrations, linear, ppo, sac, same, weights

DISC = DiscriminatorConfig(batch_size=32, updates_per_round=3)
EXPERT = demonstrations().trajectories
PENDULUM = demonstrations("Pendulum-v1").trajectories


class Rows(KVWriter):
    def __init__(self):
        self.rows = []

    def write(self, key_values, key_excluded, step=0):
        self.rows.append(dict(key_values))

    def close(self):
        pass


def make(algorithm="gail", generator=None, expert=EXPERT, seed=0, **options):
    config = AdversarialConfig(algorithm=algorithm, discriminator=DISC, **options)
    trainer = AdversarialTrainer(generator or ppo(seed=seed), expert, config, seed=seed)
    rows = Rows()
    trainer.generator.set_logger(Logger(None, [rows]))
    return trainer, rows.rows


CASES = {
    "GAIL, PPO": lambda: make("gail"),
    "AIRL, PPO": lambda: make("airl"),
    "AIRL with entropy, Gaussian PPO": lambda: make(
        "airl", ppo("Pendulum-v1"), PENDULUM, reward_transform="airl_with_entropy"
    ),
    "GAIL, SAC": lambda: make("gail", sac(), PENDULUM, round_timesteps=40),
    "AIRL with entropy, SAC": lambda: make(
        "airl", sac(), PENDULUM, round_timesteps=40, reward_transform="airl_with_entropy"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rates_are_those_of_the_whole_run(case):
    trainer, rows = CASES[case]()
    trainer.train(400)
    assert trainer.round == 10 and trainer.generator.num_timesteps == 400
    rates = [row["train/learning_rate"] for row in rows]
    assert rates == pytest.approx([linear(1 - 40 * r / 400) for r in range(1, 11)])
    assert rates[0] > 0
    assert trainer.reward.norm.count == 400, "the reward's statistics moved in every round"
    assert all(row["discriminator/loss"] > 0 for row in rows)
    assert [row["time/rounds"] for row in rows] == list(range(1, 11))


@pytest.mark.parametrize("case", CASES)
def test_same_seed_same_weights_and_nothing_else_is_touched(case):
    ends = []
    for disturbance in (0, 1):
        trainer, _ = CASES[case]()
        torch.manual_seed(disturbance)
        np.random.seed(disturbance)  # noqa: NPY002
        before = global_random_state()
        trainer.train(160)
        after = global_random_state()
        assert torch.equal(before["torch"], after["torch"])
        np.testing.assert_array_equal(before["numpy"]["keys"], after["numpy"]["keys"])
        assert before["python"] == after["python"]
        ends.append((weights(trainer.generator.policy), weights(trainer.reward.net)))
    assert same(ends[0][0], ends[1][0]) and same(ends[0][1], ends[1][1])


@pytest.mark.parametrize("case", CASES)
def test_resumed_equals_uninterrupted(tmp_path, case):
    trainer, rows = CASES[case]()

    def save(trainer):
        if trainer.round == 4:
            state = {
                "trainer": trainer.state_dict(),
                "environment": trainer.recorder.venv.state_dict(),
            }
            save_state(tmp_path / "state", state)

    trainer.train(320, on_round=save)
    resumed, later_rows = CASES[case]()
    resumed.generator.get_env().reset()
    state = load_state(tmp_path / "state")
    resumed.recorder.venv.load_state_dict(state["environment"])
    resumed.load_state_dict(state["trainer"])
    with pytest.raises(ConfigError, match=r"stands at 160 of 320 steps"):
        resumed.train(640, resume=True)
    resumed.train(320, resume=True)
    assert resumed.round == trainer.round == 8
    for part in (lambda t: t.generator.policy, lambda t: t.reward.net, lambda t: t.reward.norm):
        assert same(weights(part(resumed)), weights(part(trainer)))
    clock = {"time/fps", "time/time_elapsed", "time/steps_per_second"}
    for ours, theirs in zip(later_rows, rows[4:], strict=True):
        assert {k: v for k, v in ours.items() if k not in clock} == {
            k: v for k, v in theirs.items() if k not in clock
        }


def test_steps_per_second_agree_with_the_clock():
    trainer, rows = make()
    started, shares = time.perf_counter(), []

    def slow(trainer):
        time.sleep(0.05)

    trainer.reward.update = lambda _: time.sleep(0.02)  # stands in for a costly discriminator
    trainer.train(
        400,
        on_round=lambda t: (
            shares.append(
                rows[-1]["time/steps_per_second"]
                * (time.perf_counter() - started)
                / t.generator.num_timesteps
            )
            or slow(t)
        ),
    )
    assert shares[1:] == pytest.approx([1.0] * 9, rel=0.05)
    assert rows[-1]["time/fps"] == pytest.approx(rows[-1]["time/steps_per_second"], rel=0.05)


def test_generator_is_paid_what_the_discriminator_says():
    trainer, _ = make("gail", normalize_reward=False)
    seen = {}
    learn = trainer.generator.train

    def watch():
        buffer = trainer.generator.rollout_buffer
        seen["rewards"] = buffer.rewards.copy()
        seen["advantages"] = buffer.advantages.copy()
        seen["values"] = buffer.values.copy()
        learn()

    trainer.generator.train = watch
    paid = {}
    original = trainer.train_discriminator
    trainer.train_discriminator = lambda: paid.setdefault("rewards", original())
    trainer.train(40)
    expected = paid["rewards"].reshape(20, 2).copy()
    assert (expected > 0).all()  # softplus
    # Horizon 20: both episodes are cut off in the last step; the value stands in for the rest.
    gamma = trainer.generator.gamma
    np.testing.assert_allclose(seen["rewards"][:-1], expected[:-1], rtol=1e-5)
    cut_off = seen["rewards"][-1] - expected[-1]
    assert (np.abs(cut_off) > 0).all()
    delta = seen["rewards"][-2] + gamma * seen["values"][-1] - seen["values"][-2]
    lam = trainer.generator.gae_lambda
    np.testing.assert_allclose(
        seen["advantages"][-2], delta + gamma * lam * seen["advantages"][-1], rtol=1e-4, atol=1e-5
    )


def test_other_on_policy_generators_and_dqn():
    recorder = TransitionRecorder(GymVecEnv("CartPole-v1", 2, horizon=20))
    a2c = A2C("MlpPolicy", recorder, n_steps=10, learning_rate=linear, device="cpu", seed=0)
    trainer, rows = make("airl", a2c)
    trainer.train(100)
    assert [row["train/learning_rate"] for row in rows] == pytest.approx(
        [linear(1 - r / 5) for r in range(1, 6)]
    )
    dqn = DQN("MlpPolicy", TransitionRecorder(GymVecEnv("CartPole-v1", 2, horizon=20)))
    trainer, rows = make("gail", dqn)
    assert trainer.round_timesteps == 1000
    with pytest.raises(ConfigError, match="DQN has none"):
        make("airl", dqn)


def test_a_callback_or_a_round_can_stop_it():
    class Stop(BaseCallback):
        def _on_step(self):
            return self.num_timesteps < 100

    trainer, _ = make()
    trainer.train(400, callback=Stop())
    assert trainer.generator.num_timesteps == 100 and trainer.round == 2
    trainer, _ = make()
    trainer.train(400, on_round=lambda t: t.round < 3)
    assert trainer.round == 3


def test_shaping_discounts_as_the_learner_does():
    trainer, _ = make("airl", ppo(gamma=0.9))
    assert isinstance(trainer.reward.net, ShapedRewardNet) and trainer.reward.net.gamma == 0.9
    generator = ppo(gamma=0.9)
    net = default_reward_net(
        "airl", generator.observation_space, generator.action_space, gamma=0.99
    )
    with pytest.raises(ConfigError, match=r"gamma 0\.99, the generator learns with 0\.9"):
        AdversarialTrainer(generator, EXPERT, AdversarialConfig("airl", discriminator=DISC), net)


def test_variable_horizons():
    with pytest.raises(DemonstrationError, match=r"the demonstrated episodes.*5 to 20"):
        make(expert=[EXPERT[0], replace(EXPERT[1], **_cut(EXPERT[1], 5))])
    trainer, _ = make(generator=ppo(horizon=None))  # CartPole's poles fall, the expert's do not
    with pytest.raises(DemonstrationError, match="the expert's and the generator's"):
        trainer.train(400)
    allowed, rows = make(generator=ppo(horizon=None), allow_variable_horizon=True)
    allowed.train(400)
    assert allowed.round == 10 and allowed.reward.centre is False
    assert rows[0]["discriminator/reward_always_positive"] == 1  # the log says which way it leans


def _cut(trajectory, steps):
    return {
        "obs": trajectory.obs[: steps + 1],
        "actions": trajectory.actions[:steps],
        "rewards": trajectory.rewards[:steps],
    }


def test_misuse():
    with pytest.raises(ConfigError, match="'gial'; did you mean 'gail'"):
        make("gial")
    with pytest.raises(ConfigError, match="round_timesteps is 50, but a rollout"):
        make(round_timesteps=50)
    with pytest.raises(DemonstrationError, match="no demonstrations"):
        make(expert=[])
    with pytest.raises(DemonstrationError, match="20 demonstrated transitions are fewer"):
        make(expert=EXPERT[:1])
    with pytest.raises(AprlError, match="shape"):
        make(expert=PENDULUM)
    pendulum = GymVecEnv("Pendulum-v1", 1)
    net = default_reward_net("gail", pendulum.observation_space, pendulum.action_space, gamma=0.99)
    with pytest.raises(ConfigError, match="made for other spaces"):
        AdversarialTrainer(ppo(), EXPERT, AdversarialConfig(discriminator=DISC), net)


def test_a_reward_that_is_not_finite_stops_the_training():
    trainer, _ = make()
    with torch.no_grad():
        trainer.reward.net.mlp.layers[0].weight.fill_(torch.nan)
    with pytest.raises(AprlError, match="not finite"):
        trainer.train(40)
