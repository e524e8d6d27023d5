"""Errors of the user, and how command lines report them."""

import errno
import os
import subprocess
import sys

import pytest

from aprl.cli import ArgumentParser, run_cli
from aprl.errors import AprlError, ConfigError, PolicyError, RunError, first_line, unknown_name


def test_one_base_class():
    for error in (ConfigError, PolicyError, RunError):
        assert issubclass(error, AprlError)


def test_unknown_name_suggests_the_nearest():
    error = unknown_name("policy type", "zo", ["zoo", "ppo", "random"])
    assert isinstance(error, ConfigError)
    assert str(error) == "unknown policy type 'zo'; did you mean 'zoo'?"


def test_unknown_name_suggests_several():
    message = str(unknown_name("game", "sumo-v2", ["sumo-v0", "sumo-v1"]))
    assert "'sumo-v0' or 'sumo-v1'" in message or "'sumo-v1' or 'sumo-v0'" in message


def test_unknown_name_that_is_like_nothing_lists_all():
    assert str(unknown_name("game", "xyz", ["b", "a"])) == "unknown game 'xyz'; known: a, b"


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "code", "message"),
    [
        (lambda: None, 0, ""),
        (lambda: 0, 0, ""),
        (lambda: 7, 7, ""),
        (raising(ConfigError("two\nlines   of text")), 1, "error: two lines of text\n"),
        (raising(OSError(errno.ENOSPC, "No space", "/x")), 1, "error: /x: No space\n"),
        (raising(OSError(errno.EIO, "Input/output error")), 1, "error: Input/output error\n"),
        (raising(OSError("odd")), 1, "error: odd\n"),
        (raising(KeyboardInterrupt()), 130, ""),
        (raising(SystemExit(3)), 3, ""),
    ],
)
def test_exit_code_and_message(capsys, main, code, message):
    with pytest.raises(SystemExit) as exit_:
        run_cli(main)
    assert exit_.value.code == code
    assert capsys.readouterr() == ("", message)


def test_bugs_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run_cli(lambda: 1 // 0)


def test_parser_raises_instead_of_printing_usage(capsys):
    parser = ArgumentParser(prog="tool")
    parser.add_argument("--number", type=int)
    with pytest.raises(ConfigError, match=r"invalid int value: 'x' \(try tool --help\)"):
        parser.parse_args(["--number", "x"])
    assert capsys.readouterr() == ("", "")


def run_script(code, stdout):
    command = [sys.executable, "-c", f"from aprl.cli import run_cli\n{code}"]
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=buffered)
    return done.returncode, done.stderr


def test_full_disk_behind_standard_output():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        code, stderr = run_script("run_cli(lambda: print('text'))", full)
    assert (code, stderr) == (1, "error: No space left on device\n")


def test_error_with_output_that_cannot_be_written_any_more():
    script = """
from aprl.errors import ConfigError
def main():
    print('text')
    raise ConfigError('bad value')
run_cli(main)
"""
    read, write = os.pipe()
    os.close(read)
    code, stderr = run_script(script, write)
    os.close(write)
    assert (code, stderr) == (1, "error: bad value\n")


def test_reader_of_the_pipe_goes_away():
    read, write = os.pipe()
    os.close(read)
    code, stderr = run_script("run_cli(lambda: print('text'))", write)
    os.close(write)
    assert (code, stderr) == (141, "")


def test_the_first_line_of_an_error_without_a_message_is_its_type():
    assert first_line(ValueError("a\nb")) == "a"
    assert first_line(IndexError()) == "IndexError"
    assert first_line(ValueError("  \n")) == "ValueError"
