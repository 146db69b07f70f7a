"""`dragoman rpc --session ID` beside a running daemon: its lines go to the daemon's own socket.

So the session stays the daemon's, and every other client sees it, too. Bytes pass unchanged, after
one command of our own that opens the session.
"""

import json
import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .zot_flags import Flags

_CHUNK = 65536
_OPEN = "dragoman-open"
_WITHIN = 30.0


def find(flags: "Flags", token: str) -> socket.socket | None:
    """A connection to the daemon that has this session's store; None: there is nothing to join.

    What only this process knows (a token, a model, a prompt of its own, settings in the
    environment) would not reach a daemon.
    """
    own = (
        token, flags.provider, flags.model, flags.api_key, flags.base_url, flags.reasoning,
        flags.tools, flags.no_tools, flags.max_steps, flags.append_system_prompt, flags.list_models,
        flags.no_context_files, flags.supervised, flags.temperature is not None,
        flags.system_prompt is not None,
    )  # fmt: skip
    if os.name != "posix" or not flags.session or flags.session == "new" or any(own):
        return None
    if any("__" in name and name.startswith(("DRAGOMAN_", "ZEROCLAW_")) for name in os.environ):
        return None
    from dragoman.client.address import socket_path

    path = socket_path(flags.config_dir or None, dialect="any")
    if not os.path.exists(path):
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:  # left behind by a daemon that is gone
        sock.close()
        return None
    return sock


def join(sock: socket.socket, session: str) -> int:
    """Open the session there and carry everything until either side ends; the exit code."""
    with sock:
        sock.sendall(json.dumps({"id": _OPEN, "type": "open", "session": session}).encode() + b"\n")
        rest, problem = _opened(sock)
        if problem:
            print(f"zot: {problem}", file=sys.stderr)
            return 1
        said_all = threading.Event()
        threading.Thread(target=_say, args=(sock, said_all), daemon=True).start()
        try:
            _write(rest)
            while data := sock.recv(_CHUNK):
                _write(data)
        except ConnectionError:
            pass  # the daemon is gone: told below
        except BrokenPipeError:
            return 0  # nobody reads any more
        if said_all.is_set():
            return 0
        print("zot: the daemon ended the connection", file=sys.stderr)
        return 1


def _opened(sock: socket.socket) -> tuple[bytes, str]:
    """What came after the answer to our own command, and why that failed."""
    data = b""
    sock.settimeout(_WITHIN)
    while b"\n" not in data:
        try:
            more = sock.recv(_CHUNK)
        except TimeoutError:
            return b"", f"the daemon did not answer within {_WITHIN:g} s"
        if not more:
            return b"", "the daemon ended the connection"
        data += more
    sock.settimeout(None)
    line, _, rest = data.partition(b"\n")
    answer = json.loads(line)
    return rest, "" if answer.get("success") else str(answer.get("error") or "not opened")


def _say(sock: socket.socket, said_all: threading.Event) -> None:
    try:
        while data := os.read(0, _CHUNK):
            sock.sendall(data)
        said_all.set()
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side has told the end


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
