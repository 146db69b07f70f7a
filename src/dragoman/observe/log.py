"""Structured log lines: time, level, area, event, key=value. Never on stdout, which may be a wire.

    log = get_log("store")
    log.info("opened", path=path, sessions=12)

Values bound with `bind` (session, turn, client) are added to every line of that task. Secrets are
hidden. A line below the level costs one comparison. The `logging` module is not needed; `capture`
joins libraries that use it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .redact import HIDDEN, is_secret, scrub

DEBUG, INFO, WARNING, ERROR, OFF = 10, 20, 30, 40, 100
LEVELS = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR, "off": OFF}

_MAX_VALUE = 2_000  # characters of one value; a log is not a transcript

_bound: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("dragoman_log", default=())


class _Sink:
    """Where lines go, shared by all logs of the process."""

    __slots__ = ("as_json", "fd", "level", "limit", "lost", "parts", "path", "size")

    def __init__(self) -> None:
        self.level = WARNING  # the least of any part
        self.parts: dict[str, int] = {}  # areas with a level of their own; "" is all others
        self.as_json = False
        self.path = ""
        self.fd = -1  # -1: stderr
        self.size = 0
        self.limit = 0
        self.lost = 0  # lines that could not be written (disk full, pipe closed)

    def wants(self, area: str, level: int) -> bool:
        """Whether the area's own level, or that of the nearest one above it, lets a line pass."""
        if not self.parts:
            return self.level <= level
        while area not in self.parts:
            area = area.rpartition(".")[0]
        return self.parts[area] <= level

    def write(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace")
        try:
            if self.fd < 0:
                sys.stderr.write(line)
                sys.stderr.flush()
                return
            if self.limit and self.size + len(data) > self.limit:
                self.rotate()
            os.write(self.fd, data)
            self.size += len(data)
        except (OSError, ValueError):
            # A log that cannot be written must not stop the work; `lost` is shown by `status`.
            self.lost += 1

    def open(self, path: str) -> None:
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0)  # a link could lead our lines into another file
        self.fd = os.open(path, flags, 0o600)
        self.path = path
        self.size = os.fstat(self.fd).st_size

    def rotate(self) -> None:
        """Keep one older file beside the current one."""
        os.replace(self.path, f"{self.path}.1")
        os.close(self.fd)
        self.open(self.path)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        self.path = ""


_sink = _Sink()
_listeners: list[Callable[[str, str, str, str, dict[str, str]], None]] = []


class Log:
    """The log of one area of the program."""

    __slots__ = ("area",)

    def __init__(self, area: str) -> None:
        self.area = area

    def debug(self, event: str, **pairs: Any) -> None:
        if _sink.level <= DEBUG:
            _write("debug", self.area, event, pairs)

    def info(self, event: str, **pairs: Any) -> None:
        if _sink.level <= INFO:
            _write("info", self.area, event, pairs)

    def warning(self, event: str, **pairs: Any) -> None:
        if _sink.level <= WARNING:
            _write("warning", self.area, event, pairs)

    def error(self, event: str, **pairs: Any) -> None:
        """An error; inside an `except` block the exception is added by itself."""
        if _sink.level <= ERROR:
            problem = sys.exc_info()[1]
            if problem is not None and "problem" not in pairs:
                pairs["problem"] = f"{type(problem).__name__}: {problem}"
            _write("error", self.area, event, pairs)

    def wants(self, level: str) -> bool:
        """Whether a line of this level is written; ask before making a costly value."""
        return _sink.wants(self.area, LEVELS[level])


def get_log(area: str) -> Log:
    """The log of an area, such as "store" or "gateway.push"; `areas.py` lists ours."""
    return Log(area)


def configure(
    level: str = "warning",
    file: str | None = None,
    *,
    as_json: bool = False,
    limit: int = 0,
    parts: Mapping[str, str] | None = None,
) -> None:
    """Say what is logged and where; `limit` is the size in bytes at which a file is turned over.

    `parts` are areas with levels of their own, which hold for the areas below them, too. Raises
    OSError when the file cannot be opened, ValueError for an unknown level.
    """
    for one in (level, *(parts or {}).values()):
        if one not in LEVELS:
            raise ValueError(f"unknown log level {one!r}: use one of {', '.join(LEVELS)}")
    _sink.close()
    _sink.parts = {area: LEVELS[one] for area, one in parts.items()} if parts else {}
    if _sink.parts:
        _sink.parts.setdefault("", LEVELS[level])
    _sink.level = min(_sink.parts.values(), default=LEVELS[level])
    _sink.as_json = as_json
    _sink.limit = limit
    if file:
        _sink.open(file)


def on_screen() -> bool:
    """Whether lines go to stderr, beside what a command prints there itself."""
    return _sink.fd < 0


def lost() -> int:
    """How many lines could not be written."""
    return _sink.lost


def listen(
    told: Callable[[str, str, str, str, dict[str, str]], None],
) -> Callable[[], None]:
    """Be told every line as (time, level, area, event, pairs); returns how to stop.

    Whoever listens must not log itself.
    """
    _listeners.append(told)

    def stop() -> None:
        if told in _listeners:
            _listeners.remove(told)

    return stop


@contextmanager
def bind(**pairs: Any) -> Iterator[None]:
    """Add these pairs to every line written inside the block and in tasks started there."""
    token = _bound.set((*(one for one in _bound.get() if one[0] not in pairs), *pairs.items()))
    try:
        yield
    finally:
        _bound.reset(token)


def capture(level: str = "warning") -> None:
    """Send what libraries log through the standard module to our sink."""
    import logging

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            name = "debug"
            for known, number in LEVELS.items():
                if number <= record.levelno and number != OFF:
                    name = known
            if _sink.level <= LEVELS[name]:
                _write(name, record.name, record.getMessage(), {})

    root = logging.getLogger()
    root.handlers[:] = [Forward()]
    root.setLevel(max(LEVELS[level], 1))


def _write(level: str, area: str, event: str, pairs: dict[str, Any]) -> None:
    if _sink.parts and not _sink.wants(area, LEVELS[level]):
        return
    now = time.time()
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
    items = [(name, value) for name, value in _bound.get() if name not in pairs]
    items += pairs.items()
    if _listeners:
        shown = {name: _shown(name, value) for name, value in items}
        for told in tuple(_listeners):
            told(stamp, level, area, scrub(event), shown)
    if _sink.as_json:
        _sink.write(_json_line(stamp, level, area, event, items))
        return
    words = [stamp, level, area, word(scrub(event))]
    words += (f"{name}={word(_shown(name, value))}" for name, value in items)
    _sink.write(" ".join(words) + "\n")


def _json_line(stamp: str, level: str, area: str, event: str, items: list[tuple[str, Any]]) -> str:
    import json

    row = {"time": stamp, "level": level, "area": area, "event": scrub(event)}
    for name, value in items:
        plain = isinstance(value, int | float | bool) and not is_secret(name)
        row[f"{name}_" if name in row else name] = value if plain else _shown(name, value)
    return json.dumps(row, ensure_ascii=False) + "\n"


def _shown(name: str, value: Any) -> str:
    if is_secret(name) and value not in (None, "", True, False):
        return HIDDEN
    text = scrub(value if isinstance(value, str) else str(value))
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"


def word(text: str) -> str:
    """The text as one word: quoted when it has spaces, quotes, = or control characters."""
    if text and text.isprintable() and not any(char in text for char in ' "=\\'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = (char if char.isprintable() else repr(char)[1:-1] for char in escaped)
    return f'"{"".join(shown)}"'
