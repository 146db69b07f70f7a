"""What programs beside a running daemon share. Imports next to nothing: a client waits for it.

The sessions of an editor (`dragoman acp`) are the daemon's sessions then, and every other client
can see, drive and approve them. Its first line and the answer are carried before anything is
imported; a relay takes over from there.
"""

import os
import select
import socket

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHUNK = 65536
_LONGEST = 1024 * 1024  # of a first line that is carried so early


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
    """A connection to the daemon at this path; None when none runs, or none may be reached."""
    if not path or not os.path.exists(path):
        return None
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:  # a sandbox without such sockets: that of a hosted agent, say
        return None
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


class Begun:
    """A conversation with the daemon that has begun."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.heard: list[bytes] = []  # lines of the editor that the daemon has
        self.told: list[bytes] = []  # lines of the daemon that the editor has
        self.rest = b""  # of the editor's input: not sent yet
        self.left = b""  # of the daemon's output: not a whole line yet


def greet(sock: socket.socket, stdin: int = 0, stdout: int = 1) -> Begun:
    """Carry the first line to the daemon and its answer back.

    Returns early when the input ends, the line is long or the daemon leaves: the relay, which has
    patience, goes on with what there is.
    """
    begun = Begun(sock)
    while not begun.told:
        ready = select.select([stdin, sock.fileno()], [], [])[0]
        if stdin in ready and not begun.heard:
            data = os.read(stdin, CHUNK)
            begun.rest = (begun.rest + data).lstrip()  # blank lines say nothing
            line, end, rest = begun.rest.partition(b"\n")
            if not data or len(begun.rest) > _LONGEST:
                break
            if end:
                begun.heard.append(line)
                begun.rest = rest
                sock.sendall(line + b"\n")
        elif stdin in ready:
            break  # more than one line at once: a client in a hurry
        if sock.fileno() in ready:
            data = sock.recv(CHUNK)
            *lines, begun.left = (begun.left + data).split(b"\n")
            for line in lines:
                write(stdout, line + b"\n")
                begun.told.append(line)
            if not data:
                break
    return begun
