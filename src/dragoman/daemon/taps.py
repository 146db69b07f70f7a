"""Shows the lines of connections to whoever follows them. Off, and without cost, by default."""

from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, Any

from dragoman.daemon.guests import Guest, Guests
from dragoman.dialects.sniff import AnyHearer, which
from dragoman.observe.redact import HIDDEN, is_secret, redact, scrub
from dragoman.wire.lines import UNSEEN, Ends, Lines
from dragoman.wire.link import Hearer, tell_overlong

if TYPE_CHECKING:
    from dragoman.wire.frames import Frames

Told = Callable[[dict[str, Any]], None]
_SHOWN = 16_384  # characters of one line
# Looking for secrets takes a microsecond for each character, in which nobody else is served: what
# is never shown is not looked at. The rest is for what becomes shorter when its secrets are hidden.
_LOOKED_AT = 20_480
_LEAST = 256  # of a text, however little room is left
_SET = ("value", "oldValue", "newValue")
_PATHS = ("path", "prop")
_LONGEST = 16 * 1024 * 1024
_BINARY = 2  # the frames with a higher code are control frames


class Taps:
    """All taps of one process. While nobody follows, no connection is touched."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        self._followers: list[tuple[object, Told]] = []
        self._known: dict[Guest, tuple[int, str]] = {}  # its number and what it speaks
        self._count = 0

    def follow(self, own: object, told: Told) -> Callable[[], None]:
        """Be told every line of every connection that does not follow; returns how to stop.

        Followers are not shown to each other: each would be told what the other is told, forever.
        """
        entry = (own, told)
        self._followers.append(entry)
        if len(self._followers) == 1:
            self._guests.on_enter.append(self._attach)
            for guest in tuple(self._guests.all):
                if guest.hearer is not None:
                    guest.hearer = self._attach(guest, guest.hearer)

        def stop() -> None:
            if entry in self._followers:
                self._followers.remove(entry)
                if not self._followers:
                    self._guests.on_enter.remove(self._attach)
                    for guest in tuple(self._known):
                        self._detach(guest)

        return stop

    def _attach(self, guest: Guest, hearer: Hearer) -> Hearer:
        self._count += 1
        self._known[guest] = (self._count, self._guests.all[guest])
        guest.spy = partial(self._written, guest, _Out(guest.peer.transport in ("ws", "wss")))
        return _Tap(hearer, partial(self._show, guest, "in"))

    def _detach(self, guest: Guest) -> None:
        self._known.pop(guest, None)
        if isinstance(guest.hearer, _Tap):
            guest.hearer = guest.hearer.inner
        guest.spy = None

    def _written(self, guest: Guest, out: "_Out", data: bytes) -> None:
        for line in out.messages(data):
            self._show(guest, "out", line)

    def _show(self, guest: Guest, direction: str, line: bytes) -> None:
        number, dialect = self._known.get(guest, (0, "any"))
        if guest not in self._guests.all:
            self._known.pop(guest, None)
        if any(own is guest for own, _ in self._followers):
            return
        hearer = guest.hearer.inner if isinstance(guest.hearer, _Tap) else guest.hearer
        if dialect == "any":  # where any is taken, that of the first line
            dialect = getattr(hearer, "dialect", "") or which(line)
        row: dict[str, Any] = {
            "connection": f"{dialect}-{number}",
            "client": _client(hearer),
            "dialect": dialect,
            "peer": guest.peer.label,
            "direction": direction,
            "at": time_ns() // 1_000_000,
            "line": hidden(line),
        }
        for _, told in tuple(self._followers):
            told(row)


class _Tap:
    """Between a connection and its dialect: shows every line before it is heard."""

    wants_ends = True

    def __init__(self, inner: Hearer, show: Callable[[bytes], None]) -> None:
        self.inner = inner
        self._show = show
        self.max_line = inner.max_line
        self.limit_counts_newline = inner.limit_counts_newline
        self.max_pending = inner.max_pending
        self.ended = inner.ended
        self.lost = inner.lost

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            self._show(line)
        self.inner.hear(lines)

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        tell_overlong(self.inner, size, ends)


def _client(hearer: object) -> str:
    """The id under which a connection is known to the engine; empty while it is not."""
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
        text = _without_secrets(text, msgspec.json.decode(line))
    except (msgspec.DecodeError, RecursionError):  # it may be nested as deep as it likes
        return scrub(_whole_words(text, _LOOKED_AT))[:_SHOWN]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _without_secrets(text: str, value: object) -> str:
    """The text of a value, as much as can be shown of it."""
    import msgspec

    if not isinstance(value, dict | list):
        return text
    if len(text) > _LOOKED_AT:
        value, _ = _beginning(value, _LOOKED_AT)
        text = msgspec.json.encode(value).decode()
    clean = redact(_without_settings(_without_environment(value)))
    return scrub(text) if clean == value else msgspec.json.encode(clean).decode()


def _beginning(value: object, room: int) -> tuple[object, int]:
    """As much of a value as has room when it is written down, and the room that is left."""
    made: Any
    if isinstance(value, str):
        return _whole_words(value, max(room, _LEAST)), room - len(value) - 2
    if isinstance(value, dict):
        made = {}
        for name, one in value.items():
            if room > 0 or name in _PATHS:  # a path may say that what stands before it is secret
                shown, room = _beginning(one, room - len(name) - 4)
                made[_whole_words(name, _LOOKED_AT)] = shown
        return made, room
    if isinstance(value, list):
        made = []
        for one in value:
            if room <= 0:
                break
            shown, room = _beginning(one, room - 1)
            made.append(shown)
        return made, room
    return value, room - 4


def _whole_words(text: str, room: int) -> str:
    """The beginning of a text; its last word is left out where half of it would not be known."""
    if len(text) <= room:
        return text
    return text[:room].rpartition(" ")[0] or text[:room]


def _without_environment(value: object) -> object:
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


def _without_settings(value: object) -> object:
    """The configuration's values beside the paths that name them; an app is given its secrets."""
    if isinstance(value, list):
        return [_without_settings(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _without_settings(one) for name, one in value.items()}
    path = value.get(_PATHS[0], value.get(_PATHS[1]))
    secret = isinstance(path, str) and is_secret(path.rpartition(".")[2])
    # What an app asked for by its path comes alone, and only the request says what it is.
    secret = secret or (value.keys() == {"value"} and isinstance(value["value"], str))
    if secret:
        made |= {name: HIDDEN for name in _SET if made.get(name) not in (None, "")}
    return made
