"""The cheating example, exactly."""

import numpy as np
import pytest

from aprl.stackelberg.cheating import all_cheats, cheat, lying_model, main
from aprl.stackelberg.planning import best_response, policy_return, visit_probabilities
from aprl.stackelberg.worlds import make_world


def test_losses_of_the_four_followers():
    cheats = {tuple(c.policy[:2].tolist()): c for c in all_cheats(make_world("simple_mdp_2"))}
    losses = {actions: c.l2 for actions, c in cheats.items()}
    expected = {(1, 0): 0.210, (0, 0): 0.210, (0, 1): 0.558, (1, 1): 0.020}
    assert losses == pytest.approx(expected, abs=0.01)
    assert all(c.kl == 0 and c.works for c in cheats.values())
    assert cheats[1, 0].true_return == pytest.approx(0.9875)
    assert cheats[1, 1].true_return == pytest.approx(36.45)


@pytest.mark.parametrize("name", ["simple_mdp_2", "ergodic_mdp_2", "mdp_erg_det_3"])
def test_lies_are_told_only_where_the_follower_never_is(name):
    world = make_world(name)
    for entry in all_cheats(world):
        visited = visit_probabilities(world, entry.policy).sum(axis=0).ravel() > 0
        assert (entry.model.transitions[visited] == world.transitions[visited]).all()


def test_follower_of_the_liar_leaves_at_once():
    world = make_world("simple_mdp_2")
    leave = np.array([1, 0, 0])
    response = best_response(lying_model(world, leave)).actions
    assert policy_return(world, response) == pytest.approx(0.9875)
    assert cheat(world, leave).kl == 0


def test_command(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "0.2089" in out and "36.4500" in out
