"""What a session did: its time, its children, its files with the way back, and itself as a file."""

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.ports.checkpoints import ChangedFile, Checkpoint, Restored

from .. import views
from ..http import JSON, Response
from ..timeline import Timeline, Totals, TurnRow
from .table import Call, Plain, Route

_PAGE = 2_000
_TYPES = {"json": "application/json", "markdown": "text/markdown; charset=utf-8",
          "html": "text/html; charset=utf-8"}  # fmt: skip
_ENDINGS = {"json": "json", "markdown": "md", "html": "html"}


class TimelineQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`before` a sequence number: older turns."""

    before: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    totals: bool = False


class TimelinePage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Turns, oldest first; `totals` of the whole session when they were asked for."""

    turns: list[TurnRow]
    more: bool = False
    totals: Totals | None = None


class ChangedQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turn: str = ""


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without a turn: the last one that changed files."""

    turn: str = ""


class ExportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["json", "markdown", "html"] = "html"


async def timeline(call: Call[None, TimelineQuery]) -> TimelinePage:
    query = call.query
    id = call.path["id"]
    info = await call.door.info(id)
    end = min(query.before or info.last_seq + 1, info.last_seq + 1)
    totals = None
    if query.totals:
        whole = Timeline(1)
        at = 0
        while page := await call.door.read(id, at, _PAGE):
            whole.take(page)
            at = page[-1].seq
            await asyncio.sleep(0)  # others are served between two pages
        whole.close()
        totals = whole.totals()
    # Backwards from the end, a stretch at a time, until there are turns enough.
    begin, found = end, Timeline(query.limit)
    span = max(200, query.limit * 8)
    while begin > 1:
        begin = max(1, end - span)
        found = Timeline(query.limit + 1)
        at = begin - 1
        while at < end - 1:
            page = await call.door.read(id, at, min(_PAGE, end - 1 - at))
            if not page:
                break
            found.take(page)
            at = page[-1].seq
            await asyncio.sleep(0)
        found.close()
        if len(found.turns) > query.limit:
            break
        span *= 4
    more = len(found.turns) > query.limit
    return TimelinePage(found.turns[-query.limit :], more, totals)


async def children(call: Plain) -> list[SessionInfo]:
    """Sessions that this one began, the oldest first; theirs are asked for by their own ids."""
    await call.door.info(call.path["id"])
    page = await call.door.list(SessionQuery(parent=call.path["id"], limit=500))
    return [views.session(one) for one in reversed(page.sessions)]


async def checkpoints(call: Plain) -> list[Checkpoint]:
    return list(await call.door.checkpoints(call.path["id"]))


async def changes(call: Call[None, ChangedQuery]) -> list[ChangedFile]:
    return list(await call.door.changed(call.path["id"], call.query.turn))


async def undo(call: Call[Undo, None]) -> Restored:
    await call.door.info(call.path["id"])
    return await call.door.undo(call.path["id"], call.body.turn, call.who)


async def redo(call: Plain) -> Restored:
    await call.door.info(call.path["id"])
    return await call.door.redo(call.path["id"], call.who)


class EndWorktree(msgspec.Struct):
    how: Literal["merge", "drop"]


class WorktreeEnd(msgspec.Struct, frozen=True):
    done: str  # in words


async def end_worktree(call: Call[EndWorktree, None]) -> WorktreeEnd:
    await call.door.info(call.path["id"])
    return WorktreeEnd(await call.door.end_worktree(call.path["id"], call.body.how, call.who))


async def export(call: Call[None, ExportQuery]) -> Response:
    id, form = call.path["id"], call.query.format
    info = msgspec.to_builtins(views.session(await call.door.info(id)))
    rows: list[dict[str, Any]] = []
    at = 0
    while page := await call.door.read(id, at, _PAGE):
        for one in page:
            body = msgspec.to_builtins(views.event(one).body)
            rows.append({"seq": one.seq, "at": one.at, "event": body})
        at = page[-1].seq
        await asyncio.sleep(0)
    from dragoman.markup.story import written

    text = await asyncio.to_thread(written, form, info, rows)
    name = "".join(char for char in id if char.isalnum() or char in "-_")[:60]
    headers = {
        "content-disposition": f'attachment; filename="{name}.{_ENDINGS[form]}"',
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(200, text.encode("utf-8", "replace"), _TYPES[form], headers)


ROUTES = [
    Route("GET", "/api/sessions/{id}/timeline", timeline,
          "Turns with their model calls, tools and waits", "sessions", query=TimelineQuery,
          returns=TimelinePage, may_fail=(400, 404)),
    Route("GET", "/api/sessions/{id}/children", children, "Sessions that this one began",
          "sessions", returns=list[SessionInfo], may_fail=(404,)),
    Route("GET", "/api/sessions/{id}/checkpoints", checkpoints, "Turns that changed files",
          "sessions", returns=list[Checkpoint], may_fail=(400, 404, 503)),
    Route("GET", "/api/sessions/{id}/changes", changes, "Changed files with their diffs",
          "sessions", query=ChangedQuery, returns=list[ChangedFile], may_fail=(400, 404, 503)),
    Route("POST", "/api/sessions/{id}/undo", undo, "Put files back to before a turn", "sessions",
          body=Undo, optional_body=True, returns=Restored, may_fail=(400, 403, 404, 409, 503)),
    Route("POST", "/api/sessions/{id}/redo", redo, "Take the last undo back", "sessions",
          returns=Restored, may_fail=(400, 403, 404, 409, 503)),
    Route("POST", "/api/sessions/{id}/worktree", end_worktree,
          "Merge the session's worktree into its repository, or drop it", "sessions",
          body=EndWorktree, returns=WorktreeEnd, may_fail=(400, 403, 404, 409)),
    Route("GET", "/api/sessions/{id}/export", export, "The session as a file", "sessions",
          query=ExportQuery, media="text/html", other_media=(JSON, "text/markdown"),
          may_fail=(400, 404)),
]  # fmt: skip
