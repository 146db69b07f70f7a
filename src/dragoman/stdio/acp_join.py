"""`dragoman acp` beside a running daemon: the editor's lines go to the daemon's own ACP socket.

So the sessions of an editor are the daemon's sessions, and every other client can see, drive and
approve them. Nothing is parsed here; two threads carry bytes, and next to nothing is imported.
"""

import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_CHUNK = 65536
_GRACE_SECONDS = 30.0  # for answers that are under way when the input ends


def find(config_dir: str | None, env: "Mapping[str, str]") -> socket.socket | None:
    """A connection to the daemon of this configuration; None when none runs.

    Settings in the environment would not reach a daemon: with any, there is nothing to join.
    """
    if any("__" in name and name.startswith(("DRAGOMAN_", "ZEROCLAW_")) for name in env):
        return None
    from dragoman.settings.places import endpoint, places

    path = endpoint("acp", env, places(env, config_dir))
    if not os.path.exists(path):
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:  # left behind by a daemon that is gone
        sock.close()
        return None
    return sock


def carry(sock: socket.socket, stdin: int = 0, stdout: int = 1) -> int:
    """Carry lines both ways until the daemon or the editor is done; returns the exit code."""
    ended = threading.Event()
    outcome = {"code": 1}

    def answers() -> None:
        try:
            while data := sock.recv(_CHUNK):
                _write(stdout, data)
        except BrokenPipeError:
            outcome["code"] = 0  # the editor closed its side: nobody is left to tell
        except OSError as problem:
            print(f"dragoman acp: the daemon is gone: {problem.strerror}", file=sys.stderr)
        ended.set()

    threading.Thread(target=answers, daemon=True).start()

    def questions() -> None:
        try:
            while data := os.read(stdin, _CHUNK):
                sock.sendall(data)
            outcome["code"] = 0
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the answering side notices and says why
        threading.Timer(_GRACE_SECONDS, ended.set).start()

    threading.Thread(target=questions, daemon=True).start()
    ended.wait()
    if outcome["code"]:
        print("dragoman acp: the daemon closed the connection", file=sys.stderr)
    sys.stderr.flush()
    # Threads may still wait in a read; nothing of theirs is worth keeping.
    os._exit(outcome["code"])


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
