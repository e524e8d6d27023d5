"""Model-free PPO."""

from aprl.stackelberg.baselines.ppo import ModelFreePPO, PPOConfig
from aprl.stackelberg.runner import run_method
from tests.stackelberg.helpers import coin


def test_ppo_solves_a_coin_and_reports_after_each_update():
    config = PPOConfig({"n_steps": 40, "learning_rate": 0.01, "n_epochs": 4})
    run = run_method(ModelFreePPO(config), coin(), 800, 0)
    assert run.near_optimal[-1] and run.policy.tolist() == [1, 1]
    assert run.samples.tolist() == list(range(0, 801, 40))
