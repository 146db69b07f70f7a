"""A connection without an event loop: ask, read the answer, leave.

Imports `json` and the bare sockets only, because most of what a thin command takes is its imports.
"""

import _socket as socket  # `socket` adds enumerations and selectors: 13 % of `status` (0073)
import json

from dragoman import TYPE_CHECKING

from .problems import ConnectionGone, fault_of, no_text, not_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_CHUNK = 65536
ANSWER_SECONDS = 30.0
_LOOK = 0.25  # seconds until somebody looks why no answer comes


class Plain:
    """One connection to the daemon. A context manager."""

    def __init__(
        self,
        path: str,
        name: str = "dragoman",
        wait: float = ANSWER_SECONDS,
        tell: "Callable[[str], None] | None" = None,
    ) -> None:
        """`tell` gets a sentence when an answer takes its time."""
        self.path = path
        self._tell = tell
        self._wait = wait
        self._next = 0
        self._data = bytearray()
        self._seen = 0  # bytes of `_data` that hold no newline
        self._held: list[dict[str, Any]] = []
        self._greetings: list[int] = []
        if not hasattr(socket, "AF_UNIX"):
            raise not_running(path, "this system has no Unix sockets")
        try:
            self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as problem:  # a sandbox without such sockets
            raise not_running(path, f"no socket can be made: {problem.strerror}") from None
        self._sock.settimeout(wait)
        try:
            self._sock.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            self._sock.close()
            raise not_running(path) from None
        except OSError as problem:
            self._sock.close()
            raise not_running(path, problem.strerror or str(problem)) from None
        # The greeting is sent ahead; its answers are read with the first real one.
        greeting = self.begin("initialize", {"protocolVersion": 1})
        hello = self.begin("dragoman/hello", {"name": name})
        self._greetings = [greeting, hello]

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def fileno(self) -> int:
        """For `select`; look at `waiting` first."""
        return self._sock.fileno()

    @property
    def waiting(self) -> bool:
        """Something was received that nobody has taken yet."""
        return bool(self._held) or b"\n" in self._data

    def call(
        self, method: str, params: "dict[str, Any] | None" = None, *, wait: float | None = None
    ) -> "Any":
        """The result of one method. `wait` 0: for ever. Raises the host's Fault."""
        wanted = self.begin(method, params)
        seconds = self._wait if wait is None else wait
        while True:
            message = self._message(seconds or None, method)
            if "method" not in message and message.get("id") == wanted:
                return result_of(message)
            self._held.append(message)

    def begin(self, method: str, params: "dict[str, Any] | None" = None) -> int:
        """Send a request; its answer is among the messages, with the id that is returned."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        try:
            self._sock.sendall(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        except UnicodeEncodeError as problem:
            raise no_text(problem) from None
        except OSError as problem:
            raise self._gone(problem) from None
        return self._next

    def message(self, wait: float | None = None, *, reader: int = -1) -> "dict[str, Any]":
        """The next notification or answer, as it is. Raises ConnectionGone at the end.

        `reader` is the descriptor that it is for: BrokenPipeError when nobody reads there.
        """
        return self._held.pop(0) if self._held else self._message(wait, reader=reader)

    def notices(self, *, reader: int = -1) -> "Iterator[tuple[str, Any]]":
        """What the host tells by itself, as (method, params). Raises as `message` does."""
        while True:
            message = self.message(reader=reader)
            if "method" in message:
                yield message["method"], message.get("params")

    def _message(
        self, wait: float | None, method: str = "", *, reader: int = -1
    ) -> "dict[str, Any]":
        while True:
            at = self._data.find(b"\n", self._seen)
            if at >= 0:
                line = bytes(self._data[:at])
                del self._data[: at + 1]
                self._seen = 0
                found = self._read(line)
                if found.get("id") in self._greetings and "method" not in found:
                    self._greetings.remove(found["id"])
                    result_of(found)
                elif found:
                    return found
                continue
            self._seen = len(self._data)
            if reader >= 0:
                from .reader import ready

                ready((self,), reader)
            self._data += self._received(wait, method)

    def _received(self, wait: float | None, method: str) -> bytes:
        """The next bytes. A call that waits is given up when there is no use in waiting."""
        quick = _LOOK if method else wait  # notices come when they come
        self._sock.settimeout(quick if wait is None or quick is None else min(quick, wait))
        try:
            data = self._sock.recv(_CHUNK)
        except TimeoutError:
            data = self._waited(wait, method)
        except OSError as problem:
            raise self._gone(problem) from None
        if not data:
            raise self._gone(None)
        return data

    def _waited(self, wait: float | None, method: str) -> bytes:
        from .silence import LOOK_SECONDS, READS, TOLD_SECONDS, Silence

        silence = Silence(self._sock, self.path)
        gone, told = _LOOK, self._tell is None
        while method and (wait is None or gone < wait):
            silence.look(LOOK_SECONDS, greeted=not self._greetings, reads=method in READS)
            if not told and gone >= TOLD_SECONDS and self._tell is not None:
                self._tell(silence.waits_for())
                told = True
            self._sock.settimeout(LOOK_SECONDS)
            try:
                return self._sock.recv(_CHUNK)
            except TimeoutError:
                gone += LOOK_SECONDS
            except OSError as problem:
                raise self._gone(problem) from None
        raise ConnectionGone(
            f"The daemon at {self.path} did not answer in {wait:g} seconds.",
            "See: dragoman doctor",
        )

    def _read(self, line: bytes) -> "dict[str, Any]":
        try:
            found = json.loads(line) if line else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ConnectionGone(
                f"What listens at {self.path} is not the daemon.",
                "End it, or choose another folder: DRAGOMAN_DATA_DIR.",
            )
        return found

    def _gone(self, problem: OSError | None) -> ConnectionGone:
        why = f": {problem.strerror}" if problem is not None and problem.strerror else ""
        return ConnectionGone(f"The daemon ended the connection{why}.", "See: dragoman logs")


def result_of(message: "dict[str, Any]") -> "Any":
    """What an answer holds. Raises the host's Fault when it is an error."""
    if "error" in message:
        raise fault_of(message["error"])
    return message.get("result")
