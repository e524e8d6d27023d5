"""Trajectories and their files."""

import numpy as np
import pytest

from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.trajectories import (
    Trajectory,
    load_trajectories,
    save_trajectories,
    take_steps,
)

from .helpers import trajectory


def assert_same(a, b):
    for name in ("states", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype
    assert a.terminated == b.terminated


@pytest.mark.parametrize("width", [None, 4])
def test_files_give_back_what_was_saved(tmp_path, width):
    rng = np.random.default_rng(0)
    saved = [trajectory(n, width, rng, terminated=n == 2) for n in (5, 2, 1)]
    path = save_trajectories(tmp_path / "deep" / "name", saved)
    assert path.name == "name.npz"
    for a, b in zip(load_trajectories(path), saved, strict=True):
        assert_same(a, b)


def test_unusable_files_are_named(tmp_path):
    with pytest.raises(TrajectoryError, match=r"none\.npz do not exist"):
        load_trajectories(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(TrajectoryError, match=r"text\.npz is not a readable"):
        load_trajectories(tmp_path / "text.npz")
    path = save_trajectories(tmp_path / "cut.npz", [trajectory(50)])
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(TrajectoryError, match=r"cut\.npz"):
        load_trajectories(path)
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    with pytest.raises(TrajectoryError, match=r"foreign\.npz holds no trajectories"):
        load_trajectories(tmp_path / "foreign.npz")
    with pytest.raises(TrajectoryError, match="no trajectories to save"):
        save_trajectories(tmp_path / "empty.npz", [])
    assert not (tmp_path / "empty.npz").exists()


def test_pickled_objects_in_an_npz_are_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", states=np.array([print], dtype=object))
    with pytest.raises(TrajectoryError, match=r"objects\.npz"):
        load_trajectories(tmp_path / "objects.npz")


def test_damaged_lengths_are_refused(tmp_path):
    path = save_trajectories(tmp_path / "x.npz", [trajectory(3), trajectory(4)])
    with np.load(path) as file:
        arrays = dict(file)
    for lengths in ([3, 5], [7, 0], [], [3]):
        np.savez(path, **{**arrays, "lengths": np.array(lengths, int)})
        with pytest.raises(TrajectoryError, match="damaged"):
            load_trajectories(path)


def test_impossible_trajectories_are_refused():
    with pytest.raises(TrajectoryError, match="no steps"):
        Trajectory(np.zeros(1), np.zeros(0), np.zeros(0), False)
    with pytest.raises(TrajectoryError, match="needs 3 states"):
        Trajectory(np.zeros(2), np.zeros(2), np.zeros(2), False)
    with pytest.raises(TrajectoryError, match="step 1 is nan"):
        Trajectory(np.zeros(3), np.zeros(2), np.array([0, np.nan]), False)


def test_taking_steps_cuts_the_last_trajectory():
    trajectories = [trajectory(3, terminated=True), trajectory(4, terminated=True), trajectory(5)]
    taken = take_steps(trajectories, 5, "x")
    assert [len(t) for t in taken] == [3, 2]
    assert [t.terminated for t in taken] == [True, False]
    assert [t.terminated for t in take_steps(trajectories, 7, "x")] == [True, True]
    with pytest.raises(TrajectoryError, match="x holds 12 steps, 13 were asked for"):
        take_steps(trajectories, 13, "x")
