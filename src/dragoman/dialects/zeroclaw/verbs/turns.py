"""Prompting, cancelling, approving."""

import asyncio
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from dragoman.engine.content import Text
from dragoman.engine.events import Verdict
from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    Fault,
    NothingRunning,
    UnknownAsk,
    UnknownSession,
)
from dragoman.engine.visible import visible
from dragoman.engine.work import Finished, Work
from dragoman.wire.jsonrpc import INTERNAL_ERROR, reply

from ..attachments import contents
from ..faults import SESSION_NOT_FOUND, SESSION_NOT_OWNED, Refusal, bare_message
from ..shapes import Approve, OfSession, Prompt
from ..speak import Updates
from ..spelling import spoken_text, verb
from .sessions import Own, usable

if TYPE_CHECKING:
    from dragoman.engine.seat import Seat
    from dragoman.wire.serve import Call

    from ..hear import ZeroclawHearer

_STOPS = {"length": "max_tokens", "max_steps": "max_turn_requests", "aborted": "cancelled"}
_VERDICTS: dict[str, Verdict] = {
    "allow_once": "allow",
    "allow_always": "allow_always",
    "reject": "deny",
    "reject_once": "deny",
    "reject_always": "deny_always",
    "reject_with_edit": "edit",
    "answer": "answer",
}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_REPLACEMENT = 64 * 1024
_ANSWER = ("session_id", "stop_reason", "content")
_ANSWER_CAMEL = ("sessionId", "stopReason", "content")


async def prompt(call: "Call[ZeroclawHearer]", params: Prompt) -> None:
    """Run a turn; answered when it has ended."""
    conn = call.conn
    session_id = params.session_id
    settings = conn.desk.settings
    try:
        if not params.prompt.strip() and not params.attachments:
            raise BadInput("Invalid params: `prompt` must not be blank.")
        # Attachments and sessions that leave take their time: what comes behind stays behind.
        live = conn.door.live(session_id)
        slow = params.attachments or live is None or live.closing
        if conn.order is not None and session_id in conn.order.lines:
            slow = True  # not beside the line: whoever stands in it came before
        async with conn.in_line(session_id) if slow else nullcontext():
            found = conn.door.live(session_id) or await conn.door.info(session_id)
            if (own := Own.of(found.extra)).closed or own.killed_at:
                raise UnknownSession(session_id)
            content: tuple[Any, ...] = (Text(params.prompt),)
            if params.attachments:
                given = (found.cwd, params.prompt, params.attachments)
                content = await contents(conn, session_id, *given)
            seat = await conn.sit(session_id, joins=True)
            work = await conn.door.prompt(
                session_id,
                content,
                conn.who,
                limit=max(1, settings.queue),
                wait=settings.queue_wait_secs or None,
            )
    except Exception as problem:
        _never_ran(call, session_id, problem)
        raise
    work.done.add_done_callback(lambda _: seat.then(lambda: _ended(call, seat, session_id, work)))


def _never_ran(call: "Call[ZeroclawHearer]", session_id: str, problem: Exception) -> None:
    """A client that waits for `turn_complete` gets one, although nothing ran."""
    conn = call.conn
    if conn.camel and not call.silent:
        return
    if isinstance(problem, UnknownSession):
        why = "turn cancelled by daemon: session_not_found"
    elif isinstance(problem, Fault | Refusal):
        text = bare_message(problem)
        why = f"turn failed: {spoken_text(text) if conn.camel else text}"
    else:
        why = f"turn failed: Internal error: {type(problem).__name__}"
    conn.link.send(Updates(conn.door, session_id, conn.camel).never_ran(why))


def _ended(
    call: "Call[ZeroclawHearer]", seat: "Seat[Updates]", session_id: str, work: Work
) -> None:
    conn = call.conn
    if work.done.cancelled():
        call.fail(Refusal(INTERNAL_ERROR, "The host is shutting down"))
        return
    problem = work.done.exception()
    if isinstance(problem, asyncio.CancelledError):
        call.fail(Refusal(INTERNAL_ERROR, "The host is shutting down"))
        return
    if problem is not None:
        if isinstance(problem, Fault):
            _never_ran(call, session_id, problem)
        call.fail(problem)
        return
    finished: Finished = work.done.result()
    if conn.camel and call.silent:  # a snake_case client heard it in the stream
        told = (finished.outcome, finished.text, finished.error, finished.cause)
        assert seat.shape is not None
        conn.link.send(seat.shape.completed(*told))
    if finished.outcome == "failed":
        call.fail(Refusal(INTERNAL_ERROR, f"Agent turn failed: {finished.error}"))
        return
    stop = _STOPS.get(finished.stop, finished.stop)
    if finished.outcome != "completed":
        stop = "cancelled"
    names = _ANSWER_CAMEL if conn.camel else _ANSWER
    call.say(reply(call.id, dict(zip(names, (session_id, stop, finished.text), strict=True))))


async def cancel(conn: "ZeroclawHearer", params: OfSession) -> dict[str, Any]:
    """Stop the running turn, whoever began it."""
    session_id = params.session_id
    try:
        info = await usable(conn, session_id)
    except UnknownSession:
        if conn.camel:
            raise
        raise Refusal(SESSION_NOT_OWNED, "Caller does not own this session") from None
    answer = {"session_id": session_id, "cancelled": True}
    if info.status == "waiting_input" and conn.door.live(session_id) is None:
        await conn.door.load(session_id)
    live = conn.door.live(session_id)
    if live is None:
        raise Refusal(SESSION_NOT_FOUND, "No active turn for this session")
    await conn.door.begun(session_id)
    try:
        conn.door.cancel(session_id, "client")
        await conn.door.kept(session_id)
    except NothingRunning:
        if not live.turn or live.busy:
            raise Refusal(SESSION_NOT_FOUND, "No active turn for this session") from None
        await conn.door.interrupt(session_id, conn.who)  # open since before a restart
    return answer


async def approve(conn: "ZeroclawHearer", params: Approve) -> dict[str, Any]:
    """Answer a question.

    One that is unknown, another session's, or was answered before is acknowledged without effect.
    """
    verdict = _VERDICTS.get(params.decision)
    if verdict is None:
        known = ", ".join(_VERDICTS)
        raise BadInput(f"Invalid params: unknown decision '{params.decision}'.", f"Use: {known}.")
    text = _CONTROLS.sub("", params.replacement or "")[:_REPLACEMENT]
    try:
        row = await conn.door.ask(params.request_id)
        if row.ask.session != params.session_id:
            raise UnknownAsk.named(params.request_id)  # not in that session
        if row.ask.kind == "question":
            verdict, text = _reply(verdict, text, row.ask.choices)
        settled = await conn.door.answer(
            params.request_id, verdict, conn.who, comment=params.comment or "", text=text,
            scope=params.scope or "", lasts=params.lasts or "", digest=params.digest or "",
        )  # fmt: skip
    except (UnknownAsk, AlreadySettled):
        settled = None  # the protocol acknowledges all the same
    answer = {
        "session_id": params.session_id,
        "request_id": params.request_id,
        "acknowledged": True,
    }
    if settled is not None and settled.scope:
        answer |= {"remembered": visible(settled.scope), "rule_id": settled.rule}
    return answer


def _reply(verdict: Verdict, text: str, choices: tuple[str, ...]) -> tuple[Verdict, str]:
    """A decision about a question: its text is the answer."""
    if verdict in ("deny", "deny_always"):
        return "cancelled", ""
    if not text and len(choices) == 1:
        text = choices[0]
    if not text:
        raise BadInput("Invalid params: the answer to a question goes into `replacement`.")
    return "answer", text


VERBS = {
    "session/prompt": verb(prompt, Prompt, direct=True, nested=("attachments",), queues=True),
    "session/cancel": verb(cancel, OfSession),
    "session/approve": verb(approve, Approve),
}
