import hashlib
import json

import numpy as np
import pytest
import safetensors.torch
import torch
from gymnasium import spaces

from aprl import __version__
from aprl.errors import PolicyError
from aprl.policies import NetworkPolicy, fingerprint, load_saved, read_header, save_policy
from aprl.policies import spaces as space_json
from tests.outputs import assert_same_outputs

from .helpers import mlp_policy, observations


@pytest.fixture
def saved(tmp_path):
    return save_policy(mlp_policy(), tmp_path / "policy", {"env_name": "multicomp/X-v0", "seed": 3})


def edit_header(directory, **changes):
    path = directory / "policy.json"
    header = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in header.items() if v is not None}))


def replace_weights(directory, change):
    """Change the tensors and bring the hash in the header up to date."""
    path = directory / "policy.safetensors"
    tensors = safetensors.torch.load(path.read_bytes())
    change(tensors)
    path.write_bytes(safetensors.torch.save(tensors))
    edit_header(directory, weights_sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    "policy",
    [
        mlp_policy(seed=5),
        mlp_policy(spaces.Discrete(4), spaces.Discrete(3), seed=5),
        mlp_policy(policy_layers=[], clip=np.inf, seed=5),
        mlp_policy(
            spaces.Box(np.arange(6, dtype=np.float32), np.inf, (6,)),
            spaces.Box(np.float32([-1, -np.inf, -0.1]), np.float32([1, 2, 3])),
            seed=5,
        ),
    ],
    ids=["mlp", "discrete", "linear-unclipped", "uneven-boxes"],
)
def test_a_loaded_policy_plays_bit_for_bit_alike(policy, tmp_path):
    loaded = load_saved(save_policy(policy, tmp_path / "deep" / "policy", {}), seed=5)
    assert isinstance(loaded, NetworkPolicy)
    assert loaded.observation_space == policy.observation_space
    assert loaded.action_space == policy.action_space
    assert loaded.architecture() == policy.architecture()
    obs = observations(16)
    if isinstance(policy.observation_space, spaces.Discrete):
        obs = np.arange(16) % 4
    policy.seed(5)
    assert_same_outputs(loaded.predict(obs)[0], policy.predict(obs)[0])
    assert_same_outputs(loaded.value(obs), policy.value(obs))
    assert all(p.requires_grad for p in loaded.network.parameters())


def test_loading_leaves_the_global_generator_of_torch_alone(saved):
    before = torch.get_rng_state()
    load_saved(saved)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loaded_policy_can_be_trained(saved):
    network = load_saved(saved).network
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    obs = torch.from_numpy(observations(4))
    first = network(obs)[1].sum()
    first.backward()
    optimizer.step()
    assert network(obs)[1].sum() < first


def test_header_says_what_and_where_from(saved):
    header = read_header(saved)
    assert header["format"] == "aprl-policy"
    assert header["format_version"] == 1
    assert header["kind"] == "ppo"
    assert header["architecture"] == {
        "network": "mlp",
        "policy_layers": [5, 4],
        "value_layers": [7],
        "activation": "tanh",
        "observation_clip": 2.0,
    }
    box = header["observation_space"]
    assert (box["low"], box["high"], box["shape"]) == ("-inf", "inf", [6])
    assert header["action_space"]["high"] == pytest.approx(0.4)
    assert header["provenance"] == {
        "aprl_version": __version__,
        "env_name": "multicomp/X-v0",
        "seed": 3,
    }
    assert header["weights_sha256"] == fingerprint(saved)


def test_fingerprint_depends_on_the_weights_alone(tmp_path):
    a = save_policy(mlp_policy(seed=1), tmp_path / "a", {"x": 1})
    b = save_policy(mlp_policy(seed=2), tmp_path / "b", {"x": 2})
    c = save_policy(mlp_policy(weights=2), tmp_path / "c", {"x": 1})
    assert fingerprint(a) == fingerprint(b) != fingerprint(c)
    with pytest.raises(PolicyError, match="cannot be read"):
        fingerprint(tmp_path)


def test_saving_again_replaces_the_policy(saved):
    save_policy(mlp_policy(weights=2), saved, {})
    assert_same_outputs(
        load_saved(saved).mean(observations(3)), mlp_policy(weights=2).mean(observations(3))
    )
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_a_failed_save_keeps_the_old_policy(saved):
    before = fingerprint(saved), read_header(saved)
    broken = mlp_policy()
    with torch.no_grad():
        broken.network.log_std[0] = np.nan
    with pytest.raises(PolicyError, match=r"log_std holds values that are not finite"):
        save_policy(broken, saved, {})
    with pytest.raises(PolicyError, match="provenance is not JSON"):
        save_policy(mlp_policy(weights=2), saved, {"seed": np.int64(3)})
    with pytest.raises(PolicyError, match="unknown kind of policy 'sac'"):
        save_policy(mlp_policy(weights=2), saved, {}, kind="sac")
    assert (fingerprint(saved), read_header(saved)) == before


def test_saving_never_removes_other_files(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(PolicyError, match=r"holds other files \(thesis.tex\)"):
        save_policy(mlp_policy(), tmp_path, {})
    with pytest.raises(PolicyError, match="is a file"):
        save_policy(mlp_policy(), tmp_path / "thesis.tex", {})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def truncate(directory, name):
    path = directory / name
    path.write_bytes(path.read_bytes()[:-7])


def test_missing_directory_and_files_are_named(tmp_path, saved):
    with pytest.raises(PolicyError, match=f"{tmp_path / 'none'} does not exist"):
        load_saved(tmp_path / "none")
    with pytest.raises(PolicyError, match="is a file, not a policy directory"):
        load_saved(saved / "policy.json")
    with pytest.raises(PolicyError, match=r"policy\.json is missing"):
        load_saved(tmp_path)
    (saved / "policy.safetensors").unlink()
    with pytest.raises(PolicyError, match=r"policy\.safetensors: cannot be read"):
        load_saved(saved)


DAMAGE = {
    "header truncated": (lambda d: truncate(d, "policy.json"), "not readable JSON"),
    "header a list": (lambda d: (d / "policy.json").write_text("[1]"), "not the description"),
    "foreign": (lambda d: edit_header(d, format="other"), "not the description"),
    "newer": (lambda d: edit_header(d, format_version=2), "format_version 2 is newer"),
    "no version": (lambda d: edit_header(d, format_version="1"), "format_version is '1'"),
    "no hash": (lambda d: edit_header(d, weights_sha256=None), "weights_sha256 is missing"),
    "no spaces": (lambda d: edit_header(d, action_space=None), "action_space is missing"),
    "no network": (lambda d: edit_header(d, architecture={}), "does not name its network"),
    "transformer": (
        lambda d: edit_header(d, architecture={"network": "transformer"}),
        "network 'transformer' is not known to this version, only mlp, lstm",
    ),
    "half an architecture": (
        lambda d: edit_header(d, architecture={"network": "mlp", "activation": "tanh"}),
        "architecture without 'policy_layers'",
    ),
    "bad space": (
        lambda d: edit_header(d, action_space={"type": "Box", "low": "a"}),
        "not the description of a Box",
    ),
    "weights truncated": (lambda d: truncate(d, "policy.safetensors"), "its hash is not"),
    "weights exchanged": (
        lambda d: (d / "policy.safetensors").write_bytes(safetensors.torch.save({})),
        "its hash is not",
    ),
    "tensor missing": (
        lambda d: replace_weights(d, lambda t: t.pop("obs_std")),
        "tensor obs_std is missing",
    ),
    "tensor too many": (
        lambda d: replace_weights(d, lambda t: t.update(extra=torch.ones(1))),
        "tensor extra does not belong",
    ),
    "tensor shape": (
        lambda d: replace_weights(d, lambda t: t.update(log_std=torch.ones(4))),
        r"tensor log_std has shape \(4,\)",
    ),
    "tensor type": (
        lambda d: replace_weights(d, lambda t: t.update(log_std=torch.ones(3).double())),
        r"tensor log_std .* torch.float64",
    ),
    "tensor infinite": (
        lambda d: replace_weights(d, lambda t: t["obs_mean"].fill_(np.inf)),
        "tensor obs_mean holds values that are not finite",
    ),
    "std zero": (
        lambda d: replace_weights(d, lambda t: t["obs_std"].fill_(0)),
        "tensor obs_std holds values that are not positive",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_reported_in_one_line_with_the_path(saved, damage, message):
    damage(saved)
    with pytest.raises(PolicyError, match=message) as error:
        load_saved(saved)
    assert str(saved) in str(error.value)
    assert "\n" not in str(error.value)


def test_garbage_with_the_right_hash_is_no_safetensors_file(saved):
    (saved / "policy.safetensors").write_bytes(b"garbage")
    edit_header(saved, weights_sha256=hashlib.sha256(b"garbage").hexdigest())
    with pytest.raises(PolicyError, match="not a safetensors file"):
        load_saved(saved)


@pytest.mark.parametrize("layers", [[10**9, 10**9], [10**20], "ab", [-1], None, {"a": 1}])
def test_absurd_architectures_are_refused_without_allocating_them(saved, layers):
    architecture = read_header(saved)["architecture"] | {"policy_layers": layers}
    edit_header(saved, architecture=architecture)
    with pytest.raises(PolicyError, match=r"architecture|tensor policy_tower\.0\.weight"):
        load_saved(saved)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, np.inf, (3,), np.float32),
        spaces.Box(np.float32([-0.1, -np.inf]), np.float32([0.3, 7])),
        spaces.Box(0, 255, (2, 2), np.uint8),
        spaces.Discrete(5, start=-2),
    ],
)
def test_spaces_survive_json(space):
    text = json.dumps(space_json.to_json(space), allow_nan=False)
    restored = space_json.from_json(json.loads(text))
    assert restored == space
    assert restored.dtype == space.dtype


@pytest.mark.parametrize("data", [None, [], {}, {"type": "Dict"}, {"type": "Discrete", "n": 0}])
def test_what_is_no_space_is_refused(data):
    with pytest.raises(PolicyError, match="not the description of a Box or Discrete space"):
        space_json.from_json(data)
