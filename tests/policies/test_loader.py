import pickle
import zipfile

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import ConfigError, PolicyError
from aprl.policies import (
    ZOO_GAMES,
    ConstantPolicy,
    RandomPolicy,
    ZeroPolicy,
    load_policy,
    resolve_policy_directory,
    save_policy,
)
from tests.outputs import assert_same_outputs

from .helpers import action_box, mlp_policy, observation_box, observations

YSNP = "multicomp/YouShallNotPassHumans-v1"


def load(policy_type, path, obs=None, act=None, env_name="aprl/Test-v0", index=0, **kwargs):
    return load_policy(
        policy_type,
        path,
        observation_space=obs or observation_box(),
        action_space=act or action_box(),
        env_name=env_name,
        index=index,
        **kwargs,
    )


def save_zoo_policy(root, game, name, weights=1):
    entry = ZOO_GAMES[game]
    policy = mlp_policy(observation_box(entry.obs_dim), action_box(entry.act_dim), weights=weights)
    return save_policy(policy, root / game / name, {}, kind="zoo")


def test_policies_without_weights():
    assert type(load("zero", "none")) is ZeroPolicy
    assert type(load("random", "none")) is RandomPolicy
    for policy_type in ("zero", "random", "constant"):
        assert resolve_policy_directory(policy_type, "none", "aprl/Test-v0", 0) is None


@pytest.mark.parametrize("path", ["0.1,-0.2,0.3", "0.1, -0.2, 0.3", [0.1, -0.2, 0.3]])
def test_constant_of_several_numbers(path):
    policy = load("constant", path)
    assert type(policy) is ConstantPolicy
    np.testing.assert_array_equal(
        policy.predict(observations(1))[0], np.float32([[0.1, -0.2, 0.3]])
    )


@pytest.mark.parametrize("path", ["0.25", 0.25])
def test_constant_of_one_number(path):
    np.testing.assert_array_equal(load("constant", path).predict(observations(1))[0], [[0.25] * 3])


def test_constant_choice():
    policy = load("constant", "1", spaces.Discrete(2), spaces.Discrete(2))
    np.testing.assert_array_equal(policy.predict(np.zeros(3, np.int64))[0], [1, 1, 1])


@pytest.mark.parametrize("path", ["none", "", "fast", "1,2", "7"])
def test_unusable_constant_is_named(path):
    with pytest.raises(PolicyError) as error:
        load("constant", path)
    assert "constant" in str(error.value)


def test_seed_reaches_the_policy(tmp_path):
    save_policy(mlp_policy(), tmp_path / "p", {})
    for policy_type, path in (("random", "none"), ("ppo", tmp_path / "p")):
        a, b, c = (load(policy_type, path, seed=s).predict(observations(4))[0] for s in (1, 1, 2))
        assert_same_outputs(a, b)
        assert (a != c).any()


def test_trained_policy_from_its_directory_or_its_run(tmp_path):
    direct = save_policy(mlp_policy(), tmp_path / "run" / "final_model", {})
    for path in (direct, tmp_path / "run", str(tmp_path / "run")):
        assert resolve_policy_directory("ppo", path, "aprl/Test-v0", 0) == direct
        assert_same_outputs(
            load("ppo", path).mean(observations(4)), mlp_policy().mean(observations(4))
        )


def test_old_name_of_ppo_warns(tmp_path):
    save_policy(mlp_policy(), tmp_path / "p", {})
    with pytest.warns(DeprecationWarning, match="'ppo2' is deprecated; use 'ppo'") as record:
        policy = load("ppo2", tmp_path / "p")
    assert len(record) == 1
    assert policy.mean(observations(1)).shape == (1, 3)


def test_unknown_type_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown policy type 'zooo'; did you mean 'zoo'"):
        load("zooo", "1")
    with pytest.raises(ConfigError, match="unknown policy type"):
        resolve_policy_directory("gail", "x", "aprl/Test-v0", 0)


def test_zoo_policy_of_each_agent(tmp_path):
    for index in (0, 1):
        save_zoo_policy(tmp_path, "YouShallNotPassHumans", f"agent{index}-v1", weights=index)
    obs = observations(3, 380)
    for index in (0, 1):
        spaces_ = observation_box(380), action_box(17)
        policy = load("zoo", "1", *spaces_, env_name=YSNP, index=index, zoo_dir=tmp_path)
        expected = mlp_policy(*spaces_, weights=index).mean(obs)
        assert_same_outputs(policy.mean(obs), expected)


def test_zoo_policy_that_is_not_imported_says_how_to():
    with pytest.raises(PolicyError) as error:
        load("zoo", 1, env_name=YSNP, zoo_dir="some/zoo")
    message = str(error.value)
    assert "some/zoo/YouShallNotPassHumans/agent0-v1" in message
    assert message.endswith("python -m aprl.policies.import_zoo agent_zoo --out some/zoo")


def test_game_without_zoo_policies():
    with pytest.raises(ConfigError, match="unknown game with zoo policies 'RockPaperScissors'"):
        load("zoo", 1, env_name="aprl/RockPaperScissors-v0")


def test_policy_of_another_size_gives_both_sizes_and_the_game(tmp_path):
    path = save_policy(mlp_policy(), tmp_path / "p", {})
    with pytest.raises(PolicyError) as error:
        load("ppo", path, obs=observation_box(380), env_name=YSNP, index=1)
    for part in (str(path), "agent 1 of " + YSNP, "(6,)", "(380,)"):
        assert part in str(error.value)
    with pytest.raises(PolicyError, match=r"actions are Box\(.*\(3,\)\), the game's Discrete\(3\)"):
        load("ppo", path, act=spaces.Discrete(3))


def test_actions_are_clipped_to_the_box_of_the_game(tmp_path):
    path = save_policy(mlp_policy(), tmp_path / "p", {})
    narrow = action_box(bound=0.01)
    policy = load("ppo", path, act=narrow)
    assert policy.action_space == narrow
    assert np.abs(policy.predict(observations(50))[0]).max() == np.float32(0.01)


def test_missing_trained_policy(tmp_path):
    with pytest.raises(PolicyError, match="nowhere does not exist"):
        load("ppo", tmp_path / "nowhere")
    with pytest.raises(PolicyError, match=r"no policy in .*: neither policy\.json nor final_model"):
        load("ppo", tmp_path)
    for path in (None, "", "none"):
        with pytest.raises(PolicyError, match="needs the path of a policy directory"):
            load("ppo", path)


def test_foreign_files_are_named_with_the_way_out(tmp_path):
    archive = tmp_path / "run" / "final_model" / "model.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as handle:
        handle.writestr("data", "{}")
    for path in (archive, tmp_path / "run"):
        with pytest.raises(PolicyError, match=r"model\.zip is a zip archive.*save_policy"):
            load("ppo", path)
    disguised = tmp_path / "weights"
    disguised.write_bytes(archive.read_bytes())
    with pytest.raises(PolicyError, match="weights is a zip archive"):
        load("ppo", disguised)
    old = tmp_path / "old" / "model.pkl"
    old.parent.mkdir()
    old.write_bytes(pickle.dumps({}, 2))
    for path in (old, old.parent):
        with pytest.raises(PolicyError, match=r"model\.pkl is a Python pickle.*import_zoo"):
            load("ppo", path)
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(PolicyError, match="file of unknown format"):
        load("ppo", tmp_path / "note.txt")


def test_a_file_of_a_policy_points_to_its_directory(tmp_path):
    path = save_policy(mlp_policy(), tmp_path / "p", {})
    for name in ("policy.json", "policy.safetensors"):
        with pytest.raises(PolicyError, match=f"give the directory {path}"):
            load("ppo", path / name)
