"""Events as they are, wire lines of all connections, and who is connected."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Event, Who
from dragoman.engine.faults import BadInput, Fault
from dragoman.wire.codec import encode
from dragoman.wire.jsonrpc import notification
from dragoman.wire.link import Blob

from . import answers
from .shapes import Name, Tap, Unwatch, Watch

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from .caller import Caller

_MOST = 64  # watches of one connection


class Native(msgspec.Struct, frozen=True):
    """Speaks `dragoman/event`, the same for every watcher; not `passing`: kept events only."""

    passing: bool

    def speak(self, events: Sequence[Event]) -> Blob | None:
        said = [line(event) for event in events if self.passing or event.seq]
        return Blob(said) if said else None


_HEAD = b'{"jsonrpc":"2.0","method":"dragoman/event","params":{"session":'


def line(event: Event) -> bytes:
    """One event as a notification."""
    return b'%b%b,"seq":%d,"gseq":%d,"at":%d,"event":%b}}' % (
        _HEAD, encode(event.session), event.seq, event.gseq, event.at, encode(event.body)
    )  # fmt: skip


async def watch(call: "Call[Caller]", params: Watch) -> None:
    """Follow one session or all; the answer comes before the first event.

    A second watch of the same takes the place of the first.
    """
    conn = call.conn
    door = conn.door
    conn.held.counted += 1
    name = f"w{conn.held.counted}"
    key = params.session_id or ""
    own = ("dragoman" if params.passing else "dragoman kept", Native(params.passing))
    newest = 0
    if params.session_id is None:
        newest = await door.reached()
        shape = door.shared(*own)
    else:
        shape = await door.shape_of(key, *own)
    for other in [one for one, known in conn.held.watches.items() if known.hub.session == key]:
        conn.held.watches.pop(other).close()
    if len(conn.held.watches) >= _MOST:
        raise BadInput(f"This connection has {_MOST} watches already.", "End one first.")

    def begun(last: int, newest: int) -> None:
        call.reply(answers.Watching(name, last, newest))

    send, paused, since = conn.link.send_blob, conn.is_paused, params.since
    if params.session_id is not None:
        draft = params.draft and params.passing
        made = await door.watch(
            key, conn.who, shape, send, paused, since=since, draft=draft, begun=begun
        )
    else:
        since = None if since is None else min(since, newest)
        made = door.watch_all(conn.who, shape, send, paused, since=since, begun=begun)
    if conn.gone:
        made.close()
    else:
        conn.held.watches[name] = made


def unwatch(conn: "Caller", params: Unwatch) -> dict[str, object]:
    found = conn.held.watches.pop(params.watch, None)
    if found is not None:
        found.close()
    return {"watch": params.watch, "ended": found is not None}


def clients(conn: "Caller", _: None) -> answers.Clients:
    return answers.Clients(
        [
            answers.ClientRow(key, one.who.dialect, one.who.peer, one.who.name, one.since)
            for key, one in conn.door.visitors.clients.items()
        ]
    )


def hello(conn: "Caller", params: Name) -> dict[str, str]:
    """Take a name, before anything is watched with the old one."""
    who = conn.who
    conn.door.visitors.leave(who)
    conn.who = Who(who.dialect, who.peer, params.name[:100], who.id)
    conn.door.visitors.arrive(conn.who)
    return {"id": who.id, "name": conn.who.name}


def tap(conn: "Caller", params: Tap) -> dict[str, bool]:
    """Show the wire lines of all other connections, as `dragoman/wire` notifications.

    With a session: of the connections that are attached to it or name it, and every other line
    that mentions it.
    """
    taps = conn.door.facts.taps
    if taps is None:
        raise Fault("Taps are not available")
    if conn.held.untap is not None:
        conn.held.untap()
        conn.held.untap = None
    if not params.on:
        return {"on": False}
    lost = 0
    session = params.session_id
    attached: set[str] = set()

    def belongs(row: dict[str, Any]) -> bool:
        if session is None or row["connection"] in attached:
            return True
        named = session in row["line"]
        present = {one.id for one in conn.door.present(session)}
        if row["client"] in present or named and row["direction"] == "in":
            attached.add(row["connection"])
            return True
        return named

    def told(row: dict[str, Any]) -> None:
        nonlocal lost
        if not belongs(row):
            return
        if conn.link.paused:
            lost += 1
            return
        conn.link.send(notification("dragoman/wire", {**row, "lost": lost}))
        lost = 0

    conn.held.untap = taps.follow(conn.link, told)
    return {"on": True}
