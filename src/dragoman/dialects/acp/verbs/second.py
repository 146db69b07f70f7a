"""What version 2 does otherwise: prompts are acknowledged when they begin, sessions are resumed."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from dragoman.engine.content import Prompt as Content
from dragoman.engine.faults import BadInput, Busy, Fault, NothingRunning, UnknownSession
from dragoman.wire.verbs import Cancelled, Table

from .. import shapes
from ..attach import Attachment, Running
from ..commands import run_own
from ..prompts import read_prompt
from ..speak2 import terminal_id
from . import VERBS, account, sessions, verb

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from ..hear import AcpHearer

_MOST_HELD = 32


def prompt(call: "Call[AcpHearer]", params: shapes.Prompt) -> Coroutine[Any, Any, dict[str, Any]]:
    """Hold a prompt until its turn begins; the answer says under which id."""
    conn: AcpHearer = call.conn
    attachment = conn.active(params.session_id)
    session = conn.door.live(attachment.id)
    conn.prompts += 1
    key = f"{conn.steady}:{(type(call.id).__name__, call.id)}" if conn.steady else ""
    if key and session is not None and key in session.keys:
        return _known(session.keys[key])
    key = key or f"acp2:{conn.who.id}:{conn.prompts}"
    vision = session is not None and session.vision
    content = read_prompt(params.prompt, vision=vision, strict=True)
    running = attachment.held[key] = Running(call.id)
    conn.holding = {**conn.holding, key: attachment}
    return _hold(conn, attachment, running, content, key)


async def _known(turn: str) -> dict[str, Any]:
    return {"messageId": turn}


async def _hold(
    conn: "AcpHearer", attachment: Attachment, running: Running, content: Content, key: str
) -> dict[str, Any]:
    try:
        await attachment.renew()
        own, content = attachment.command_in(content)
        if own is not None:
            return _own(attachment, content, *own)
        if running.is_cancelled():
            raise Cancelled
        work = running.work = await attachment.seat.prompt(
            content, conn.who, key=key, when_busy="queue", limit=_MOST_HELD
        )
        if running.is_cancelled():
            attachment.take_back(key)  # unless it has begun: then it is told, and stopped
        turn = await asyncio.shield(work.started)
        if running.taken:
            raise Cancelled
        return {"messageId": turn}
    except Fault as fault:
        dropped = running.work is not None and isinstance(fault, Busy)  # the session was closed
        if dropped or running.is_cancelled() or attachment.was_left:
            raise Cancelled from None
        raise
    finally:
        attachment.held.pop(key, None)
        conn.holding = {one: held for one, held in conn.holding.items() if one != key}


def _own(attachment: Attachment, content: Content, name: str, words: str) -> dict[str, Any]:
    """A command of ours lives like any other prompt, for this client alone.

    While a turn runs, the session's state is that turn's: the command changes nothing of it.
    """
    conn, speaker = attachment.connection, attachment.speaker
    id = f"own.{conn.who.id}.{conn.prompts}"
    alone = not _is_busy(attachment)
    said = [speaker.whole("user_message", id, content)]
    attachment.send([*said, speaker.state("running")] if alone else said)
    conn.door.spawn(_run_own(attachment, name, words, alone))
    return {"messageId": id}


def _is_busy(attachment: Attachment) -> bool:
    session = attachment.connection.door.live(attachment.id)
    return session is not None and session.busy


async def _run_own(attachment: Attachment, name: str, words: str, alone: bool) -> None:
    running = Running(None)
    if alone:
        attachment.running = running
    try:
        await run_own(attachment, running, name, words)
    finally:
        if attachment.running is running:
            attachment.running = None
        if alone and not _is_busy(attachment):
            stop = "cancelled" if running.cancelled else "end_turn"
            attachment.send([attachment.speaker.state("idle", stopReason=stop)])


def resume(conn: "AcpHearer", params: shapes.OldSession) -> Coroutine[Any, Any, Any]:
    """Join a session, with or without what was said before."""
    conn.desk.require_login()
    start = params.replay
    if start is not None and not (isinstance(start, dict) and start.get("type") == "start"):
        raise BadInput("replayFrom must be null or have the type start")
    if not isinstance(params.cwd, str) or not params.cwd:
        raise BadInput("Missing required parameter: cwd", "Give the session's own directory.")
    return sessions.enter(conn, params, replay=start is not None)


def new(conn: "AcpHearer", params: shapes.NewSession) -> Coroutine[Any, Any, Any]:
    if not isinstance(params.cwd, str) or not params.cwd:
        raise BadInput("Missing required parameter: cwd", "Give an absolute path.")
    return sessions.new(conn, params)


def close(conn: "AcpHearer", params: shapes.ForSession) -> Any:
    """Stop the work for everybody; what is not open is closed already."""
    try:
        attachment = sessions.leaving(conn, params)
    except UnknownSession:
        return {}
    return sessions.leave(conn, attachment)


def cancel_call(conn: "AcpHearer", params: shapes.CancelCall) -> dict[str, Any]:
    """Stop one tool call; its turn goes on."""
    if not isinstance(params.call, str) or not params.call:
        raise BadInput("Missing required parameter: toolCallId")
    return _stop_call(conn, params.session_id, params.call)


def cancel_terminal(conn: "AcpHearer", params: shapes.CancelTerminal) -> dict[str, Any]:
    """The same by the terminal in which the call's command runs."""
    if not isinstance(params.terminal, str) or not params.terminal:
        raise BadInput("Missing required parameter: terminalId")
    attachment = conn.seen(params.session_id)
    session = conn.door.live(attachment.id)
    turn = session.turn if session is not None else ""
    call = params.terminal.removeprefix(terminal_id(turn, ""))
    if not turn or call == params.terminal or not attachment.speaker.has_terminal(call):
        raise BadInput(f"No such terminal runs here: {params.terminal}")
    return _stop_call(conn, attachment.id, call)


def _stop_call(conn: "AcpHearer", session_id: str, call: str) -> dict[str, Any]:
    attachment = conn.seen(session_id)
    try:
        conn.door.stop_call(attachment.id, call)
    except NothingRunning as fault:
        raise BadInput(fault.message, "Cancel the turn with session/cancel.") from None
    return {}


_SAME = (
    "initialize", "_dragoman/connection", "auth/status", "session/list", "session/delete",
    "session/fork", "session/set_title", "session/archive", "session/unarchive", "session/status",
    "session/cancel", "session/set_config_option", "mcp/message", "$/cancel_request",
)  # fmt: skip

VERBS2 = {name: VERBS[name] for name in _SAME} | {
    "auth/login": verb(shapes.Authenticate, account.authenticate),
    "auth/logout": verb(shapes.Nothing, account.logout),
    "session/new": verb(shapes.NewSession, new, waits=True),
    "session/resume": verb(shapes.OldSession, resume, waits=True),
    "session/close": verb(shapes.ForSession, close, waits=True),
    "session/prompt": verb(shapes.Prompt, prompt, direct=True, waits=True),
    "tool_call/cancel": verb(shapes.CancelCall, cancel_call),
    "terminal/cancel": verb(shapes.CancelTerminal, cancel_terminal),
}


def _table() -> Table:
    from ..hear import TABLE

    return Table(VERBS2, read=TABLE.read, expected=(Fault,), gated=True)


TABLE2 = _table()
