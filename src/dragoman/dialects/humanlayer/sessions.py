"""Looking at sessions and changing their settings."""

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.engine.door import MODES
from dragoman.engine.events import Mode, Who
from dragoman.engine.faults import Fault, NothingRunning, UnknownSession
from dragoman.engine.info import SessionInfo
from dragoman.engine.traits import Waiver
from dragoman.wire.codec import encode

from .approvals import ACCEPTED, EDITING, approve_pending
from .desk import Desk
from .faults import Failed, Wrong, not_found, required
from .rows import state_of, status_of
from .session_rows import LONG, SessionRow
from .shapes import (
    Archive,
    BulkArchive,
    ChangeSettings,
    Interrupted,
    Leaves,
    NoParams,
    OfSession,
    Recent,
    RecentPath,
    Success,
    Title,
)
from .times import later

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from .hear import HumanlayerHearer

_RECENT = 20
_MOST_RECENT = 1_000
_STOPPABLE = ("running", "waiting_input", "starting")
BYPASSED = "Auto-approved due to bypass permissions"


async def found(
    desk: Desk, session_id: str | None, doing: str = "failed to get session"
) -> SessionInfo:
    """The session's facts, or the protocol's error."""
    required(session_id=session_id)
    try:
        return await desk.door.info(session_id or "")
    except UnknownSession:
        raise Failed(f"{doing}: {not_found(session_id or '')}") from None


async def list_sessions(call: "Call[HumanlayerHearer]", params: NoParams) -> None:
    """The whole way; `verbs._listed` has the same bytes in half the time (decision 0073)."""
    await _answer(call, await call.conn.desk.session_rows.rows())


async def _answer(call: "Call[HumanlayerHearer]", result: bytes) -> None:
    """Answer with a list; one that is long is copied beside the loop."""
    if len(result) < LONG or call.silent:
        call.reply(Raw(result))
        return
    parts = (b'{"jsonrpc":"2.0","result":', result, b',"id":', encode(call.id), b"}")
    call.say(await asyncio.to_thread(b"".join, parts))


async def leaves(call: "Call[HumanlayerHearer]", params: Leaves) -> None:
    wanted = params.filter or ""
    if params.archived_only:
        wanted = "archived"
    elif params.include_archived is False:
        wanted = "unarchived"

    def chosen(entry: SessionRow, parents: frozenset[str]) -> bool:
        if entry.id in parents:
            return False
        if wanted == "normal":
            return not entry.archived and entry.status != "draft"
        if wanted == "archived":
            return entry.archived
        if wanted == "draft":
            return entry.status == "draft" and not entry.archived
        return wanted != "unarchived" or not entry.archived

    await _answer(call, await call.conn.desk.session_rows.chosen(chosen))


async def session_state(desk: Desk, who: Who, params: OfSession) -> Raw:
    info = await found(desk, params.session_id)
    return Raw(b'{"session":' + encode(state_of(info, desk.door)) + b"}")


async def interrupt(desk: Desk, who: Who, params: OfSession) -> Interrupted:
    info = await found(desk, params.session_id)
    status = status_of(info)
    if status not in _STOPPABLE:
        raise Failed(f"cannot interrupt session with status {status} (must be running)")
    try:
        await desk.door.interrupt(info.id, who)
    except NothingRunning:
        raise Failed("failed to interrupt session: session not found or not active") from None
    except Fault as fault:
        raise Failed(f"failed to interrupt session: {fault}") from fault
    return Interrupted(True, info.id, "interrupting")


def mode_of(word: str | None) -> Mode | None:
    """The mode that a permission mode means; None: the usual one. Raises Wrong."""
    if not word or word in ("default", "acceptEdits", "bypassPermissions"):
        return None
    if word not in MODES:
        known = ", ".join(("default", "acceptEdits", "bypassPermissions", *MODES))
        raise Wrong(f"unknown permission_mode {word}: use one of {known}")
    return next(mode for mode in MODES if mode == word)


async def change_settings(desk: Desk, who: Who, params: ChangeSettings) -> Success:
    """Set what is given; what waits for a human and is permitted now goes on at once."""
    info = await found(desk, params.session_id)
    values: dict[str, Any] = {}
    word = params.permission_mode
    edits, skip = params.auto_accept_edits, params.dangerously_skip_permissions
    if word:
        mode = mode_of(word) or desk.door.profile(info.agent).mode
        await desk.door.set_mode(info.id, mode, who)
        edits = word == "acceptEdits" if edits is None else edits
        skip = word == "bypassPermissions" if skip is None else skip
    if edits is not None:
        values["tools"] = EDITING if edits else ()
    timeout = params.dangerously_skip_permissions_timeout_ms or 0
    if skip is not None:
        values["everything"] = skip
        if not skip:
            values["until"] = None
        elif timeout > 0:
            values["until"] = later(desk.door.now_ms(), timeout)
        elif (Waiver.of(info.extra).until or 0) <= desk.door.now_ms():
            values["until"] = None  # an expiry of the past would undo it at once
    await desk.door.keep(info.id, Waiver, who, **values)
    if "until" in values:
        desk.expire_later(info.id, values["until"])
    if skip:
        await approve_pending(desk, who, info.id, BYPASSED, edits_only=False)
    elif edits:
        await approve_pending(desk, who, info.id, ACCEPTED, edits_only=True)
    return Success(True)


async def rename(desk: Desk, who: Who, params: Title) -> Success:
    info = await found(desk, params.session_id, "failed to update session")
    await desk.door.rename(info.id, params.title or "", who)
    return Success(True)


async def archive(desk: Desk, who: Who, params: Archive) -> Success:
    info = await found(desk, params.session_id, "failed to archive session")
    await desk.door.archive(info.id, bool(params.archived))
    return Success(True)


async def archive_many(desk: Desk, who: Who, params: BulkArchive) -> Success:
    if not params.session_ids:
        raise Wrong("session_ids is required and cannot be empty")
    failed = []
    for session_id in params.session_ids:
        try:
            await desk.door.archive(session_id, bool(params.archived))
        except Fault:
            failed.append(session_id)
    return Success(not failed, failed_sessions=failed)


async def recent_paths(desk: Desk, who: Who, params: Recent) -> dict[str, list[RecentPath]]:
    limit = params.limit or 0
    limit = min(limit, _MOST_RECENT) if limit > 0 else _RECENT
    return {"paths": await desk.session_rows.paths(limit)}
