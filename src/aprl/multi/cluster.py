"""Connecting to Ray: on this machine, or a cluster that is already there."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from aprl.errors import ConfigError, RunError

_CONNECT_S = 3.0
_HEALTH_S = 10.0
_CLIENT = "ray://"


@contextlib.contextmanager
def connected(ray_server: str | None, num_cpus: int | None = None) -> Iterator[Any]:
    """Ray, ready to use, within the block.

    A connection that this process has already is used and left open.

    Args:
        ray_server: None or "local" starts Ray on this machine; "auto" finds the cluster that this
            machine belongs to; else `host:port` or `ray://host:port`.
        num_cpus: CPUs to offer on this machine; None: all.

    Raises:
        RunError: no cluster there, within 15 s.
        ConfigError: an address that is none.
    """
    # Ray's own reports would fill the terminal; workers keep the caller's working directory.
    os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        yield ray
        return
    common: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if ray_server in (None, "local"):
        ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **common)
    else:
        assert ray_server is not None
        if num_cpus is not None:
            raise ConfigError("num_cpus is for Ray on this machine; a cluster has its own number")
        _check_reachable(ray_server)
        try:
            ray.init(address=ray_server, **common)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunError(f"no Ray cluster at {ray_server}: {_first_line(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _check_reachable(ray_server: str) -> None:
    if ray_server == "auto":
        return  # Ray says at once whether there is one
    host, _, port = ray_server.removeprefix(_CLIENT).rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ConfigError(f"ray_server must be auto, host:port or ray://host:port: {ray_server!r}")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise RunError(
            f"no Ray cluster at {ray_server}: {error.strerror or error}; start one with "
            f"'ray start --head', or leave ray_server out to use this machine"
        ) from None
    if ray_server.startswith(_CLIENT):
        return
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address"]
    try:
        healthy = subprocess.run(
            [*command, f"{host}:{port}"], timeout=_HEALTH_S, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"what listens at {ray_server} does not answer as a Ray cluster") from None
    if healthy.returncode:
        raise RunError(f"what listens at {ray_server} is no Ray cluster that is up")


def require_cpus(ray: Any, wanted: int, what: str) -> None:
    """Refuse work that no node could ever take.

    Raises:
        ConfigError: all CPUs of the cluster together are fewer than `wanted`.
    """
    offered = int(ray.cluster_resources().get("CPU", 0))
    if wanted > offered:
        raise ConfigError(f"{what} needs {wanted} CPUs, but Ray offers {offered}")
