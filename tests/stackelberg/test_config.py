"""Options of the commands are checked before anything starts."""

import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.config import CompareConfig, StackelbergConfig, default_budget


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "mal_tabula"}, "did you mean 'mal_tabular'"),
        ({"world": "riverswimm6"}, "did you mean 'riverswim6'"),
        ({"horizon": 0}, "horizon"),
        ({"budget": 49}, "horizon of 50 steps is unreachable"),
        ({"horizon": 1000}, "horizon of 1000 steps is unreachable with a budget of 400"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed must be a whole number of at most 4294967295"),
        ({"exp_name": " "}, "exp_name is empty"),
        ({"options": {"initial_models": 401}}, "401 initial models .* with 400 samples"),
        ({"world": "random_s100000_a100"}, "at most 1,000,000 state-action pairs"),
        ({"oracle": "learnt"}, "did you mean 'learned'"),
        ({"oracle_path": "somewhere"}, "oracle=learned"),
        ({"oracle": "learned"}, "plans with bonuses"),
        ({"oracle": "learned", "method": "psrl"}, "psrl has no follower"),
        ({"options": {"initial_models": -1}}, "initial_models"),
        ({"options": {"stop": {"eps": 2.0}}}, "eps"),
        ({"pretrain": {"step": 3}}, "did you mean steps"),
        ({"pretrain": {"steps": 0}}, "steps"),
        ({"budget": "many"}, "budget must be"),
    ],
)
def test_training_options_that_cannot_work(values, message):
    with pytest.raises(ConfigError, match=message):
        StackelbergConfig(**values).resolve()


def test_training_defaults_are_filled_in():
    config = StackelbergConfig(world="riverswim6").resolve()
    assert config.budget == default_budget("riverswim6") == 2000
    assert config.exp_name == "mal_tabular-riverswim6"
    assert default_budget("random_s20_a4") == 3000
    fitting = StackelbergConfig(oracle="learned", method="mal_posterior").resolve()
    assert fitting.oracle == "learned"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"methods": ["mal_tabular", "ucb"]}, "'ucb'"),
        ({"worlds": ["simple_mdp"]}, "did you mean 'simple_mdp_"),
        ({"methods": []}, "at least one"),
        ({"worlds": ["trap", "trap"]}, "twice"),
        ({"budgets": {"trap": 100}}, "'trap'"),
        ({"budgets": {"riverswim6": 10}}, "unreachable"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": 2, "seed": 2**32 - 1}, "seed must be .* at most 4294967294"),
        ({"root_dir": ""}, "root_dir is empty"),
        ({"processes": -1}, "processes"),
    ],
)
def test_comparison_options_that_cannot_work(values, message):
    with pytest.raises(ConfigError, match=message):
        CompareConfig(**values).resolve()


def test_comparison_defaults_are_filled_in():
    config = CompareConfig().resolve()
    assert len(config.worlds) == 5 and config.processes >= 1
    assert config.budgets["riverswim6"] == 2000 and len(config.budgets) == 5
    assert "mal_tabular" in config.methods and "mal_published" not in config.methods
