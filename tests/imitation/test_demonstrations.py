import contextlib
import pickle

import numpy as np
import pytest
from gymnasium import spaces

from aprl.errors import DemonstrationError
from aprl.imitation.demonstrations import (
    Demonstrations,
    load_demonstrations,
    save_demonstrations,
)
from tests.imitation.test_trajectories import trajectory

BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)
CHOICE = spaces.Discrete(5)


def demonstrations(*items):
    return Demonstrations(
        items or (trajectory(2), trajectory(4, 50.0, terminated=True, truncated=False)),
        BOX,
        CHOICE,
        {"seed": 1},
    )


@pytest.mark.parametrize("rewards", [True, False])
def test_saved_and_loaded(tmp_path, rewards):
    saved = demonstrations()
    if not rewards:
        saved = demonstrations(trajectory(2, rewards=None), trajectory(1))
    loaded = load_demonstrations(save_demonstrations(saved, tmp_path / "d.npz"))
    assert loaded.observation_space == BOX and loaded.action_space == CHOICE
    assert loaded.provenance["seed"] == 1 and "aprl_version" in loaded.provenance
    for ours, theirs in zip(saved.trajectories, loaded.trajectories, strict=True):
        np.testing.assert_array_equal(ours.obs, theirs.obs)
        np.testing.assert_array_equal(ours.actions, theirs.actions)
        assert ours.obs.dtype == theirs.obs.dtype
        assert (ours.terminated, ours.truncated) == (theirs.terminated, theirs.truncated)
        if rewards:
            np.testing.assert_array_equal(ours.rewards, theirs.rewards)
        else:
            assert theirs.rewards is None


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(path, header=np.array([Bomb()], dtype=object))
    with pytest.raises(DemonstrationError, match=r"d\.npz.*pickled objects.*refused"):
        load_demonstrations(path)
    save_demonstrations(demonstrations(), path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["obs"] = np.array([Bomb()] * len(arrays["obs"]), dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(DemonstrationError, match="pickled objects"):
        load_demonstrations(path)
    (tmp_path / "d.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DemonstrationError, match=r"d\.pkl.*a pickle, which could run code"):
        load_demonstrations(tmp_path / "d.pkl")


def test_files_that_cannot_be_used(tmp_path):
    path = save_demonstrations(demonstrations(), tmp_path / "d.npz")
    with pytest.raises(DemonstrationError, match="does not exist"):
        load_demonstrations(tmp_path / "none.npz")
    with pytest.raises(DemonstrationError, match="is a directory"):
        load_demonstrations(tmp_path)
    with np.load(path) as file:
        intact = dict(file)
    for change, message in (
        ({"header": None}, "no header"),
        ({"header": np.array('{"format": "x"}')}, "not the format"),
        ({"header": np.array("{")}, "Expecting"),
        ({"terminated": None}, "'terminated' is missing"),
        ({"actions": intact["actions"][:-1]}, "actions has 5 rows, expected 6"),
        ({"actions": intact["actions"] + 3}, r"not in Discrete\(5\)"),
        ({"obs": intact["obs"][:, :1]}, "not in Box"),
        ({"obs": intact["obs"] * np.nan}, "not finite"),
        ({"obs": np.full(intact["obs"].shape, 1e300)}, "beyond float32"),
        ({"obs": intact["obs"].astype(str)}, "real numbers, not of type <U"),
        ({"obs": intact["obs"].astype(complex)}, "real numbers, not of type complex"),
        ({"rewards": intact["rewards"].astype(str)}, "rewards must be real numbers"),
        ({"lengths": intact["lengths"].astype(float)}, "lengths must be"),
        ({"lengths": np.array(6)}, "lengths must be"),
        ({"lengths": intact["lengths"][:0]}, "there are no demonstrations"),
        ({"obs": np.array(1.0)}, "d.npz"),
        ({"header": np.array("[" * 100_000)}, "d.npz"),
    ):
        arrays = {k: v for k, v in {**intact, **change}.items() if v is not None}
        np.savez(path, **arrays)
        with pytest.raises(DemonstrationError, match=message):
            load_demonstrations(path)
    data = save_demonstrations(demonstrations(), path).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(data)
        for place in rng.integers(len(data), size=rng.choice([1, 4, 32])):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        with contextlib.suppress(DemonstrationError):  # some damage cannot be seen
            load_demonstrations(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DemonstrationError, match=r"d\.npz"):
        load_demonstrations(path)
    with pytest.raises(DemonstrationError, match=r"\.npz, not as d\.pkl"):
        save_demonstrations(demonstrations(), tmp_path / "d.pkl")


def test_spaces_must_fit():
    saved = demonstrations()
    saved.require_spaces(BOX, CHOICE, "here")
    with pytest.raises(DemonstrationError, match=r"fit Hopper: their actions are Discrete\(5\)"):
        saved.require_spaces(BOX, spaces.Discrete(2), "Hopper")
    with pytest.raises(DemonstrationError, match="their observations"):
        saved.require_spaces(CHOICE, CHOICE, "Hopper")


def test_the_first_few():
    saved = demonstrations()
    assert saved.first(None) is saved and len(saved.first(1).trajectories) == 1
    for count in (0, 3):
        with pytest.raises(DemonstrationError, match=f"{count} demonstrations are asked for"):
            saved.first(count)
    with pytest.raises(DemonstrationError, match="no demonstrations"):
        Demonstrations((), BOX, CHOICE, {})
