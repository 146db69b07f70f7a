"""LF framing with limits, without I/O.

Bytes go in as they arrive, complete lines come out. Only LF ends a line: a splitter that knows
more line ends would cut JSON strings that hold U+2028 and its like.
"""

_CR = b"\r"[0]
_ENDS = 4_096  # bytes kept of both ends of a line that is over the limit
READ_ON = 16  # times its limit: so far an over-long line is read for the id at its end

Ends = tuple[bytes, bytes]
"""The first and the last bytes of a line that was not kept: enough to find whose it was."""
UNSEEN: Ends = (b"", b"")


class Lines:
    """Cuts a byte stream into lines.

    An unfinished line is gathered in one growing buffer and copied out once, at its newline. A line
    over the limit is reported and skipped without being kept. It is reported as soon as it is over
    the limit; with `max_pending` only at its newline, or when more than that came without one.
    """

    __slots__ = (
        "_ceiling", "_head", "_last", "_most", "_reported", "_seen", "_skipping", "_tail", "ends",
        "idle", "limits", "overlong",
    )  # fmt: skip

    def __init__(self, limit: int, *, counts_newline: bool = False, max_pending: int = 0) -> None:
        if limit < 2:
            raise ValueError("the limit of a line must be at least two bytes")
        self.limits = (limit, counts_newline, max_pending)
        self._most = limit - 1 if counts_newline else limit  # bytes of a line without its newline
        # A CR before the newline to come is no part of the line: allow one byte for it.
        self._ceiling = max(max_pending, self._most + 1)
        self.idle = True  # nothing is held: a new one would go on just the same
        self._tail: bytearray | None = None
        self._skipping = False
        self._reported = False
        self._seen = 0  # bytes of the line that is being skipped
        self.overlong: list[tuple[int, int]] = []
        """Over-long lines of the last `feed`: (lines returned before it, bytes seen of it)."""
        self.ends: list[Ends] = []  # of each of these
        self._head = self._last = b""

    @property
    def pending(self) -> int:
        """Bytes held of a line that has no newline yet."""
        return len(self._tail) if self._tail else 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk; return the lines it completes, without LF, one CR and empty lines."""
        if self.overlong:
            self.overlong, self.ends = [], []
        cut = data.find(b"\n")
        if cut < 0:
            self._keep(data, 0)
            return []
        if self.idle and len(data) <= self._most:
            # Nothing pending and too short to break the limit: no line needs to be measured.
            if cut == len(data) - 1:
                if cut and data[cut - 1] == 13:
                    cut -= 1
                return [data[:cut]] if cut else []
            lines = data.split(b"\n")
            rest = lines.pop()
            if rest:
                self._tail = bytearray(rest)
                self.idle = False
            if _CR in data:
                lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
            return lines if all(lines) else [line for line in lines if line]
        return self._measured(data, cut)

    def end(self) -> list[bytes]:
        """The stream is over: return the last line if it had no newline."""
        self.overlong, self.ends = [], []
        line = bytes(self._tail or b"")
        if self._skipping and not self._reported:
            self._tell(0, self._seen, (self._head, self._last))
        self._tail = None
        self._skipping = self._reported = False
        self.idle = True
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self._most:
            self._tell(0, len(line), ends_of(line))
            return []
        return [line] if line else []

    def _keep(self, data: bytes, before: int) -> None:
        """Hold the beginning of a line, or count it when the line is over the limit already."""
        self.idle = False
        if not self._skipping:
            size = self.pending + len(data)
            if size <= self._most + 1:
                if self._tail is None:
                    self._tail = bytearray(data)
                else:
                    self._tail += data
                return
            held = bytes(self._tail or b"")
            self._seen = len(held)
            self._head = (held[:_ENDS] + data[: max(_ENDS - len(held), 0)])[:_ENDS]
            self._last = held[-_ENDS:]
            self._tail = None
            self._skipping = True
        self._skip(data)
        if self._seen > self._ceiling and not self._reported:
            self._reported = True
            self._tell(before, self._seen, (self._head, self._last))

    def _skip(self, data: bytes) -> None:
        self._seen += len(data)
        self._last = (self._last + data[-_ENDS:])[-_ENDS:]

    def _tell(self, before: int, size: int, ends: Ends) -> None:
        self.overlong.append((before, size))
        self.ends.append(ends)

    def _measured(self, data: bytes, cut: int) -> list[bytes]:
        lines: list[bytes] = []
        start = 0
        self.idle = True  # once the last of these lines has ended
        while cut >= 0:
            if self._skipping:
                if not self._reported:
                    self._skip(data[start:cut])
                    self._tell(len(lines), self._seen, (self._head, self._last))
                self._skipping = self._reported = False
            else:
                if self._tail is None:
                    line = data[start:cut]
                else:
                    self._tail += data[start:cut]
                    line = bytes(self._tail)
                    self._tail = None
                if line.endswith(b"\r"):
                    line = line[:-1]
                if len(line) > self._most:
                    self._tell(len(lines), len(line), ends_of(line))
                elif line:
                    lines.append(line)
            start = cut + 1
            cut = data.find(b"\n", start)
        if start < len(data):
            self._keep(data[start:], len(lines))
        return lines


def ends_of(line: bytes) -> Ends:
    """Both ends of a line that is known whole."""
    return line[:_ENDS], line[-_ENDS:]
