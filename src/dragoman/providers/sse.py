"""Server-sent events out of bytes that arrive in any cut. No I/O.

Only the data of an event is kept: every provider repeats the event's name inside it.
"""

_LIMIT = 32 * 1024 * 1024


class EventTooLong(ValueError):
    """An event grew past the limit."""


class EventParser:
    """Takes bytes, gives the data of each finished event.

    Works on bytes throughout, so a character cut in two is whole again before it is decoded.
    """

    __slots__ = ("_data", "_held", "_limit", "_line", "_pieces", "_size", "_skip_lf", "_started")

    def __init__(self, limit: int = _LIMIT) -> None:
        self._line = b""  # the line that has no end yet, before its pieces
        self._pieces: list[bytes] = []
        self._held = 0  # bytes in them
        self._data: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._skip_lf = False  # the last byte was CR: a LF now belongs to it
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that end in this chunk."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk[-1] == 13
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._line:
            if b"\n" not in chunk:
                return self._longer(chunk)
            if self._pieces:
                self._line = b"".join((self._line, *self._pieces))
                self._pieces.clear()
                self._held = 0
            chunk = self._line + chunk
        lines = chunk.split(b"\n")
        self._line = lines.pop()
        found: list[bytes] = []
        for line in lines:
            if not self._started:
                self._started = True
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line:
                if self._data:
                    found.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    self._data.clear()
                    self._size = 0
            elif line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._data.append(value)
                self._size += len(value) + 1
            elif line == b"data":
                self._data.append(b"")
                self._size += 1
        self._check()
        return found

    def _longer(self, chunk: bytes) -> list[bytes]:
        """A long line goes on: it is put together once, at its end."""
        self._pieces.append(chunk)
        self._held += len(chunk)
        self._check()
        return []

    def _check(self) -> None:
        if self._size + len(self._line) + self._held > self._limit:
            raise EventTooLong(f"an event is longer than {self._limit} bytes")

    def flush(self) -> list[bytes]:
        """What stands before the end of the stream without an empty line after it."""
        return self.feed(b"\n\n") if self._line or self._data else []
