"""Atomic writing."""

import errno
import hashlib
import os
import threading

import pytest

from aprl import files
from aprl.errors import RunError
from aprl.files import atomic_path, read_json, require_writable_directory, sha256, write_json


def listing(directory):
    return sorted(path.name for path in directory.iterdir())


def write_directory(target, text):
    with atomic_path(target) as staged:
        staged.mkdir()
        (staged / "file").write_text(text)


def test_file_is_created_with_its_parents_and_replaced(tmp_path):
    target = tmp_path / "a/b/file"
    for text in ("old", "new"):
        with atomic_path(target) as staged:
            assert staged.parent.parent == target.parent  # same file system
            staged.write_text(text)
            assert not target.exists() if text == "old" else target.read_text() == "old"
        assert target.read_text() == text
        assert listing(target.parent) == ["file"]


def test_directory_is_created_and_replaced_whole(tmp_path):
    target = tmp_path / "replaced"
    write_directory(target, "old")
    (target / "more").touch()
    write_directory(target, "new")
    assert listing(target) == ["file"]
    assert (target / "file").read_text() == "new"
    assert listing(tmp_path) == ["replaced"]


def test_directory_replaces_a_file_and_a_link(tmp_path):
    (tmp_path / "x").touch()
    write_directory(tmp_path / "x", "new")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep").touch()
    (tmp_path / "y").symlink_to(elsewhere)
    write_directory(tmp_path / "y", "new")
    assert listing(tmp_path / "x") == listing(tmp_path / "y") == ["file"]
    assert listing(elsewhere) == ["keep"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_failure_keeps_the_old_file(tmp_path, error):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(error), atomic_path(target) as staged:
        staged.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["file"]


def test_failure_keeps_the_old_directory(tmp_path):
    target = tmp_path / "directory"
    write_directory(target, "old")
    with pytest.raises(ValueError, match="stop"), atomic_path(target) as staged:
        staged.mkdir()
        (staged / "file").write_text("half")
        raise ValueError("stop")
    assert (target / "file").read_text() == "old"
    assert listing(tmp_path) == ["directory"]


def test_directory_comes_back_if_the_new_one_cannot_be_moved_in(tmp_path, monkeypatch):
    target = tmp_path / "directory"
    write_directory(target, "old")
    rename = os.rename

    def failing(source, destination):
        if destination == target and source.name == target.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, destination)

    monkeypatch.setattr(files.os, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        write_directory(target, "new")
    assert (target / "file").read_text() == "old"
    assert listing(tmp_path) == ["directory"]


def test_content_is_flushed_before_it_is_moved_in(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "file"
    target.write_text("old")
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"), atomic_path(target) as staged:
        staged.write_text("new")
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["file"]


def test_writers_of_one_directory_at_once(tmp_path):
    failures = []

    def write(text):
        try:
            for _ in range(20):
                write_directory(tmp_path / "directory", text)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert listing(tmp_path) == ["directory"]
    assert (tmp_path / "directory/file").read_text() in "abcd"


def test_another_writer_between_the_two_renames(tmp_path, monkeypatch):
    target = tmp_path / "directory"
    write_directory(target, "old")
    rename = os.rename
    others = iter(["other"])

    def interrupted(source, destination):
        rename(source, destination)
        if source == target:
            for text in others:
                monkeypatch.setattr(files.os, "rename", rename)
                write_directory(target, text)
                monkeypatch.setattr(files.os, "rename", interrupted)

    monkeypatch.setattr(files.os, "rename", interrupted)
    write_directory(target, "new")
    assert (target / "file").read_text() == "new"
    assert listing(tmp_path) == ["directory"]


def test_json(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"b": [1, 2.5, None], "a": "é"})
    assert read_json(path) == {"b": [1, 2.5, None], "a": "é"}
    text = path.read_text(encoding="utf-8")
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [float("nan")]}])
def test_nan_is_refused_and_the_old_json_kept(tmp_path, value):
    path = tmp_path / "x.json"
    write_json(path, 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, value)
    assert read_json(path) == 1
    assert listing(tmp_path) == ["x.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"a": 1} 2', b"\xff\xfe", b"[" * 100_000, b"1" * 5000]
)
def test_not_json(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"x\.json is not readable JSON: "):
        read_json(path)


def test_no_json_file(tmp_path):
    with pytest.raises(RunError, match=r"x\.json does not exist"):
        read_json(tmp_path / "x.json")
    with pytest.raises(RunError, match="is not readable JSON"):
        read_json(tmp_path)


def test_writable_directory(tmp_path):
    path = tmp_path / "a/b"
    assert require_writable_directory(str(path)) == path
    assert listing(path) == []
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        with pytest.raises(RunError, match=f"output directory .*{place} is not writable: "):
            require_writable_directory(tmp_path / place)


def test_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert sha256(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()
