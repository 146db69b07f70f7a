"""`dragoman rpc --session ID` beside a running daemon: its lines go to the daemon's own socket.

So the session stays the daemon's, and every other client sees it, too. Lines pass unchanged, after
one command of our own that opens the session; only a relative folder is made whole.
"""

import json
import os
import socket
import sys
import threading

from dragoman import TYPE_CHECKING
from dragoman.stdio.joining import CHUNK, path_of, reached, write

if TYPE_CHECKING:
    from .zot_flags import Flags

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
    if not flags.session or flags.session == "new" or any(own):
        return None
    return reached(path_of("any", flags.config_dir or None, os.environ))


def join(sock: socket.socket, session: str) -> int:
    """Open the session there and carry everything until either side ends; the exit code."""
    with sock:
        sock.sendall(json.dumps({"id": _OPEN, "type": "open", "session": session}).encode() + b"\n")
        rest, problem = _opened(sock)
        if problem:
            print(f"zot: {problem}", file=sys.stderr)
            return 1
        said_all = threading.Event()
        owed = Owed()
        threading.Thread(target=_say, args=(sock, said_all, owed), daemon=True).start()
        try:
            _carry(sock, rest, owed)
        except BrokenPipeError:
            return 0  # nobody reads any more
        except ConnectionError:
            pass  # the daemon is gone: told below
        gone = owed.settle("the daemon ended the connection; look at the session when it is back")
        if said_all.is_set() and not gone:
            return 0
        write(1, gone)
        print("zot: the daemon ended the connection", file=sys.stderr)
        return 1


class Owed:
    """The commands that were not answered, and the turns whose end was not told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[tuple[object, str]] = []
        self._streams = 0

    def said(self, line: bytes) -> None:
        """A command of the client."""
        try:
            command = json.loads(line)
        except ValueError:
            return  # answered by the daemon, without an id
        if isinstance(command, dict):
            with self._lock:
                self._asked.append((command.get("id"), str(command.get("type"))))

    def heard(self, line: bytes) -> None:
        """A line of the daemon. Inside of texts these words stand with other quotes."""
        if b'"type":"done"' in line:
            with self._lock:
                self._streams = max(0, self._streams - 1)
        elif b'"type":"response"' in line:
            answer = json.loads(line)
            with self._lock:
                place = (answer.get("id"), answer.get("command"))
                if place in self._asked:
                    self._asked.remove(place)
                if answer.get("success") and answer.get("command") in ("prompt", "compact"):
                    self._streams += 1

    def settle(self, why: str) -> bytes:
        """What is said when there is nobody any more to say it."""
        with self._lock:
            said: list[dict[str, object]] = [
                {"command": command, "error": why, "id": id, "success": False, "type": "response"}
                for id, command in self._asked
            ]
            if self._streams:
                said.append({"message": why, "type": "error"})
                said += [{"type": "done"}] * self._streams
            self._asked, self._streams = [], 0
        return b"".join(json.dumps(one).encode() + b"\n" for one in said)


def _carry(sock: socket.socket, data: bytes, owed: Owed) -> None:
    """Write what the daemon says, in whole lines, until it ends."""
    part = b""
    while True:
        whole, newline, part = (part + data).rpartition(b"\n")
        if newline:
            write(1, whole + newline)
            for line in whole.split(b"\n"):
                owed.heard(line)
        if not (data := sock.recv(CHUNK)):
            return


def _opened(sock: socket.socket) -> tuple[bytes, str]:
    """What came after the answer to our own command, and why that failed."""
    data = b""
    sock.settimeout(_WITHIN)
    while b"\n" not in data:
        try:
            more = sock.recv(CHUNK)
        except TimeoutError:
            return b"", f"the daemon did not answer within {_WITHIN:g} s"
        except ConnectionError:
            more = b""
        if not more:
            return b"", "the daemon ended the connection"
        data += more
    sock.settimeout(None)
    line, _, rest = data.partition(b"\n")
    answer = json.loads(line)
    return rest, "" if answer.get("success") else str(answer.get("error") or "not opened")


def _say(sock: socket.socket, said_all: threading.Event, owed: Owed) -> None:
    part = b""
    try:
        while data := os.read(0, CHUNK):
            whole, newline, part = (part + data).rpartition(b"\n")
            if newline:
                lines = whole.split(b"\n")
                for line in lines:
                    if line.strip():
                        owed.said(line)
                sock.sendall(b"".join(_in_our_folder(line) + b"\n" for line in lines))
        if part.strip():
            owed.said(part)
            sock.sendall(_in_our_folder(part))
        said_all.set()
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side has told the end


def _in_our_folder(line: bytes) -> bytes:
    """A relative `cwd` is the client's, which is ours: the daemon's folder is another one."""
    if b"cwd" not in line.lower():
        return line
    try:
        command = json.loads(line)
    except ValueError:
        return line  # refused by the daemon
    whole = {
        name: os.path.abspath(os.path.expanduser(cwd))
        for name, cwd in (command.items() if isinstance(command, dict) else ())
        if name.lower() == "cwd" and isinstance(cwd, str) and cwd and not os.path.isabs(cwd)
    }
    return json.dumps({**command, **whole}).encode() if whole else line
