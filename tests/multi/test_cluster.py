"""Connecting to Ray: an address without a cluster is said soon, and by name."""

import os
import socket
import subprocess
import sys
import time

import pytest

from aprl.errors import ConfigError, RunError
from aprl.multi.cluster import _check_reachable


@pytest.mark.parametrize(
    "server, complaint",
    [
        ("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"),
        ("auto", "no Ray cluster at auto"),
    ],
)
def test_no_cluster_is_said_soon(tmp_path, server, complaint):
    begin = time.monotonic()
    script = f"from aprl.multi.cluster import connected\nwith connected({server!r}):\n    pass\n"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"RAY_TMPDIR": str(tmp_path)},
    )
    assert time.monotonic() - begin < 15
    assert complaint in ended.stderr


def test_an_address_that_is_none_is_refused(tmp_path):
    for address in ("somewhere", "host:port", "host:99999", ":6379"):
        with pytest.raises(ConfigError, match="ray_server must be"):
            _check_reachable(address)


def test_what_listens_but_is_no_ray_is_said_soon():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        begin = time.monotonic()
        with pytest.raises(RunError, match="Ray cluster"):
            _check_reachable(f"127.0.0.1:{port}")
        assert time.monotonic() - begin < 15
