"""What a command prints: all of it in a file when it is much, its two ends in the result."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable

from dragoman.engine.visible import many

MAX_LINES = 2000
MAX_BYTES = 51_200
_HEAD_LINES = 800
_HEAD_BYTES = 20_480
_PROGRESS = 4096  # bytes of one progress event
_RATE = 262_144  # bytes of progress per second; the rest is left out of the stream
_SPOOLED = 64 * 1024 * 1024  # bytes kept in the file
_BUFFER = 1 << 18
_FILES = 200  # output files kept in the directory
_KEPT = 512 * 1024 * 1024  # bytes kept in the directory


class Outputs:
    """A private directory for full outputs; the oldest files go when there are many."""

    __slots__ = ("__weakref__", "_path")

    def __init__(self, path: str | None = None) -> None:
        self._path = path

    @property
    def kept(self) -> str:
        """The directory when it outlives us; empty: there is none."""
        return self._path or ""

    @property
    def path(self) -> str:
        """The directory; one of our own is made when it is first needed, and goes with us."""
        if self._path is None:
            import shutil
            import tempfile
            import weakref

            self._path = tempfile.mkdtemp(prefix="dragoman-")
            weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        return self._path

    def create(self) -> tuple[int, str]:
        """A new file, open for writing."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self._prune()
        name = os.path.join(self.path, f"bash-{os.urandom(6).hex()}.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600), name

    def _prune(self) -> None:
        logs: list[tuple[int, int, str]] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith("bash-") and entry.name.endswith(".log"):
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        logs.append((found.st_mtime_ns, found.st_size, entry.path))
        kept = 0
        for number, (_, size, path) in enumerate(sorted(logs, reverse=True)):
            kept += size
            if number >= _FILES - 1 or kept > _KEPT:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


class Capture:
    """Takes output as it comes. Memory stays small whatever the amount.

    `take` is quick and never blocks; `flush` writes to the disk and belongs into a thread.
    """

    def __init__(self, outputs: Outputs, limit: int = 0) -> None:
        self.outputs = outputs
        self.limit = limit or MAX_BYTES  # bytes that the result may have
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0
        self.feeds = 0
        self.path: str | None = None
        self.problem = ""
        self._fd = -1
        self._waiting = bytearray()
        self._spooled = 0
        self.told: Callable[[], object] | None = None  # of output that came

    def take(self, data: bytes) -> bool:
        """Add output; True when `flush` is due."""
        self.total += len(data)
        self.feeds += data.count(b"\n")
        if len(self.head) < self.limit:
            self.head += data[: self.limit - len(self.head)]
        self.tail += data
        if len(self.tail) > 2 * self.limit:
            del self.tail[: -self.limit]
        if self._spooled + len(self._waiting) < _SPOOLED:
            self._waiting += data
        if self.told is not None:
            self.told()
        return len(self._waiting) >= _BUFFER

    @property
    def cut(self) -> bool:
        """Whether the result cannot hold everything."""
        return self.total > self.limit or self.feeds > MAX_LINES

    @property
    def raw(self) -> bytes | None:
        """All that was printed, when the result can hold it and it is no UTF-8."""
        if self.cut:
            return None
        try:
            self.head.decode("utf-8")
        except UnicodeDecodeError:
            return bytes(self.head)
        return None

    def flush(self) -> None:
        """Write what waits to the file. A full disk costs the file, not the command."""
        data, self._waiting = bytes(self._waiting), bytearray()
        if self.problem:
            return
        try:
            if self._fd < 0:
                self._fd, self.path = self.outputs.create()
            view = memoryview(data)[: _SPOOLED - self._spooled]
            self._spooled += len(view)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.problem = f"the full output could not be kept: {error.strerror}"

    def finish(self) -> None:
        """Keep the file when the result is cut, else leave none behind."""
        if self.cut:
            self.flush()
        self.close()

    def discard(self) -> None:
        """Leave nothing behind: nobody will be told about the file."""
        self.close()
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def note(self) -> str:
        """What to say about the file."""
        if self.problem:
            return self.problem
        if self.path is None:
            return ""
        part = f", its first {_SPOOLED} bytes" if self.total > _SPOOLED else ""
        return f"full output: {self.path}{part}"

    def text(self) -> str:
        """The output, or its beginning and its end with a mark between them."""
        if not self.cut:
            return self.head.decode("utf-8", "replace")
        whole = self.total <= self.limit
        limit = f"{MAX_LINES} lines" if whole else f"{self.limit} bytes"
        first = self.limit * _HEAD_BYTES // MAX_BYTES
        lines = bytes(self.head[:first]).splitlines(keepends=True)[:_HEAD_LINES]
        head = without_half(b"".join(lines))
        last = bytes(self.head if whole else self.tail)
        room = min(self.limit - first, self.total - len(head))
        last = last[-room:]
        rest = last.split(b"\n")
        keep = MAX_LINES - _HEAD_LINES + last.endswith(b"\n")
        if len(rest) > keep:
            tail = b"\n".join(rest[-keep:])
        elif room >= self.total - len(head):
            tail = last
        elif len(rest) > 1:
            tail = b"\n".join(rest[1:])  # the first line is cut in two
        else:
            tail = without_rest(last)
        left = self.total - len(head) - len(tail)
        gap = "" if head.endswith(b"\n") else "\n"
        mark = f"{gap}... [truncated at {limit}; {many(left, 'byte')} left out here]\n"
        return head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace")


def without_half(data: bytes) -> bytes:
    """Bytes without the beginning of a character at their end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    half = len(decoder.getstate()[0])
    return data[:-half] if half else data


def without_rest(data: bytes) -> bytes:
    """Bytes without the end of a character at their beginning."""
    at = 0
    while at < min(3, len(data)) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[at:]


class Progress:
    """Streams output as text: whole characters, small pieces, at a bearable rate.

    Bytes that are no UTF-8 become lone surrogates (`engine.events.Progress`).
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self._tell = tell
        self._clock = clock
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._since = clock()
        self._sent = 0
        self._missed = 0

    def take(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if not text:
            return
        now = self._clock()
        if now - self._since >= 1.0:
            self._since, self._sent = now, 0
        if self._sent >= _RATE:
            self._missed += len(data)
            return
        if self._missed:
            self._tell(f"\n... [{many(self._missed, 'byte')} not shown]\n")
            self._missed = 0
        self._sent += len(data)
        for piece in pieces(text, _PROGRESS):
            self._tell(piece)


def pieces(text: str, size: int) -> list[str]:
    """The text in parts of at most `size` bytes of UTF-8."""
    if len(text) * 4 <= size or len(text.encode("utf-8", "surrogatepass")) <= size:
        return [text]
    step = size // 4
    if text.isascii():
        step = size
    return [text[at : at + step] for at in range(0, len(text), step)]
