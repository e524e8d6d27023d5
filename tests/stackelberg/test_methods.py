"""Methods by name."""

import pytest

from aprl.errors import ConfigError
from aprl.stackelberg.mal_tabular import TabularMal
from aprl.stackelberg.methods import DEFAULT_METHOD, METHODS, make_method
from aprl.stackelberg.stopping import StoppingRule


@pytest.mark.parametrize("name", METHODS)
def test_every_name_builds(name):
    assert isinstance(make_method(name), METHODS[name].kind)


def test_default_is_tabular_mal_with_the_value_bonus():
    method = make_method(DEFAULT_METHOD)
    assert isinstance(method, TabularMal) and method.config.unseen == "value_bonus"


def test_options_override_those_of_the_registry():
    method = make_method("mal_fixed", {"initial_models": 16, "stop": {"eps": 0.01}})
    assert method.config.initial_models == 16 and method.config.unseen == "fixed"
    assert method.config.stop == StoppingRule(eps=0.01)


def test_unknown_method_names_near_ones():
    with pytest.raises(ConfigError, match=r"'dynaq'; did you mean 'dyna_q'"):
        make_method("dynaq")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial_model": 4}, "did you mean initial_models"),
        ({"stop": {"epss": 0.1}}, "did you mean eps"),
        ({"stop": {"eps": 7.0}}, r"eps must be in \[0, 1\], got 7.0"),
        ({"stop": {"eps": "x"}}, r"eps must be in \[0, 1\], got 'x'"),
        ({"initial_models": -2}, "initial_models"),
        ({"noise": "much"}, r"noise must be in \[0, 1\], got 'much'"),
    ],
)
def test_options_that_cannot_work(options, message):
    with pytest.raises(ConfigError, match=message):
        make_method("mal_tabular", options)


def test_learned_follower_only_where_there_is_one():
    with pytest.raises(ConfigError, match="dyna_q has no follower"):
        make_method("dyna_q", {}, lambda task: None)
