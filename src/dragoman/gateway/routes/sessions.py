"""Sessions: list, open, read, change, fork, close, delete."""

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.engine.content import Message
from dragoman.engine.events import Event, Mode
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo, SessionQuery

from .. import views
from ..http import Refusal, Response, reply
from .table import Call, Plain, Route

Count = Annotated[int, Meta(ge=1, le=1000)]
Place = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(max_length=4_096)]


class ListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status: str = ""  # one or several, separated by commas
    agent: str = ""
    cwd: str = ""
    text: str = ""
    archived: bool | None = None
    limit: Count = 100
    cursor: str = ""
    brief: bool = False  # long texts are cut short
    counted: bool = False  # tell how many there are in all


class SessionPage(msgspec.Struct, frozen=True):
    sessions: list[SessionInfo]
    cursor: str = ""
    total: int | None = None


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agent: Name = ""
    cwd: Name = ""
    model: Name = ""
    mode: Mode | None = None
    title: Name = ""
    reasoning: Name = ""
    worktree: bool = False


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only what is given changes."""

    title: Name | None = None
    model: Name | None = None
    mode: Mode | None = None
    reasoning: Name | None = None
    archived: bool | None = None


class EventQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: Place = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


async def list_(call: Call[None, ListQuery]) -> SessionPage:
    query = call.query
    page = await call.door.list(
        SessionQuery(
            cwd=query.cwd or None,
            agent=query.agent or None,
            status=tuple(one for one in query.status.split(",") if one),
            archived=query.archived,
            text=query.text,
            limit=query.limit,
            cursor=query.cursor,
            counted=query.counted,
        )
    )
    shown = views.brief if query.brief else views.session
    return SessionPage([shown(one) for one in page.sessions], page.cursor, page.total)


async def create(call: Call[NewSession, None]) -> Response:
    spec = OpenSpec(**msgspec.structs.asdict(call.body))
    info = await call.door.open(spec, call.who)
    where = f"{call.gate.prefix}/api/sessions/{info.id}"
    return reply(views.session(info), 201, {"location": where})


async def read(call: Plain) -> SessionInfo:
    return views.session(await call.door.info(call.path["id"]))


async def change(call: Call[Change, None]) -> SessionInfo:
    id, body = call.path["id"], call.body
    await call.door.info(id)  # an unknown session is told before an unknown model
    if body.mode is not None:
        await call.door.set_mode(id, body.mode, call.who)
    if body.model is not None:
        await call.door.set_model(id, body.model, call.who)
    if body.reasoning is not None:
        await call.door.set_reasoning(id, body.reasoning, call.who)
    if body.title is not None:
        await call.door.rename(id, body.title, call.who)
    if body.archived is not None:
        await call.door.archive(id, body.archived)
    return views.session(await call.door.info(id))


async def delete(call: Plain) -> None:
    await call.door.info(call.path["id"])
    await call.door.delete(call.path["id"], call.who)


async def close(call: Plain) -> None:
    await call.door.info(call.path["id"])
    if call.door.live(call.path["id"]) is None:
        raise Refusal(409, "not_live", "The session is not open.", "A prompt opens it again.")
    await call.door.close(call.path["id"])


async def fork(call: Plain) -> Response:
    info = await call.door.fork(call.path["id"], call.who)
    return reply(views.session(info), 201)


async def messages(call: Plain) -> list[Message]:
    return list(await call.door.messages(call.path["id"]))


async def events(call: Call[None, EventQuery]) -> list[Event]:
    query = call.query
    await call.door.info(call.path["id"])
    found = await call.door.read(call.path["id"], query.after, query.limit)
    return [views.event(one) for one in found]


ROUTES = [
    Route("GET", "/api/sessions", list_, "List sessions, newest activity first", "sessions",
          query=ListQuery, returns=SessionPage, may_fail=(400,)),
    Route("POST", "/api/sessions", create, "Open a session", "sessions", body=NewSession,
          optional_body=True, returns=SessionInfo, status=201,
          may_fail=(400, 404, 409, 429, 502)),
    Route("GET", "/api/sessions/{id}", read, "One session", "sessions", returns=SessionInfo,
          may_fail=(404,)),
    Route("PATCH", "/api/sessions/{id}", change, "Change title, model, mode or effort",
          "sessions", body=Change, returns=SessionInfo, may_fail=(400, 404, 409)),
    Route("DELETE", "/api/sessions/{id}", delete, "Delete a session and its history", "sessions",
          status=204, may_fail=(404, 409)),
    Route("POST", "/api/sessions/{id}/close", close, "Let a session go; the store keeps it",
          "sessions", status=204, may_fail=(404, 409)),
    Route("POST", "/api/sessions/{id}/fork", fork, "A new session with the same history",
          "sessions", returns=SessionInfo, status=201, may_fail=(404, 409, 429)),
    Route("GET", "/api/sessions/{id}/messages", messages, "What was said", "sessions",
          returns=list[Message], may_fail=(404,)),
    Route("GET", "/api/sessions/{id}/events", events, "Kept events, oldest first", "sessions",
          query=EventQuery, returns=list[Event], may_fail=(400, 404)),
]  # fmt: skip
