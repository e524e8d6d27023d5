"""The runner counts what was sampled, evaluates exactly, and shows methods nothing else."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.methods import METHODS, make_method
from aprl.stackelberg.planning import policy_return
from aprl.stackelberg.runner import Run, run_method
from aprl.stackelberg.worlds import make_world
from tests.stackelberg.helpers import SpyEnv, corridor


class Scripted:
    """Reports a policy after each number of samples, and keeps what it was given."""

    def __init__(self, *script):
        self.script = script

    def learn(self, env, seed, report):
        self.env = env
        for samples, policy in self.script:
            while env.samples < samples:
                env.reset()
                env.step(0)
            report(np.array(policy))
        return "done"


def run(samples, returns, optimum=10.0):
    return Run(np.array(samples), np.array(returns), np.zeros(1), optimum, 9, 9, 0.0)


@pytest.mark.parametrize(
    ("returns", "solved_at"),
    [
        ([1.0, 9.9, 10.0], 3),
        ([9.95, 9.9, 10.0], 0),
        ([9.95, 9.89, 10.0], 7),
        ([10.0, 10.0, 9.8], np.inf),
    ],
)
def test_solved_means_within_one_percent_to_the_end(returns, solved_at):
    assert run([0, 3, 7], returns).solved_at == solved_at


def test_one_percent_of_a_negative_optimum():
    assert run([0], [-10.1], optimum=-10.0).solved_at == 0
    assert run([0], [-10.2], optimum=-10.0).solved_at == np.inf


def test_returns_between_reports():
    read = run([2, 5], [1.0, 4.0]).returns_at(np.array([0, 2, 4, 5, 9]))
    assert np.isnan(read[0]) and read[1:].tolist() == [1, 1, 4, 4]


def test_returns_are_exact_and_the_last_report_at_a_count_wins():
    world = corridor()
    method = Scripted((0, [0, 0, 0]), (3, [0, 0, 0]), (3, [1, 0, 0]))
    result = run_method(method, world, 10, 0)
    assert result.samples.tolist() == [0, 3] and result.returns.tolist() == [0.0, 1.0]
    assert result.policy.tolist() == [1, 0, 0] and result.result == "done"
    assert result.used == 3 and result.optimum == 1.0
    assert isinstance(method.env, CountedEnv)


def test_budget_ends_a_run():
    result = run_method(Scripted((0, [0, 0, 0]), (99, [1, 0, 0])), corridor(), 10, 0)
    assert result.used == 10 and result.result is None and result.returns.tolist() == [0.0]


def test_horizon_beyond_the_budget_is_unreachable():
    with pytest.raises(ConfigError, match="horizon of 50 steps is unreachable with a budget of 49"):
        run_method(Scripted(), make_world("trap"), 49, 0)


@pytest.mark.parametrize("name", [name for name, spec in METHODS.items() if spec.compared])
def test_every_method_pays_for_each_step_and_is_judged_exactly(name):
    world = make_world("simple_mdp_2")
    spy = SpyEnv(world, seed=1)
    result = run_method(make_method(name), world, 60, 1, env=spy)
    assert result.used == spy.steps == 60
    assert (np.diff(result.samples) > 0).all() and result.samples[-1] <= 60
    assert result.final_return == pytest.approx(policy_return(world, result.policy))
    assert result.returns.max() <= result.optimum + 1e-9


@pytest.mark.parametrize("name", ["mal_tabular", "dyna_q_plus", "psrl", "ppo_tuned", "mal"])
def test_same_seed_same_curve(name):
    one, same = (run_method(make_method(name), make_world("trap"), 120, 5) for _ in range(2))
    assert (one.samples == same.samples).all() and (one.returns == same.returns).all()
