from pathlib import Path

import numpy as np
import pytest

from aprl.errors import ConfigError, PolicyError
from aprl.policies import ZOO_GAMES, MlpPolicy, zoo_directory
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.unpickle import read_array_pickle
from aprl.policies.zoo import decode_lstm, decode_mlp, lstm_size, mlp_size

from .helpers import action_box, observation_box, observations

RECURRENT = ("KickAndDefend_agent1_v1", "KickAndDefend_agent2_v2")
RECURRENT += ("SumoAnts_any_v2", "SumoHumans_any_v1")
FEEDFORWARD = ("YouShallNotPassHumans_agent1_v1", "YouShallNotPassHumans_agent2_v1")
FEEDFORWARD += ("RunToGoalAnts_agent1_v1",)


@pytest.mark.parametrize("name", FEEDFORWARD)
def test_published_networks_give_the_recorded_outputs(name, shared_dir):
    recorded = np.load(shared_dir / "vectors" / f"zoo_{name}.npz")
    game, agent, version = name.split("_")
    entry = ZOO_GAMES[game]
    path = shared_dir / "agent_zoo" / f"{game}-v0" / f"{agent}_parameters-{version}.pkl"
    network = decode_mlp(read_array_pickle(path), entry.obs_dim, entry.act_dim)
    spaces = observation_box(entry.obs_dim), action_box(entry.act_dim, entry.action_bound)
    policy = MlpPolicy(network, *spaces)
    np.testing.assert_allclose(policy.mean(recorded["obs"]), recorded["mean"], atol=1e-5, rtol=1e-5)
    scale = float(recorded["ret_std"])  # the value head itself agrees to 1e-5
    np.testing.assert_allclose(
        policy.value(recorded["obs"]), recorded["value"], atol=1e-5 * scale, rtol=1e-6
    )
    np.testing.assert_array_equal(network.log_std.detach().numpy(), recorded["logstd"])
    np.testing.assert_allclose(network.obs_mean.numpy(), recorded["obs_mean"], rtol=1e-6)
    np.testing.assert_allclose(network.obs_std.numpy(), recorded["obs_std"], rtol=1e-6)
    assert float(network.value_mean) == pytest.approx(float(recorded["ret_mean"]), rel=1e-6)
    assert float(network.value_std) == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize("name", RECURRENT)
def test_published_recurrent_networks_give_the_recorded_outputs(name, shared_dir):
    recorded = np.load(shared_dir / "vectors" / f"zoo_{name}.npz")
    game, agent, version = name.split("_")
    entry = ZOO_GAMES[game]
    file = f"{agent.replace('any', 'agent')}_parameters-{version}.pkl"
    path = shared_dir / "agent_zoo" / f"{game}-v0" / file
    network = decode_lstm(read_array_pickle(path), entry.obs_dim, entry.act_dim)
    spaces = observation_box(entry.obs_dim), action_box(entry.act_dim, entry.action_bound)
    policy = LstmPolicy(network, *spaces)
    obs, state = recorded["obs"], recorded["state"]
    assert state.any()
    mean, value = policy.mean(obs, state), policy.value(obs, state)
    np.testing.assert_allclose(mean, recorded["mean"], atol=1e-5, rtol=1e-5)
    scale = float(recorded["ret_std"])  # the value head itself agrees to 1e-5
    np.testing.assert_allclose(value, recorded["value"], atol=1e-5 * scale, rtol=1e-6)
    _, new = policy.predict(obs, state)
    np.testing.assert_allclose(new, recorded["next_state"], atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(network.log_std.detach().numpy(), recorded["logstd"])
    np.testing.assert_allclose(network.obs_mean.numpy(), recorded["obs_mean"], rtol=1e-6)
    np.testing.assert_allclose(network.obs_std.numpy(), recorded["obs_std"], rtol=1e-6)


def parts(obs_dim=5, act_dim=2, seed=0):
    """A flat vector as the published ones are, and the arrays that it is made of."""
    rng = np.random.default_rng(seed)

    def dense(a, b):
        return [rng.normal(0, 0.3, (a, b)), rng.normal(0, 0.1, b)]

    count, mean = 1000.0, rng.normal(0, 1, obs_dim)
    std = rng.uniform(0.5, 2, obs_dim)
    std[0] = 1e-3  # below the floor
    arrays = [np.array([300.0, 1090.0, 100.0])]  # mean 3, variance 10.9 - 9 = 1.9
    arrays += [count * mean, count * (mean**2 + std**2), np.array([count])]
    arrays += [*dense(obs_dim, 64), *dense(64, 64), *dense(64, 1)]
    arrays += [*dense(obs_dim, 64), *dense(64, 64), *dense(64, act_dim)]
    arrays += [rng.normal(-1, 0.1, act_dim)]
    flat = np.concatenate([np.ravel(a) for a in arrays]).astype(np.float32)
    return flat, arrays, mean, np.maximum(std, 0.1)


def test_the_order_of_the_flat_vector():
    flat, arrays, mean, std = parts()
    assert flat.shape == (mlp_size(5, 2),)
    network = decode_mlp(flat, 5, 2)
    policy = MlpPolicy(network, observation_box(5), action_box(2))
    obs = 4 * observations(20, 5)
    z = np.clip((obs - mean) / std, -5, 5)
    assert (np.abs(z) == 5).any()

    def run(w1, b1, w2, b2, w3, b3):
        return np.tanh(np.tanh(z @ w1 + b1) @ w2 + b2) @ w3 + b3

    np.testing.assert_allclose(
        policy.value(obs), run(*arrays[4:10])[:, 0] * 1.9**0.5 + 3, atol=1e-3
    )
    np.testing.assert_allclose(policy.mean(obs), run(*arrays[10:16]), atol=1e-3)
    np.testing.assert_allclose(network.log_std.detach(), arrays[16], rtol=1e-6)


def test_sizes_of_the_published_vectors():
    assert mlp_size(122, 8) == 24905
    assert mlp_size(380, 17) == 59039
    assert lstm_size(137, 8) == 299943
    assert lstm_size(395, 17) == 367677
    assert lstm_size(384, 17) == 364839


def test_vector_of_the_wrong_length_or_content_is_refused():
    flat, *_ = parts()
    with pytest.raises(
        PolicyError, match=rf"vector of {len(flat)} numbers .* \({len(flat) - 1},\)"
    ):
        decode_mlp(flat[:-1], 5, 2)
    with pytest.raises(PolicyError, match="expected a vector of 59039 numbers"):
        decode_mlp(np.zeros(24905, np.float32), 380, 17)
    bad = flat.copy()
    bad[50] = np.nan
    with pytest.raises(PolicyError, match="not finite"):
        decode_mlp(bad, 5, 2)
    with pytest.raises(PolicyError, match=r"filter of the vector has seen 0\.0 values"):
        decode_mlp(np.zeros_like(flat), 5, 2)


def test_each_agent_of_run_to_goal_has_its_own_policy():
    assert not ZOO_GAMES["RunToGoalHumans"].symmetric
    paths = [zoo_directory("zoo", "multicomp/RunToGoalAnts-v0", i, 1) for i in (0, 1)]
    assert paths == [Path("zoo/RunToGoalAnts/agent0-v1"), Path("zoo/RunToGoalAnts/agent1-v1")]


def test_sumo_policies_serve_both_agents_and_every_variant_of_the_game():
    expected = Path("zoo/SumoHumans/any-v3")
    for name in ("SumoHumans", "multicomp/SumoHumans-v1", "multicomp/SumoHumansAutoContact-v0"):
        for index in (0, 1):
            assert zoo_directory("zoo", name, index, "3") == expected


@pytest.mark.parametrize("tag", [2, "0", "v1", "../../etc", "", None, "1.0", "²"])
def test_unknown_version_is_refused(tag):
    with pytest.raises(PolicyError, match="for YouShallNotPassHumans; published versions: 1"):
        zoo_directory("zoo", "multicomp/YouShallNotPassHumans-v0", 0, tag)


def test_unknown_agent_or_game_is_refused():
    with pytest.raises(PolicyError, match="agents 0 and 1, not 2"):
        zoo_directory("zoo", "SumoAnts", 2, 1)
    with pytest.raises(ConfigError, match="did you mean 'SumoHumans'"):
        zoo_directory("zoo", "SumoHuman", 0, 1)


def test_table_agrees_with_the_published_files(shared_dir):
    for game, entry in ZOO_GAMES.items():
        files = {p.name for p in (shared_dir / "agent_zoo" / f"{game}-v0").glob("*.pkl")}
        sides = [""] if entry.symmetric else ["1", "2"]
        tags = range(1, entry.versions + 1)
        assert files == {f"agent{s}_parameters-v{t}.pkl" for s in sides for t in tags}
