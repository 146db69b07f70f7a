"""What programs beside a running daemon share. Imports next to nothing: a client waits for it."""

import os
import socket

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHUNK = 65536


def has_settings(env: "Iterable[str]") -> bool:
    """Whether variables of these names are settings, which would not reach a daemon."""
    return any("__" in name and name.startswith(("DRAGOMAN_", "ZEROCLAW_")) for name in env)


def path_of(dialect: str, config_dir: str | None, env: "Mapping[str, str]") -> str:
    """Where a daemon that knows the same settings would listen.

    Settings in the environment would not reach a daemon: with any, there is nothing to join.
    """
    if os.name != "posix" or has_settings(env):
        return ""
    from dragoman.client.address import socket_path
    from dragoman.client.problems import NotRunning

    try:
        return socket_path(config_dir, dialect=dialect, env=env)
    except NotRunning:
        return ""


def reached(path: str) -> socket.socket | None:
    """A connection to the daemon at this path; None when none runs."""
    if not path or not os.path.exists(path):
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:  # left behind by a daemon that is gone
        sock.close()
        return None
    return sock


def write(fd: int, data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
