"""session/new, load, resume, close, stop, list, delete."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.door import Door
from dragoman.engine.faults import BadInput, NothingRunning, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import Page, SessionInfo, SessionQuery
from dragoman.engine.traits import Given, StartedBy
from dragoman.wire.codec import encode
from dragoman.wire.verbs import After

from ..attach import Attachment
from ..commands import all_commands, listed
from ..faults import AlreadyActive
from ..mcp import lend
from ..options import modes
from ..shapes import ForSession, ListSessions, NewSession, OldSession, table_of, whole_path
from ..speak import short_title, stamp

if TYPE_CHECKING:
    from ..hear import AcpHearer

_PAGE = 50
_MOST_SERVERS = 64
_REACHED_BY = ("command", "url")


def new(conn: "AcpHearer", params: NewSession) -> Coroutine[Any, Any, After]:
    conn.desk.accounts()  # somebody may have logged in, in a terminal
    conn.desk.require_login()
    conn.desk.reserve()
    return _new(conn, params)


async def _new(conn: "AcpHearer", params: NewSession) -> After:
    door, settings = conn.door, conn.desk.settings
    try:
        alias = params.alias or _alias_in(params.meta) or conn.agent or settings.default_agent
        servers = lend(conn, read_servers(params.servers, second=conn.second))
        roots = read_directories(params.directories)
        timeout = None
        alias = alias or door.default_agent() or ""
        if settings.session_timeout_secs > 0 and alias:
            if not door.profile(alias).approval_timeout:
                timeout = float(settings.session_timeout_secs)
        given = Given(memory=False, approval_timeout=timeout, roots=tuple(roots))
        spec = OpenSpec(agent=alias, cwd=params.directory, traits=(given,), **_wished(params.meta))
        info = await door.open(spec, conn.who)
        attachment = conn.attach(info.id)
    finally:
        conn.desk.release()
    return await entered(conn, attachment, info, servers)


def _wished(meta: Any) -> dict[str, Any]:
    """What `_meta.dragoman` asks of a new session: a worktree, a title for its branch."""
    own = _own(meta)
    if own.get("worktree") in (None, False):
        return {}
    if own["worktree"] is not True:
        raise BadInput("_meta.dragoman.worktree must be true or false.")
    title = own.get("title")
    return {"worktree": True, "title": title[:500] if isinstance(title, str) else ""}


async def entered(
    conn: "AcpHearer", attachment: Attachment, info: SessionInfo, servers: list[dict[str, Any]]
) -> After:
    """The answer for a session that was just made."""
    try:
        await attachment.follow()
        shown = await _commands(conn, attachment, info)
    except BaseException:  # the client will never know its id
        await conn.desk.let_go(attachment, "abandoned")
        raise
    _equip(conn, info.id, servers)
    about = {"dragoman": {"agent": info.agent, "workspaceDir": info.cwd}}
    result = {"sessionId": info.id, **_choices(conn, info), "_meta": about}
    if conn.second:
        return After({**result, "availableCommands": shown}, _nothing)
    return After({"workspaceDir": info.cwd, **result}, lambda: _announce(attachment, shown))


def _nothing() -> None:
    """What follows an answer that says everything."""


def load(conn: "AcpHearer", params: OldSession) -> Coroutine[Any, Any, Any]:
    return enter(conn, params, replay=True)


def resume(conn: "AcpHearer", params: OldSession) -> Coroutine[Any, Any, Any]:
    return enter(conn, params, replay=False)


def enter(conn: "AcpHearer", params: OldSession, *, replay: bool) -> Coroutine[Any, Any, Any]:
    session_id = conn.not_a_child(params.session_id)
    before = conn.attached.get(session_id)
    active = before is not None and not before.stopping  # else it leaves, and is entered anew
    if not conn.door.durable:  # nothing was kept; but who asks for it joins what is in memory
        joins = (conn.second or _joins(params.meta)) and conn.door.live(session_id) is not None
        if active or not joins:
            raise UnknownSession(session_id)
    if active:
        raise AlreadyActive(session_id)
    conn.desk.reserve(session_id)
    # From this very line on: what the client asks of the session next is for the loaded one.
    attachment = conn.attach(session_id)
    conn.desk.release()
    return _load(conn, params, attachment, replay, before)


async def _load(
    conn: "AcpHearer",
    params: OldSession,
    attachment: Attachment,
    replay: bool,
    before: Attachment | None,
) -> After:
    async with attachment.seat.in_order():
        try:
            if before is not None:
                await before.left()
            return await _loaded(conn, params, attachment, replay)
        except BaseException:
            attachment.stopping = attachment.barred = True
            conn.forget(attachment)
            raise


async def _loaded(
    conn: "AcpHearer", params: OldSession, attachment: Attachment, replay: bool
) -> After:
    door, session_id = conn.door, attachment.id
    servers = lend(conn, read_servers(params.servers, second=conn.second))
    roots = read_directories(params.directories)
    info = await door.info(session_id)
    if not _joins(params.meta):  # who joins another's session need not be where it is
        _check_directory(conn.door, params.cwd, info)
        if door.live(session_id) is None:
            _check_there(info)
    info = await door.load(session_id)
    alone = not door.present(session_id)
    if alone and roots != list(Given.of(info.extra).roots):
        await door.keep(session_id, Given, conn.who, roots=roots)
    since: int | None = None
    attachment.entering = True
    if replay:
        second = conn.second
        since = await (attachment.replay_second() if second else attachment.replay())
        if attachment.born and conn.shows_children:
            from ..children import replay_children

            await replay_children(attachment)
    elif (had := _had(params.meta)) is not None and had.since <= info.last_seq:
        since = await attachment.catch_up(had.since, had.texts, had.thoughts)
    shown = await _commands(conn, attachment, info)
    await attachment.follow(since)
    _equip(conn, session_id, servers)
    if conn.second:
        attachment.send([attachment.speaker.current()])
    elif replay or conn.greeted:
        _announce(attachment, shown)  # before the answer: nothing of a load comes after it
    info = await door.info(session_id)
    result = _choices(conn, info)
    if conn.second:
        result["availableCommands"] = shown

    def after() -> None:
        session = door.live(session_id)
        for ask in tuple(session.asks.values()) if session is not None else ():
            attachment.questions.put(ask)
        attachment.entered()

    return After(result, after)


def _choices(conn: "AcpHearer", info: SessionInfo) -> dict[str, Any]:
    if conn.second:
        return {"configOptions": conn.options(info)}
    return {"modes": modes(info), "configOptions": conn.options(info)}


async def _commands(
    conn: "AcpHearer", attachment: Attachment, info: SessionInfo
) -> list[dict[str, Any]]:
    """Look for slash commands; returns them as this client is shown them."""
    found = all_commands(await asyncio.to_thread(conn.door.commands, info.cwd))
    attachment.commands = found
    return listed(found, second=conn.second)


def _announce(attachment: Attachment, shown: list[dict[str, Any]]) -> None:
    update = {"sessionUpdate": "available_commands_update", "availableCommands": shown}
    attachment.send([attachment.speaker.line(update)])


def _equip(conn: "AcpHearer", session_id: str, servers: list[dict[str, Any]]) -> None:
    """Give the session its MCP servers; they are connected beside, nobody waits."""
    if servers:
        conn.door.spawn(conn.door.equip(session_id, servers))


def read_servers(given: Any, *, second: bool = False) -> list[dict[str, Any]]:
    """The servers that a client names. Version 2 says of each how it is reached."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise BadInput("Parameter 'mcpServers' must be an array of objects")
    if len(given) > _MOST_SERVERS:
        raise BadInput(f"At most {_MOST_SERVERS} MCP servers can be given")
    for place, server in enumerate(given):
        if not isinstance(server.get("name"), str) or not server["name"]:
            raise BadInput(f"mcpServers[{place}] has no name")
        kind = server.get("type")
        if second and kind not in ("stdio", "http", "acp"):
            raise BadInput(f"mcpServers[{place}] has a type that is not spoken: {kind!r}")
        if kind == "acp":
            continue  # lent by the client
        if not any(isinstance(server.get(key), str) and server[key] for key in _REACHED_BY):
            raise BadInput(f'mcpServers[{place}] ("{server["name"]}") has neither command nor url')
    return given


def _check_directory(door: Door, given: Any, info: SessionInfo) -> None:
    """A session stays where it was begun; older clients name no directory."""
    if given is None:
        return
    if not isinstance(given, str) or not given:
        raise BadInput("Parameter 'cwd' must be a path", "Give the session's own directory.")
    if given != info.cwd and os.path.realpath(door.folder(given)) != info.cwd:
        raise BadInput(
            f"Session {info.id} belongs to {info.cwd}, not to {given}",
            "Give that directory as cwd, or begin a new session with session/new.",
            session=info.id,
        )


def _check_there(info: SessionInfo) -> None:
    """No tool works where nothing is. Raises BadInput."""
    if not os.path.isdir(info.cwd):
        raise BadInput(
            f"cwd is not a usable directory: {info.cwd} does not exist.",
            f"Make it again, or read the conversation with: dragoman sessions show {info.id}",
            session=info.id,
        )


def read_directories(given: Any) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise BadInput("Parameter 'additionalDirectories' must be an array of paths")
    found = []
    for path in given:
        if not isinstance(path, str) or not os.path.isabs(path):
            raise BadInput(f"additionalDirectories: {path!r} is not an absolute path")
        real = os.path.realpath(whole_path(path, "additionalDirectories"))
        if not os.path.isdir(real):
            raise BadInput(f"additionalDirectories: {path} is not a directory")
        found.append(real)
    return found


def _own(meta: Any, family: str = "dragoman") -> dict[str, Any]:
    """What `_meta` says in one family's own words."""
    return table_of(table_of(meta).get(family))


def _alias_in(meta: Any) -> str:
    """The agent's alias for clients that may not add members of their own."""
    for family in ("dragoman", "zeroclaw"):
        alias = _own(meta, family).get("agentAlias")
        if isinstance(alias, str) and alias.strip():
            return alias.strip()
    return ""


def _joins(meta: Any) -> bool:
    """Whether a client that knows us wants what another one has open, kept or not."""
    return _own(meta).get("join") is True


class Had(msgspec.Struct, frozen=True):
    """What a client of our own had of a session before it lost its connection."""

    since: int  # all kept events up to here
    texts: int = 0  # and so many characters of the message that came then
    thoughts: int = 0


def _had(meta: Any) -> Had | None:
    table = _own(meta)
    if "since" not in table:
        return None
    try:
        return msgspec.convert(table, Had)
    except msgspec.ValidationError as problem:
        raise BadInput(f"_meta.dragoman: {problem}", "Leave it out, or give numbers.") from None


def close(conn: "AcpHearer", params: ForSession) -> Coroutine[Any, Any, dict[str, Any]]:
    """Stop what runs for this client and let the session go; the store keeps it."""
    if not conn.door.durable:  # nothing would bring it back: such a session is stopped, not closed
        raise UnknownSession(params.session_id)
    return leave(conn, leaving(conn, params))


def leaving(conn: "AcpHearer", params: ForSession) -> Attachment:
    """The session, which from this very line on takes no more requests."""
    attachment = conn.active(params.session_id)
    attachment.stopping = True
    return attachment


async def leave(conn: "AcpHearer", attachment: Attachment) -> dict[str, Any]:
    try:
        await attachment.seat.reached()
        if conn.second or attachment.running is not None or _is_ours(conn, attachment):
            await stopped(conn, attachment.id, attachment, "close")
        await conn.desk.let_go(attachment, "close")
    finally:
        conn.forget(attachment)
    return {}


async def stopped(
    conn: "AcpHearer", session_id: str, attachment: Attachment | None, cause: str
) -> None:
    """Stop what runs and what is held in a session, whoever gave it, until that was told.

    What clients of other protocols queued goes on: they were told that it is kept.
    """
    if attachment is not None:
        attachment.cancel(cause)
        await conn.door.over(session_id)
        await conn.settled(attachment)
        await attachment.all_told()
        return
    conn.desk.take_back(session_id)
    session = conn.door.live(session_id)
    if session is not None and session.busy:
        with suppress(NothingRunning):  # it came to its end just now
            conn.door.cancel(session_id, cause)
        await conn.door.over(session_id)


def _is_ours(conn: "AcpHearer", attachment: Attachment) -> bool:
    """Whether the session's work is ours to stop, whoever gave it: the session is an editor's."""
    session = conn.door.live(attachment.id)
    return session is not None and session.origin == "acp"


def stop(conn: "AcpHearer", params: ForSession) -> Coroutine[Any, Any, dict[str, Any]]:
    """Let the running turn end, then let the session go."""
    return _stop(conn, leaving(conn, params))


async def _stop(conn: "AcpHearer", attachment: Attachment) -> dict[str, Any]:
    try:
        await conn.door.idle(attachment.id)
        await conn.settled(attachment)
    except asyncio.CancelledError:
        if conn.attached.get(attachment.id) is attachment:
            attachment.stopping = False  # the client thought better of it
        else:  # it has loaded the session anew already
            conn.forget(attachment)
        raise
    await conn.desk.let_go(attachment, "stop")
    return {"sessionId": attachment.id, "stopped": True}


_ARCHIVED: dict[str, bool | None] = {"exclude": False, "include": None, "only": True}
_FIRST = SessionQuery(archived=False, limit=_PAGE)


def list_sessions(conn: "AcpHearer", params: ListSessions) -> Any:
    """A page of sessions; without reading when nothing was written since the last time."""
    query = _FIRST
    asked = params.archived or "exclude"
    if asked not in _ARCHIVED:
        raise BadInput(f"Unknown value for archived: {asked}", "Use exclude, include or only.")
    if params.cwd or params.cursor or asked != "exclude":
        cwd = os.path.realpath(conn.door.folder(params.cwd)) if params.cwd else None
        query = SessionQuery(
            cwd=cwd, archived=_ARCHIVED[asked], limit=_PAGE, cursor=params.cursor or ""
        )
    page = conn.door.listed(query)
    return _read_page(conn, query) if page is None else _encoded(conn, page)


async def _read_page(conn: "AcpHearer", query: SessionQuery) -> msgspec.Raw:
    return _encoded(conn, await conn.door.list(query))


def _encoded(conn: "AcpHearer", page: Page) -> msgspec.Raw:
    """The page as JSON, made once while it does not change."""
    alone = conn.shows_children  # it is told of children by their parents
    known = conn.desk.pages.get(alone)
    if known is None or known[0] is not page:
        known = conn.desk.pages[alone] = (page, msgspec.Raw(encode(_page(page, alone))))
    return known[1]


def _page(page: Page, alone: bool) -> dict[str, Any]:
    listed = [one for one in page.sessions if not (alone and StartedBy.of(one.extra).session)]
    found: dict[str, Any] = {"sessions": [_row(info) for info in listed]}
    if page.cursor:
        found["nextCursor"] = page.cursor
    return found


def _row(info: SessionInfo) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sessionId": info.id,
        "cwd": info.cwd,
        "updatedAt": stamp(info.updated_at),
        "archived": info.archived,
    }
    if title := info.title or short_title(info.query):
        row["title"] = title
    if roots := Given.of(info.extra).roots:
        row["additionalDirectories"] = list(roots)
    row["_meta"] = {
        "dragoman": {
            "agent": info.agent,
            "model": info.model,
            "mode": info.mode,
            "status": info.status,
            "origin": info.origin,
            "createdAt": stamp(info.created_at),
            "messages": info.messages,
        }
    }
    return row


async def delete(conn: "AcpHearer", params: ForSession) -> dict[str, Any]:
    """Remove a session for good; one that does not exist is removed already."""
    session_id = conn.not_a_child(params.session_id)
    attachment = conn.attached.get(session_id)
    if attachment is None:
        conn.desk.take_back(session_id)
    else:
        attachment.stopping = True
        attachment.cancel("delete")
    try:  # what waits is dropped before what runs has ended
        await conn.door.delete(session_id, conn.who)
        if attachment is not None:
            await conn.settled(attachment)
            await attachment.all_told()
    finally:  # also of a store that takes no changes: it is loaded anew then
        if attachment is not None:
            conn.forget(attachment)
    return {}
