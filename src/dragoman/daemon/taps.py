"""Shows the lines of connections to whoever follows them. Off, and without cost, by default."""

from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, Any

from dragoman.dialects.sniff import AnyHearer, which
from dragoman.observe.redact import redact, scrub
from dragoman.wire.lines import Lines
from dragoman.wire.link import Link

from .guests import Guest, Guests

if TYPE_CHECKING:
    from dragoman.wire.frames import Frames

Told = Callable[[dict[str, Any]], None]
_SHOWN = 16_384  # characters of one line
_LONGEST = 16 * 1024 * 1024
_BINARY = 2  # the frames with a higher code are control frames


class Taps:
    """All taps of one process. While nobody follows, no connection is touched."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        self._followers: list[tuple[Link, Told]] = []
        self._numbers: dict[Guest, int] = {}
        self._count = 0

    def follow(self, own: Link, told: Told) -> Callable[[], None]:
        """Be told every line of every connection that does not follow; returns how to stop.

        Followers are not shown to each other: each would be told what the other is told, forever.
        """
        entry = (own, told)
        self._followers.append(entry)
        if len(self._followers) == 1:
            self._guests.on_enter.append(self._attach)
            for guest in tuple(self._guests.all):
                self._attach(guest)

        def stop() -> None:
            if entry in self._followers:
                self._followers.remove(entry)
                if not self._followers:
                    self._guests.on_enter.remove(self._attach)
                    for guest in tuple(self._numbers):
                        self._detach(guest)

        return stop

    def _attach(self, guest: Guest) -> None:
        self._count += 1
        self._numbers[guest] = self._count

        def heard(lines: list[bytes]) -> None:
            for line in lines:
                self._show(guest, "in", line)

        guest.tap = heard
        link: Any = guest.link
        if hasattr(link, "spy"):
            link.spy = partial(self._written, guest, _Out(link.peer.transport in ("ws", "wss")))

    def _detach(self, guest: Guest) -> None:
        self._numbers.pop(guest, None)
        guest.tap = None
        link: Any = guest.link
        if hasattr(link, "spy"):
            link.spy = None

    def _written(self, guest: Guest, out: "_Out", data: bytes) -> None:
        for line in out.messages(data):
            self._show(guest, "out", line)

    def _show(self, guest: Guest, direction: str, line: bytes) -> None:
        number = self._numbers.get(guest, 0)
        if guest not in self._guests.all:
            self._numbers.pop(guest, None)
        if any(own is guest.link for own, _ in self._followers):
            return
        dialect = _dialect(guest, line)
        row: dict[str, Any] = {
            "connection": f"{dialect}-{number}",
            "client": _client(guest),
            "dialect": dialect,
            "peer": guest.link.peer.label,
            "direction": direction,
            "at": time_ns() // 1_000_000,
            "line": hidden(line),
        }
        for _, told in tuple(self._followers):
            told(row)


def _dialect(guest: Guest, line: bytes) -> str:
    """The protocol of a connection; where any is taken, that of its first line."""
    if guest.dialect != "any":
        return guest.dialect
    return getattr(guest.inner, "dialect", "") or which(line)


def _client(guest: Guest) -> str:
    """The id under which a connection is known to the engine; empty while it is not."""
    hearer: Any = guest.inner
    if isinstance(hearer, AnyHearer):
        hearer = hearer.inner
    who = hearer._who if hasattr(hearer, "_who") else getattr(hearer, "who", None)
    return str(who.id) if who is not None else ""


def _frames() -> "Frames":
    from dragoman.wire.frames import Frames

    return Frames(_LONGEST, from_client=False)


class _Out:
    """Cuts what is written into messages again."""

    def __init__(self, framed: bool) -> None:
        self._frames = _frames() if framed else None
        self._lines = Lines(_LONGEST)

    def messages(self, data: bytes) -> list[bytes]:
        if self._frames is None:
            return self._lines.feed(data)
        return [payload for op, payload in self._frames.feed(data) if op <= _BINARY]


def hidden(line: bytes) -> str:
    """A line with its secrets hidden, cut to a length that can be shown."""
    import msgspec

    text = line.decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return scrub(text)[:_SHOWN]
    if isinstance(value, dict | list):
        clean = redact(_without_environment(value))
        if clean != value:
            text = msgspec.json.encode(clean).decode()
        else:
            text = scrub(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _without_environment(value: Any) -> Any:
    """Clients send their whole environment in `env`: names are shown, values are not."""
    if isinstance(value, dict):
        return {
            name: dict.fromkeys(one, "***")
            if name == "env" and isinstance(one, dict)
            else _without_environment(one)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_without_environment(one) for one in value]
    return value
