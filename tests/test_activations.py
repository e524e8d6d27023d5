"""What a player's network computes, recorded while it is scored."""

import numpy as np
import pytest
from gymnasium import spaces

from aprl.activations import (
    ActivationRecorder,
    WatchedPolicy,
    load_activations,
    save_activations,
)
from aprl.errors import ConfigError, RunError
from aprl.policies.recurrent import ActorCriticLstm, LstmPolicy
from aprl.policies.simple import ZeroPolicy
from aprl.score_agent import ScoreConfig, score

ANTS = {
    "env_name": "multicomp/RunToGoalAnts-v1",
    "agent_a_type": "ppo",
    "agent_a_path": "data/victims/RunToGoalAnts-v1",
    "agent_b_type": "zero",
    "agent_b_path": "none",
    "num_env": 2,
    "episodes": 3,
    "max_episode_steps": 20,
}


def test_scoring_records_the_victim_s_hidden_units(tmp_path):
    path = tmp_path / "a.npz"
    watched = score(ScoreConfig(**ANTS, activations=str(path), activation_keys=["obs", "ff_value"]))
    assert watched == score(ScoreConfig(**ANTS)), "looking changes nothing"
    found = load_activations(path)
    assert found.lengths.sum() == watched.mean_length * 3
    assert set(found.values) == {"obs", "ff_value"}
    assert found.values["ff_value"].shape == (found.lengths.sum(), 128)
    assert [len(e) for e in found.episodes("obs")] == found.lengths.tolist()
    assert found.provenance["agent_index"] == 0
    assert found.provenance["opponent"] == {"type": "zero", "path": "none"}


def test_hidden_units_belong_to_the_observation_beside_them(tmp_path):
    path = tmp_path / "a.npz"
    keys = ["obs", "ff_policy"]
    score(ScoreConfig(**ANTS, activations=str(path), activation_keys=keys))
    from aprl.policies.loader import load_policy

    found = load_activations(path)
    policy = load_policy(
        "ppo",
        ANTS["agent_a_path"],
        observation_space=spaces.Box(-np.inf, np.inf, found.values["obs"].shape[1:]),
        action_space=spaces.Box(-1, 1, (8,)),
        env_name=ANTS["env_name"],
        index=0,
    )
    again = policy.hidden(found.values["obs"])["ff_policy"]
    np.testing.assert_allclose(again, found.values["ff_policy"], atol=1e-5)


def recurrent_policy():
    box = spaces.Box(-1, 1, (3,), np.float32)
    return LstmPolicy(ActorCriticLstm(3, 3), box, box)


def test_recurrent_state_is_the_one_after_the_step():
    watched = WatchedPolicy(recurrent_policy(), ["hid"])
    obs = np.full((2, 3), 0.5, np.float32)
    _, state = watched.predict(obs, watched.initial_state(2), np.ones(2, bool))
    np.testing.assert_allclose(watched.seen["hid"], state.reshape(2, -1), atol=1e-6)


def test_episodes_do_not_mix_and_unfinished_ones_are_left_out():
    watched = WatchedPolicy(recurrent_policy(), ["obs"])
    recorder = ActivationRecorder(watched, 2)
    state = watched.initial_state(2)
    for step in range(5):
        obs = np.array([[step, 0, 0], [step, 1, 1]], np.float32)
        _, state = watched.predict(obs, state, np.zeros(2, bool))
        dones = np.array([step in (1, 3), step == 4])
        keep = np.array([True, True])
        recorder((obs, obs), [obs, obs], np.zeros((2, 2)), dones, [{}, {}], keep)
    found = recorder.result({})
    assert found.lengths.tolist() == [2, 2, 5]
    firsts = [episode[:, 0].tolist() for episode in found.episodes("obs")]
    assert firsts == [[0, 1], [2, 3], [0, 1, 2, 3, 4]]
    assert [set(episode[:, 1]) for episode in found.episodes("obs")] == [{0}, {0}, {1}]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"activations": "a.json"}, "activations must name an .npz"),
        ({"activations": "a.npz", "activation_keys": ["ff_polcy"]}, "ff_policy"),
        ({"activations": "a.npz", "activation_keys": []}, "no transparency key"),
        ({"activations": "a.npz", "activation_keys": ["hid"]}, "recurrent state"),
        ({"activations": "a.npz", "record_agent": 1}, "type zero has no activations"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tmp_path, monkeypatch, entries, message):
    entries = {k: str(tmp_path / v) if k == "activations" else v for k, v in entries.items()}
    with pytest.raises(ConfigError, match=message):
        score(ScoreConfig(**ANTS | entries))
    assert not list(tmp_path.iterdir())


def test_policies_without_a_network_cannot_be_watched():
    box = spaces.Box(-1, 1, (3,), np.float32)
    with pytest.raises(ConfigError, match="no activations"):
        WatchedPolicy(ZeroPolicy(box, box), ["obs"])


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(RunError, match="no such file"):
        load_activations(path)
    watched = WatchedPolicy(recurrent_policy(), ["obs"])
    recorder = ActivationRecorder(watched, 1)
    watched.predict(np.zeros((1, 3), np.float32), watched.initial_state(1), np.ones(1, bool))
    recorder((), [], np.zeros((2, 1)), np.array([True]), [{}], np.array([True]))
    save_activations(recorder.result({}), path)
    assert load_activations(path).lengths.tolist() == [1]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match=r"a\.npz"):
        load_activations(path)
    np.savez(path, lengths=np.ones(1))
    with pytest.raises(RunError, match="header is missing"):
        load_activations(path)
    np.savez(path, header=np.array({"format": "x"}, dtype=object))
    with pytest.raises(RunError, match=r"a\.npz"):
        load_activations(path)
