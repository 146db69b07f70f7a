"""Server-sent events: of all sessions, of one, and what the dashboard needs in one stream."""

from typing import Annotated, Any
from uuid import uuid4

import msgspec
from msgspec import Meta

from dragoman.engine.events import Who
from dragoman.engine.hub import Shape
from dragoman.engine.reading import counted

from .. import views
from ..http import Stream
from ..outlet import Feed, Outlet
from .table import Call, Route

Place = Annotated[int, Meta(ge=0, le=2**53)]


class SinceQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`since` (or Last-Event-ID): what came after it is sent first. Without: only what is new."""

    since: Place | None = None
    passing: bool = False


class SessionSince(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    since: Place | None = None


class LiveQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str = ""
    since: Place | None = None
    wire: bool = False


def _since(call: Call[Any, Any]) -> int | None:
    last = counted(call.request.header("last-event-id"))
    since: int | None = call.query.since if last is None else last
    return since


async def events(call: Call[None, SinceQuery]) -> Stream:
    """Kept events of every session, in the order of the store; the id is their place there."""
    shape = call.gate.shape(call.query.passing)
    since = _since(call)
    newest = await call.door.reached()
    if since is not None:  # a place that was never reached is of another store
        since = min(since, newest)
    return stream_all(call, call.who, shape, b": hello\n\n", since)


def stream_all(
    call: Call[Any, Any], who: Who, shape: Shape[bytes], hello: bytes, since: int | None = None
) -> Stream:
    """What a shape says of all sessions."""

    def begin(outlet: Outlet) -> None:
        feed = Feed()
        watch = call.door.watch_all(who, shape, feed.deliver, lambda: feed.paused, since=since)
        feed.join(outlet, watch)
        outlet.write(hello)
        call.gate.keep_awake(outlet)

    return Stream(begin)


async def session_events(call: Call[None, SessionSince]) -> Stream:
    """Everything one session does, deltas included."""
    id = call.path["id"]
    feed = Feed()
    shape = await call.door.shape_of(id, "sse", views.EventShape())
    watch = await call.door.watch(
        id, call.who, shape, feed.deliver, lambda: feed.paused, since=_since(call)
    )

    def begin(outlet: Outlet) -> None:
        outlet.write(b": hello\n\n")
        feed.join(outlet, watch)
        call.gate.keep_awake(outlet)

    return Stream(begin)


async def live(call: Call[None, LiveQuery]) -> Stream:
    """One stream for one page: all sessions in short, one session in full, clients, the wire."""
    from ..board import Board

    # Two pages of one browser are two clients: one may leave while the other stays.
    who = msgspec.structs.replace(call.who, id=f"{call.who.id}-{uuid4().hex[:8]}")
    board = Board(call.gate, who)
    query = call.query
    if query.session:
        await board.follow(query.session, query.since)
    if not call.door.health.stalled:  # it would wait until the store is back, and say nothing
        await call.door.reached()

    def begin(outlet: Outlet) -> None:
        board.begin(outlet, wire=query.wire)
        call.gate.keep_awake(outlet)

    return Stream(begin)


ROUTES = [
    Route("GET", "/api/events", events, "Events of all sessions as they happen", "live",
          query=SinceQuery, streams=True, may_fail=(400,)),
    Route("GET", "/api/sessions/{id}/stream", session_events,
          "Everything one session does as it happens", "live", query=SessionSince, streams=True,
          may_fail=(400, 404, 409)),
    Route("GET", "/api/live", live, "What the dashboard shows", "live", query=LiveQuery,
          streams=True, may_fail=(400, 404, 409)),
]  # fmt: skip
