"""Masks change exactly what is computed from the opponent's qpos."""

import numpy as np
import pytest

from aprl.envs import OpponentMask, make_vec, opponent_mask
from aprl.errors import ConfigError

# Entries of the observation that a mask may change, per game.
OPPONENT = {
    "RunToGoalAnts": [*range(107, 122)],
    "RunToGoalHumans": [*range(356, 380)],
    "YouShallNotPassHumans": [*range(356, 380)],
    "SumoAnts": [*range(107, 124), 135],
    "SumoHumans": [*range(356, 382), 393],
    "KickAndDefend": [*range(354, 378)],
}


def make(game, **masks):
    options = {"masks": {int(k[-1]): m for k, m in masks.items()}} if masks else {}
    venv = make_vec(f"multicomp/{game}-v1", 2, seed=1, num_threads=1, **options)
    return venv, venv.reset()


@pytest.mark.parametrize("agent", [0, 1])
@pytest.mark.parametrize("game", OPPONENT)
def test_only_the_opponents_entries_change(game, agent):
    _, truth = make(game)
    masked_venv, masked = make(game, **{f"agent{agent}": OpponentMask("debug")})
    changed = np.flatnonzero((truth[agent] != masked[agent]).all(axis=0))
    assert changed.tolist() == OPPONENT[game]
    np.testing.assert_array_equal(truth[1 - agent], masked[1 - agent])
    zeros = [np.zeros((2, *s.shape), np.float32) for s in masked_venv.action_spaces]
    plain, _ = make(game)
    for seen, true in zip(masked_venv.step(zeros)[0], plain.step(zeros)[0], strict=True):
        differing = np.flatnonzero((seen != true).any(axis=0)).tolist()
        assert differing in ([], OPPONENT[game])


def test_what_each_type_shows():
    ants = slice(107, 122)
    qpos0 = make("SumoAnts")[0].model.qpos0[15:]
    for kind, shown in (
        ("zeros", np.zeros(15)),
        ("debug", np.full(15, -4.2)),
        ("initialization", qpos0),
    ):
        venv, obs = make("SumoAnts", agent0=OpponentMask(kind))
        np.testing.assert_allclose(obs[0][:, ants], np.tile(shown, (2, 1)), rtol=1e-6)
        own = venv.sim.qpos[:, 0:2]
        np.testing.assert_allclose(obs[0][:, 122:124], shown[:2] - own, rtol=1e-5)
        edge = venv.state.memory[:, 0] - np.hypot(*shown[:2])
        np.testing.assert_allclose(obs[0][:, 135], edge, rtol=1e-6)
        # the same in every episode
        np.testing.assert_array_equal(venv.reset()[0][:, ants], obs[0][:, ants])


def test_noise_is_drawn_anew_and_has_the_given_size():
    venv, _ = make("RunToGoalAnts", agent1=OpponentMask("additive_noise", 0.5, seed=4))
    truth = venv.sim.qpos[:, :15]
    draws = np.array([venv.observe()[1][:, 107:122] - truth for _ in range(2000)])
    assert abs(draws.mean()) < 0.01
    np.testing.assert_allclose(draws.std(axis=0), 0.5, atol=0.04)
    assert not (draws[0] == draws[1]).any()


def test_noise_is_seeded_and_saved_with_the_game():
    def run(venv, n):
        return [venv.observe()[0] for _ in range(n)]

    first, _ = make("RunToGoalAnts", agent0=OpponentMask("additive_noise", 1.0, seed=7))
    second, _ = make("RunToGoalAnts", agent0=OpponentMask("additive_noise", 1.0, seed=7))
    np.testing.assert_array_equal(run(first, 3), run(second, 3))
    state = first.state_dict()
    expected = run(first, 3)
    second.load_state_dict(state)
    np.testing.assert_array_equal(run(second, 3), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masking_type": "blind"}, "unknown masking type 'blind'"),
        ({"masking_type": "additive_noise"}, "needs a noise_magnitude"),
        ({"masking_type": "additive_noise", "noise_magnitude": -1}, "at least 0, got -1"),
        ({"masking_type": "additive_noise", "noise_magnitude": float("nan")}, "got nan"),
        ({"masking_type": "additive_noise", "noise_magnitude": "big"}, "got 'big'"),
        ({"masking_type": "zeros", "noise_magnitude": 1.0}, "has no noise"),
        ({"type": "zeros"}, "unknown entry of the mask 'type'"),
    ],
)
def test_unusable_masks_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        opponent_mask(options)


def test_only_players_can_be_masked():
    with pytest.raises(ConfigError, match="agent 2 cannot be masked"):
        make("SumoAnts", agent2=OpponentMask())
