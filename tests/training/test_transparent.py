"""Activations of an embedded player in the infos, environment by environment."""

import numpy as np
import pytest

from aprl.errors import ConfigError
from aprl.policies import RandomPolicy
from aprl.training.embedding import CurryVecEnv
from aprl.training.transparent import TRANSPARENCY_KEYS, TransparentCurryVecEnv
from tests.training.attacks.helpers import actions_for, line, network_policy


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_each_environment_gets_its_own_activations(kind):
    keys = ["obs", "ff_policy", "ff_value"] + (["hid"] if kind == "lstm" else [])
    venv = TransparentCurryVecEnv(line(), network_policy(kind), 0, keys)
    policy, state, starts = network_policy(kind), None, np.ones(3, bool)
    venv.reset()
    for action in actions_for(3, 15):
        seen = venv.embedded_obs.copy()
        hidden = policy.hidden(seen, state, starts)
        _, state = policy.predict(seen, state, starts)
        _, _, starts, infos = venv.step([action])
        for env, info in enumerate(infos):
            entry = info[0]
            np.testing.assert_array_equal(entry["obs"], seen[env])
            for key in ("ff_policy", "ff_value"):
                np.testing.assert_allclose(entry[key], hidden[key][env], rtol=1e-5)
            if kind == "lstm":
                np.testing.assert_allclose(entry["hid"], state[env].ravel(), rtol=1e-5)
                assert entry["hid"].shape == (12,)
    widths = {"mlp": (7, 5), "lstm": (3, 3)}[kind]
    assert (len(entry["ff_policy"]), len(entry["ff_value"])) == widths


def test_looking_changes_nothing():
    looked = TransparentCurryVecEnv(line(), network_policy("lstm"), 0, ["ff_policy"])
    plain = CurryVecEnv(line(), network_policy("lstm"), 0)
    looked.reset()
    plain.reset()
    for action in actions_for(3, 15):
        ours, theirs = looked.step([action]), plain.step([action])
        np.testing.assert_array_equal(ours[0][0], theirs[0][0])
        assert set(ours[3][0][0]) - {"ff_policy"} == set(theirs[3][0].get(0, {}))


@pytest.mark.parametrize(
    ("keys", "message"),
    [(["ff_polcy"], "transparency key 'ff_polcy'.*ff_policy"), (["hid"], "'hid' is the recurrent")],
)
def test_unknown_keys_are_refused(keys, message):
    with pytest.raises(ConfigError, match=message):
        TransparentCurryVecEnv(line(), network_policy(), 0, keys)


def test_only_networks_can_be_looked_into():
    game = line()
    policy = RandomPolicy(game.observation_spaces[0], game.action_spaces[0])
    with pytest.raises(ConfigError, match="RandomPolicy has no activations"):
        TransparentCurryVecEnv(game, policy, 0, TRANSPARENCY_KEYS[:1])
