"""Making, finding, changing and ending sessions."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from dragoman.dialects.dragoman.sessions import check_id
from dragoman.engine.content import Message, text_of
from dragoman.engine.faults import (
    BadInput,
    Busy,
    UnknownAgent,
    UnknownModel,
    UnknownSession,
    WrongState,
)
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.traits import Correspondent, Given, Trait
from dragoman.wire.jsonrpc import INTERNAL_ERROR

from ..faults import SESSION_LIMIT, Refusal
from ..shapes import Configure, Listed, Messages, New, OfSession, Overrides
from ..spelling import rfc3339, verb
from ..terminals import drop_unused, is_unused
from .git import branch

if TYPE_CHECKING:
    from dragoman.engine.view import SessionView
    from dragoman.wire.serve import Call

    from ..hear import ZeroclawHearer

_LIST_LIMIT = 1_000
_FEWEST = 100  # sessions that are looked at together
_PAGES = 50  # of them that are looked at for one list
_TRIES = 8


class Own(Trait, frozen=True):
    """What this protocol keeps with a session."""

    NAME = "zeroclaw"

    chat_mode: str = "chat"
    closed: bool = False  # `session/close` ended it
    killed_at: int = 0
    overrides: dict[str, Any] = {}


async def new(call: "Call[ZeroclawHearer]", params: New) -> None:
    """Open a session, or join the one that has this id."""
    conn = call.conn
    session_id = check_id(params.session_id)
    if not params.agent_alias.strip():
        raise BadInput("Invalid params: `agent_alias` must not be blank.")
    state, joins = await _open(conn, params, session_id)
    answer = {
        "session_id": state.id,
        "agent_alias": state.agent,
        "message_count": len(said(await conn.door.transcript(state.id))),
        "workspace_dir": state.cwd,
    }
    call.reply(answer)  # first: what is open in the session is told after it
    conn.desk.left.get(state.id, set()).discard(conn.who.id)
    seat = await conn.sit(state.id, joins=joins)
    if conn.env:
        seat.bring(conn.env)


async def _open(conn: "ZeroclawHearer", params: New, session_id: str) -> tuple["SessionView", bool]:
    """The session's state, and whether it was there before."""
    if not session_id:
        return await _make(conn, params, str(uuid4())), False
    for _ in range(_TRIES):  # others may open, fail to open and delete the same id meanwhile
        opening = conn.desk.opening.get(session_id)
        if opening is not None:
            await asyncio.wait({opening})
        try:
            return await _join(conn, params, session_id), True
        except UnknownSession:
            pass  # a new one under the client's own id
        if session_id in conn.desk.opening:
            continue
        try:
            return await _make(conn, params, session_id), False
        except WrongState:  # somebody of another protocol was first
            continue
    raise Busy(f"Session {session_id} is being opened by others.", "Try again.")


async def _make(conn: "ZeroclawHearer", params: New, session_id: str) -> "SessionView":
    opening = conn.desk.opening
    future = opening[session_id] = asyncio.get_running_loop().create_future()
    try:
        await _make_room(conn)
        spec = _spec(conn, params, session_id)
        info = await conn.door.open(spec, conn.who)
        return await conn.door.look(info.id)
    except UnknownAgent:
        raise Refusal(
            INTERNAL_ERROR,
            f"Failed to create agent: agents.{params.agent_alias} is not configured",
        ) from None
    except WrongState:
        with suppress(UnknownSession):  # made and deleted at once
            await conn.door.load(session_id)  # until it is made
        raise
    finally:
        del opening[session_id]
        future.set_result(None)


async def _make_room(conn: "ZeroclawHearer") -> None:
    """Keep to the limit: what is being made counts; idle sessions nobody watches make room."""
    most = conn.desk.settings.max_sessions
    door, opening = conn.door, conn.desk.opening
    while len(door.live_ids()) + len(opening) > most:
        ours = {s.id for s in door.lives() if s.origin == "zeroclaw" and not s.closing}
        if len(ours | opening.keys()) <= most:
            return
        if not await door.relieve("zeroclaw"):
            raise Refusal(SESSION_LIMIT, f"Session limit reached ({most})")


def _spec(conn: "ZeroclawHearer", params: New, session_id: str) -> OpenSpec:
    settings = conn.desk.settings
    given = Given(
        memory=False if params.exclude_memory else None,
        approval_timeout=settings.approval_timeout_secs or None,
    )
    return OpenSpec(
        agent=params.agent_alias,
        cwd=params.cwd or "",
        id=session_id,
        mode=params.mode,
        worktree=bool(params.worktree),
        check_cwd=False,  # the protocol takes any folder and says it back
        traits=(given, Own(chat_mode=params.chat_mode or "chat")),
    )


async def _join(conn: "ZeroclawHearer", params: New, session_id: str) -> "SessionView":
    door = conn.door
    info = await door.info(session_id)
    own = Own.of(info.extra)
    if own.killed_at:
        raise Refusal(-32000, "Session not found: it was killed")
    if info.agent != params.agent_alias:
        door.profile(params.agent_alias)  # an unknown agent is the better complaint
        raise BadInput(f"Session belongs to a different agent: {info.agent}")
    await door.load(session_id)
    if own.closed:
        await door.keep(session_id, Own, conn.who, closed=False)
    return await door.look(session_id)


async def usable(conn: "ZeroclawHearer", session_id: str) -> "SessionView | SessionInfo":
    """The session, unless it was closed or killed here. Raises UnknownSession."""
    found = conn.door.live(session_id) or await conn.door.info(session_id)
    own = Own.of(found.extra)
    if own.closed or own.killed_at:
        raise UnknownSession(session_id)
    return found


async def close(conn: "ZeroclawHearer", params: OfSession) -> Any:
    """Leave a session; the last one to leave lets it go, with what those who left had begun."""
    door, session_id = conn.door, params.session_id
    await usable(conn, session_id)
    if _others(conn, session_id):
        _note_leaving(conn, session_id)
    else:
        await door.keep(session_id, Own, conn.who, closed=True)
        if not _others(conn, session_id):  # somebody may have come while that was kept
            with suppress(UnknownSession):  # let go by somebody else at the same time
                await door.close(session_id, "close")
        else:
            await door.keep(session_id, Own, conn.who, closed=False)
    conn.seats.forget(session_id)
    if conn.terminal:
        await drop_unused(door, (session_id,))
    return {"session_id": session_id, "closed": True}


def _others(conn: "ZeroclawHearer", session_id: str) -> bool:
    """Whether another client is at the session, or something runs there that another began."""
    live = conn.door.live(session_id)
    if live is None:
        return False
    gone = {conn.who.id, *conn.desk.left.get(session_id, ())}
    return any(who.id != conn.who.id for who in conn.door.present(session_id)) or any(
        who is None or who.id not in gone for who in live.begun_by
    )


def _note_leaving(conn: "ZeroclawHearer", session_id: str) -> None:
    """What it began goes on for those who stay, and ends when the last of them closes."""
    left, live = conn.desk.left, conn.door.live(session_id)
    for ended in [id for id in left if conn.door.live(id) is None]:
        del left[ended]
    if live is not None and any(who and who.id == conn.who.id for who in live.begun_by):
        left.setdefault(session_id, set()).add(conn.who.id)


async def kill(conn: "ZeroclawHearer", params: OfSession) -> dict[str, Any]:
    door, session_id = conn.door, params.session_id
    await usable(conn, session_id)
    await door.keep(session_id, Own, conn.who, killed_at=door.now_ms())
    await door.close(session_id, "kill")
    conn.seats.forget(session_id)
    return {"session_id": session_id, "killed": True}


async def delete(conn: "ZeroclawHearer", params: OfSession) -> dict[str, Any]:
    conn.seats.forget(params.session_id)
    await conn.door.delete(params.session_id, conn.who)
    return {"session_id": params.session_id, "deleted": True}


async def listed(conn: "ZeroclawHearer", params: Listed) -> Any:
    limit = _LIST_LIMIT if params.limit is None else max(1, min(params.limit, _LIST_LIMIT))
    words = (params.query or "").strip()
    if words:
        found = await conn.door.search(words, _LIST_LIMIT)
        shown = [info for info in found if not info.archived and _shown(conn, info)]
    else:
        shown = await _newest(conn, limit)
    return {"sessions": [_row(info) for info in shown[:limit]]}


async def _newest(conn: "ZeroclawHearer", limit: int) -> list[SessionInfo]:
    """As many as are wanted, behind however many of those that are not shown."""
    shown: list[SessionInfo] = []
    query = SessionQuery(archived=False, limit=max(limit, _FEWEST))
    for _ in range(_PAGES):
        page = await conn.door.list(query)
        shown += [info for info in page.sessions if _shown(conn, info)]
        if len(shown) >= limit or not page.cursor:
            break
        query = msgspec.structs.replace(query, cursor=page.cursor)
    return shown


def _shown(conn: "ZeroclawHearer", info: SessionInfo) -> bool:
    """Neither killed, nor left by all before anything was said in it."""
    return not Own.of(info.extra).killed_at and not is_unused(conn.door, info)


async def listed_all(conn: "ZeroclawHearer", _: None) -> object:
    return await listed(conn, Listed())


def _row(info: SessionInfo) -> dict[str, Any]:
    return {
        "session_id": info.id,
        "session_key": info.id,
        "created_at": rfc3339(info.created_at),
        "last_activity": rfc3339(info.updated_at),
        "message_count": info.messages,
        "agent_alias": info.agent,
        "channel_id": Correspondent.of(info.extra).channel or None,  # null: of no chat app
        "name": info.title or info.query.split("\n", 1)[0][:80] or None,
    }


def said(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What was said in words: tool results and calls without text are left out."""
    return [
        {"role": message.role, "content": text, **({"cut": True} if message.cut else {})}
        for message in messages
        if message.role != "tool" and (text := text_of(message.content))
    ]


async def messages(conn: "ZeroclawHearer", params: Messages) -> Any:
    try:
        await conn.desk.state(params.session_id)
        found = said(await conn.door.transcript(params.session_id))
    except UnknownSession:
        found = []
    end = len(found) if params.before_index is None else params.before_index
    end = max(0, min(end, len(found)))
    start = 0 if params.limit is None else max(0, end - max(0, params.limit))
    return {
        "session_id": params.session_id,
        "messages": found[start:end],
        "total": len(found),
        "start": start,
    }


async def state(conn: "ZeroclawHearer", params: OfSession) -> Any:
    info = await usable(conn, params.session_id)
    told: dict[str, Any] = {"session_id": info.id, "state": info.status}
    if info.mode in ("plan", "readonly"):  # ours, and only where it is not what was always so
        told["mode"] = info.mode
    live = conn.door.live(info.id)
    if live is not None and live.turn:
        told["turn_id"] = live.turn
        told["turn_started_at"] = rfc3339(live.began_at)
    return told


async def configure(conn: "ZeroclawHearer", params: Configure) -> dict[str, Any]:
    door, given = conn.door, params.overrides
    info = await usable(conn, params.session_id)
    for name in ("model", "model_provider"):
        value = getattr(given, name)
        if value is not None and not value.strip():
            raise BadInput(f"Invalid params: `{name}` must not be blank.")
    before = dict(Own.of(info.extra).overrides)
    if given.model_provider is not None and given.model is None:
        before.pop("model", None)
    ref = _ref(conn, given, info)
    changes = {
        name: value
        for name in Overrides.__struct_fields__
        if (value := getattr(given, name)) is not None
    }
    merged = {**before, **changes}
    if given.temperature is not None and not 0 <= given.temperature <= 2:
        raise BadInput("Invalid params: `temperature` is between 0 and 2.")
    if ref:
        await door.set_model(params.session_id, ref, conn.who)
    await door.keep(params.session_id, Own, conn.who, overrides=merged)
    if given.mode is not None:
        await door.set_mode(params.session_id, given.mode, conn.who)
    if given.temperature is not None:
        await door.keep(params.session_id, Given, conn.who, temperature=given.temperature)
    return {"session_id": params.session_id, "overrides": merged}


def provider_of(conn: "ZeroclawHearer", given: str) -> str:
    """The provider that a name means: `provider`, or `provider.alias` as the settings say it."""
    name = given.strip()
    for end in ("", "@", "."):
        short = name.partition(end)[0] if end else name
        with suppress(UnknownModel):
            if any(model.provider == short for model in conn.door.models(short)):
                return short
    return name


def _ref(conn: "ZeroclawHearer", given: Overrides, info: "SessionView | SessionInfo") -> str:
    """The model that is meant, as "provider/model"; empty when none is. Raises UnknownModel."""
    door = conn.door
    if given.model is None:
        if given.model_provider is None:
            return ""
        name = provider_of(conn, given.model_provider)
        if name == info.model.partition("/")[0]:
            return info.model
        with suppress(UnknownModel):
            for model in door.models(name):
                if model.provider == name:
                    return model.ref
        raise UnknownModel(f"Unknown model provider: {given.model_provider}.")
    provider = info.model.partition("/")[0]
    if given.model_provider is not None:
        provider = provider_of(conn, given.model_provider)
    wanted = given.model.strip().removeprefix(f"{provider}/")
    for ref in (f"{provider}/{wanted}", wanted):
        try:
            return door.model(ref, info.agent).ref
        except UnknownModel:
            if given.model_provider is not None:
                break
    raise UnknownModel(f"Unknown model: {given.model}.", "See config/catalog-models.")


async def git_branch(conn: "ZeroclawHearer", params: OfSession) -> dict[str, Any]:
    info = await conn.door.info(params.session_id)
    return {"session_id": info.id, **await asyncio.to_thread(branch, info.cwd)}


VERBS = {
    "session/new": verb(new, New, direct=True, alone=True),
    "session/close": verb(close, OfSession, alone=True),
    "session/kill": verb(kill, OfSession, alone=True),
    "session/delete": verb(delete, OfSession, alone=True),
    "session/list": verb(listed, Listed),
    "session/list-acp": verb(listed_all),
    "session/messages": verb(messages, Messages),
    "session/state": verb(state, OfSession),
    "session/configure": verb(configure, Configure, nested=("overrides",)),
    "session/git_branch": verb(git_branch, OfSession),
}
