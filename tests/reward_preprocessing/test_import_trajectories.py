"""Trajectories of other programs, read without running their code."""

import dataclasses
import pickle
import sys
import types

import numpy as np
import pytest

from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.import_trajectories import (
    read_any_trajectories,
    read_pickled_trajectories,
)
from aprl.reward_preprocessing.trajectories import save_trajectories

from .helpers import trajectory

RNG = np.random.default_rng(0)


@pytest.fixture
def trajectory_class(monkeypatch):
    """The class under the name by which older pickles ask for it."""
    package, data, module = (
        types.ModuleType(n) for n in ("imitation", "imitation.data", "imitation.data.types")
    )

    @dataclasses.dataclass(frozen=True)
    class TrajectoryWithRew:
        acts: np.ndarray
        obs: np.ndarray
        infos: object
        terminal: bool
        rews: np.ndarray

    TrajectoryWithRew.__module__ = "imitation.data.types"
    TrajectoryWithRew.__qualname__ = "TrajectoryWithRew"
    module.TrajectoryWithRew = TrajectoryWithRew
    for part in (package, data, module):
        monkeypatch.setitem(sys.modules, part.__name__, part)
    return TrajectoryWithRew


@pytest.fixture
def pickled(trajectory_class, tmp_path, monkeypatch):
    """Write trajectories, then take the package away again."""

    def write(content, protocol=4):
        path = tmp_path / "rollouts.pkl"
        path.write_bytes(pickle.dumps(content, protocol=protocol))
        for name in ("imitation.data.types", "imitation.data", "imitation"):
            monkeypatch.delitem(sys.modules, name)
        return path

    return write


def infos(n):
    content = np.empty(n, dtype=object)
    content[:] = [{"TimeLimit.truncated": False, "extra": {"x": np.ones(2)}} for _ in range(n)]
    return content


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_older_pickles(trajectory_class, pickled, protocol):
    obs, acts, rews = RNG.normal(size=(6, 2)), RNG.integers(3, size=5), RNG.normal(size=5)
    numbered = (RNG.integers(100, size=4), np.arange(3), np.ones(3, np.float32))
    content = [
        trajectory_class(acts, obs, infos(5), True, rews),
        trajectory_class(numbered[1], numbered[0], None, False, numbered[2]),
    ]
    first, second = read_any_trajectories(pickled(content, protocol))
    np.testing.assert_array_equal(first.states, obs)
    np.testing.assert_array_equal(first.actions, acts)
    np.testing.assert_array_equal(first.rewards, rews)
    assert first.terminated and not second.terminated
    np.testing.assert_array_equal(second.states, numbered[0])


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the code in the pickle ran')",))


def test_code_is_refused(trajectory_class, pickled):
    content = [trajectory_class(np.zeros(1), np.zeros(2), Bomb(), True, np.zeros(1))]
    with pytest.raises(TrajectoryError, match=r"rollouts\.pkl.*builtins\.exec"):
        read_pickled_trajectories(pickled(content))


def test_the_stand_in_class_cannot_be_changed(tmp_path):
    # GLOBAL TrajectoryWithRew, BUILD with a state of (None, {"array": 1}) on the class itself
    program = b"cimitation.data.types\nTrajectoryWithRew\n(N}S'array'\nI1\nstb."
    (tmp_path / "x.pkl").write_bytes(program)
    with pytest.raises(TrajectoryError):
        read_pickled_trajectories(tmp_path / "x.pkl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no trajectories"),
        ({"a": 1}, "holds a dict"),
        ([3], "trajectory 0"),
        ([np.zeros(3)], "trajectory 0"),
    ],
)
def test_pickles_of_something_else(tmp_path, content, message):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(TrajectoryError, match=message):
        read_any_trajectories(path)


def test_trajectories_that_cannot_be(trajectory_class, pickled):
    content = [trajectory_class(np.zeros(2), np.zeros(2), None, True, np.zeros(2))]
    with pytest.raises(TrajectoryError, match=r"trajectory 0: .*needs 3 states"):
        read_any_trajectories(pickled(content))


def test_trajectories_without_rewards(trajectory_class, pickled):
    content = [trajectory_class(np.zeros(2), np.zeros(3), None, True, None)]
    with pytest.raises(TrajectoryError, match="rews"):
        read_any_trajectories(pickled(content))


def test_files_by_their_kind(tmp_path):
    path = save_trajectories(tmp_path / "x.npz", [trajectory(3)])
    assert len(read_any_trajectories(path)[0]) == 3
    with pytest.raises(TrajectoryError, match="do not exist"):
        read_any_trajectories(tmp_path / "none.pkl")
    (tmp_path / "cut.pkl").write_bytes(pickle.dumps([1, 2, 3])[:-3])
    with pytest.raises(TrajectoryError, match="damaged"):
        read_any_trajectories(tmp_path / "cut.pkl")
    with pytest.raises(TrajectoryError, match=r"'imitation'.*not installed"):
        read_any_trajectories(tmp_path)


def test_folders_are_read_by_the_package(tmp_path, monkeypatch):
    """A stand-in for the package; what it returns has the attributes that the real one's has."""
    package, data, serialize = (
        types.ModuleType(n) for n in ("imitation", "imitation.data", "imitation.data.serialize")
    )
    package.__spec__ = types.SimpleNamespace(name="imitation")
    item = types.SimpleNamespace(
        obs=np.zeros((3, 2)), acts=np.zeros(2), rews=np.ones(2), terminal=True
    )
    serialize.load = lambda path: [item] if path == tmp_path else 1 / 0
    for part in (package, data, serialize):
        monkeypatch.setitem(sys.modules, part.__name__, part)
    with pytest.warns(UserWarning, match="can run code"):
        (t,) = read_any_trajectories(tmp_path)
    assert t.rewards.tolist() == [1, 1] and t.terminated
