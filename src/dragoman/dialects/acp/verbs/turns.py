"""session/prompt, session/cancel, $/cancel_request, and events that clients put in."""

import asyncio
from collections.abc import Coroutine, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dragoman.engine.content import Prompt as Content
from dragoman.engine.events import Event, TurnEnded
from dragoman.engine.faults import BadInput, Busy, Fault, UnknownSession
from dragoman.engine.work import Finished

from ..attach import Attachment, Running
from ..commands import run_own
from ..faults import TurnFailed
from ..prompts import read_prompt
from ..shapes import CancelRequest, ForSession, Prompt, Told
from ..speak import stop_of, usage_of_turn

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from ..hear import AcpHearer

MARKER = "[interrupted by user]"
_STOPPED = "[interrupted: the host stopped]"
_LARGEST_EVENT = 64 * 1024


def prompt(call: "Call[AcpHearer]", params: Prompt) -> Coroutine[Any, Any, dict[str, Any]]:
    """Check at once what can be checked, so that a second prompt is refused at once."""
    conn: AcpHearer = call.conn
    session_id = params.session_id
    attachment = conn.active(session_id)
    session = conn.door.live(session_id)
    key = f"{conn.steady}:{(type(call.id).__name__, call.id)}" if conn.steady else ""
    if key and session is not None and key in session.keys:
        return _join(conn, session_id, session.keys[key])
    if attachment.running is not None or (session is not None and session.busy):
        raise Busy(
            f"Session already has an active prompt turn: {session_id}",
            "Wait for it to end, or cancel it.", session=session_id,
        )  # fmt: skip
    vision = session is not None and session.vision
    content = read_prompt(params.prompt, vision=vision)
    running = attachment.running = Running(call.id)
    return _run(conn, attachment, running, content, key)


async def _join(conn: "AcpHearer", session_id: str, turn: str) -> dict[str, Any]:
    """A client that lost its connection asks again: answer with how that turn ends."""
    ending = _Ending(turn)
    door = conn.door
    watch = await door.watch(session_id, conn.who, ending, lambda told: None, since=0, draft=False)
    try:
        body = await ending.found
    finally:
        watch.close()
    return _told(
        session_id,
        Finished(turn, body.outcome, body.stop, body.text, body.error, body.cause),
    )


class _Ending:
    """Waits for the end of one turn (`engine.hub.Shape`)."""

    def __init__(self, turn: str) -> None:
        self._turn = turn
        self.found: asyncio.Future[TurnEnded] = asyncio.get_running_loop().create_future()

    def speak(self, events: Sequence[Event]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, TurnEnded) and body.turn == self._turn and not self.found.done():
                self.found.set_result(body)


async def _run(
    conn: "AcpHearer", attachment: Attachment, running: Running, content: Content, key: str
) -> dict[str, Any]:
    try:
        try:
            await attachment.renew()
        except UnknownSession:
            if not attachment.was_left:
                raise
            return _result(attachment.id, "cancelled", MARKER)  # it was closed right after
        own, content = attachment.command_in(content)
        if own is not None:
            text = await run_own(attachment, running, *own)
            stop = "cancelled" if running.cancelled else "end_turn"
            return _result(attachment.id, stop, text)
        finished = await _turn(conn, attachment, running, content, key)
        answer = _told(attachment.id, finished)
        if conn.greeted and conn.quirks.message_ids and attachment.spent.context:
            answer["usage"] = usage_of_turn(attachment.spent)
        return answer
    finally:
        attachment.running = None
        attachment.last_used = monotonic()


async def _turn(
    conn: "AcpHearer", attachment: Attachment, running: Running, content: Content, key: str
) -> Finished:
    work = await attachment.seat.prompt(content, conn.who, key=key, when_busy="refuse")
    running.work = work
    if running.cancelled:  # before it began
        attachment.cancel()
    try:
        finished = await asyncio.shield(work.done)
    except Fault:
        if running.cancelled or attachment.was_left:
            return Finished(work.turn, "cancelled", "aborted")
        raise
    except asyncio.CancelledError:
        if not work.done.done():
            raise
        return Finished(work.turn, "cancelled", "aborted", cause="shutdown")  # the host went down
    if attachment.seat.watch is not None and not conn.link.closed:
        await running.told  # a client that reads slowly still gets all updates first
    return finished


def _told(session_id: str, finished: Finished) -> dict[str, Any]:
    stop = stop_of(finished)["stopReason"]
    if stop == "cancelled":
        marker = _STOPPED if finished.cause in ("shutdown", "restart") else MARKER
        text = f"{finished.text}\n\n{marker}" if finished.text else marker
        return _result(session_id, "cancelled", text)
    if stop != "error":
        return _result(session_id, stop, finished.text)
    raise TurnFailed(f"Agent turn failed: {finished.error or finished.stop}", session=session_id)


def _result(session_id: str, stop: str, text: str) -> dict[str, Any]:
    return {"sessionId": session_id, "stopReason": stop, "content": text}


def cancel(conn: "AcpHearer", params: ForSession) -> object:
    """Stop the running turn. Nothing running, or no such session: nothing to do."""
    attachment = conn.attached.get(params.session_id) or conn.child(params.session_id)
    if attachment is None:
        return {}
    attachment.cancel()
    return _kept(conn, attachment.id)


async def _kept(conn: "AcpHearer", session_id: str) -> dict[str, Any]:
    """Acknowledged is what a crash cannot undo."""
    await conn.door.kept(session_id)
    return {}


def cancel_request(conn: "AcpHearer", params: CancelRequest) -> None:
    if params.request_id is UNSET:
        raise BadInput("Missing required parameter: requestId")
    conn.cancel_request(params.request_id)


async def tell(conn: "AcpHearer", params: Told) -> dict[str, Any]:
    """Keep an event that the client tells with the session."""
    attachment = conn.active(params.session_id)
    update = params.update if isinstance(params.update, dict) else {}
    kind = params.type if isinstance(params.type, str) else update.get("sessionUpdate")
    kind = kind if isinstance(kind, str) and kind else "unknown"
    data: dict[str, Any] = {"source": "client", "type": kind}
    if update and len(msgspec.json.encode(update)) <= _LARGEST_EVENT:
        data["update"] = update
    await attachment.renew()
    await conn.door.note(attachment.id, "info", kind[:200], data=data)
    return {"sessionId": attachment.id, "status": "processed", "type": kind}
