"""What a program tries from inside: a table of what it could do."""

import os
import resource
import socket
import tempfile
from collections.abc import Callable
from typing import Any


def _could(act: Callable[[], Any]) -> bool:
    try:
        act()
    except (OSError, ValueError):
        return False
    return True


def _read(path: str) -> None:
    with open(path, "rb") as file:
        if not file.read(1):
            raise OSError("empty")


def _write(path: str) -> None:
    with open(path, "w") as file:
        file.write("x")


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)


def _listen() -> None:
    """A connection over the loopback, both ends ours."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        socket.create_connection(one.getsockname(), 5).close()


def _status(name: str) -> str:
    with open("/proc/self/status") as file:
        return next((line.split()[1] for line in file if line.startswith(f"{name}:")), "")


def all_of(given: dict[str, Any]) -> dict[str, Any]:
    core = resource.RLIMIT_CORE
    read, written = ("config", "store", "token"), ("write", "more")
    return {
        **{name: _could(lambda path=given[name]: _read(path)) for name in read},  # type: ignore[misc]
        **{name: _could(lambda path=given[name]: _write(path)) for name in written},  # type: ignore[misc]
        "socket": _could(lambda: _connect(given["socket"])),
        "limits": _could(lambda: resource.prlimit(given["limits"], core, (0, 0))),
        "workspace": _could(lambda: _write("made-here")),
        "temporary": _could(lambda: tempfile.TemporaryFile().close()),
        "network": _could(_listen),
        "key": os.environ.get("OWN_API_KEY", ""),
        "inherited": sorted(n for n, v in os.environ.items() if v == "of the daemon"),
        "marked": resource.getrlimit(resource.RLIMIT_RTTIME)[1] != resource.RLIM_INFINITY,
        "filtered": _status("Seccomp") == "2",
    }  # fmt: skip
