"""The potentials that a config can ask for."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError, PolicyError
from aprl.policies import save_policy
from aprl.reward_preprocessing.trainable_potentials import make_potential
from aprl.rewards.potentials import CriticPotential, LinearPotential, TabularPotential
from tests.rewards.potentials.test_potentials import critic_policy

BOX = spaces.Box(-np.inf, np.inf, (3,), np.float32)


def test_making_by_name(tmp_path):
    assert isinstance(make_potential("tabular", spaces.Discrete(4)), TabularPotential)
    assert isinstance(make_potential("linear", BOX), LinearPotential)
    mlp = make_potential("mlp", BOX, {"num_hidden": 4, "hidden_size": 128})
    assert len(mlp.mlp.layers) == 9
    path = save_policy(critic_policy(), tmp_path / "agent", {})
    critic = make_potential("critic", BOX, {"agent_path": str(path)})
    assert isinstance(critic, CriticPotential)


@pytest.mark.parametrize(
    ("kind", "space", "options", "message"),
    [
        ("tabulr", BOX, {}, "did you mean 'tabular'"),
        ("sinusoid", BOX, {}, "unknown potential"),
        ("tabular", BOX, {}, "numbered states"),
        ("linear", spaces.Discrete(3), {}, "states that are vectors"),
        ("mlp", BOX, {"depth": 3}, "potential_options of a mlp potential"),
        ("mlp", BOX, {"num_hidden": 0}, "num_hidden must be a positive integer"),
        ("critic", BOX, {}, "agent_path"),
    ],
)
def test_what_cannot_be_made(kind, space, options, message):
    with pytest.raises(ConfigError, match=message):
        make_potential(kind, space, options)


def test_a_critic_of_another_environment(tmp_path):
    path = save_policy(critic_policy(), tmp_path / "agent", {})
    with pytest.raises(PolicyError, match="another environment"):
        make_potential("critic", spaces.Box(-1, 1, (4,)), {"agent_path": str(path)})
