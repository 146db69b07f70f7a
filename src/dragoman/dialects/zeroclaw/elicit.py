"""Questions to the human as `elicitation/create` requests, for clients that offer a form."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Ask
from dragoman.engine.faults import AlreadySettled, Busy, UnknownAsk
from dragoman.engine.reading import counted
from dragoman.holding import Holder
from dragoman.wire.calls import CallFailed, LinkLost, TooManyCalls

if TYPE_CHECKING:
    from .hear import ZeroclawHearer


class Reply(msgspec.Struct, frozen=True):
    """What the client answers."""

    action: str
    content: dict[str, Any] = {}


class Questions(Holder):
    """The questions that one connection was asked and has not answered."""

    _conn: "ZeroclawHearer"
    _open: dict[str, asyncio.Future[msgspec.Raw] | None] = {}  # None: not sent yet

    def ask(self, question: Ask) -> None:
        """Put a question to the client; its answer settles it, unless somebody else was first."""
        if question.id not in self._open:  # events may be spoken twice for a slow reader
            self._open[question.id] = None
            # Beside, so that the updates before it are sent before it.
            self._conn.door.spawn(self._ask(question))

    def settled(self, ask_id: str) -> None:
        """Stop waiting; the protocol cannot withdraw a request, so a late answer is ignored."""
        waiting = self._open.pop(ask_id, None)
        if waiting is not None:
            waiting.cancel()

    async def _ask(self, question: Ask) -> None:
        reply = await self._reply(question)
        if reply is None:
            return
        text = answer(reply, question.choices)
        door, who = self._conn.door, self._conn.who
        if text is None and not self._dismissed(reply, question):
            return  # it stays open for those who can answer
        try:
            if text is None:
                await door.answer(question.id, "cancelled", who)
            else:
                await door.answer(question.id, "answer", who, text=text)
        except (AlreadySettled, Busy, UnknownAsk):
            return

    def _dismissed(self, reply: Reply, question: Ask) -> bool:
        """Whether a human said no: `decline` says so, `cancel` only where nobody else can answer.

        Clients say `cancel` also when the form is not one they can show, or when they show another
        session; an error or an answer that fits nothing is an inability as well.
        """
        if reply.action == "decline":
            return True
        here = self._conn.who.id
        others = (who for who in self._conn.door.present(question.session) if who.id != here)
        return reply.action == "cancel" and bool(question.choices) and next(others, None) is None

    async def _reply(self, question: Ask) -> Reply | None:
        """What the client says; None leaves the question to others."""
        if question.id not in self._open:
            return None  # somebody was quicker than the request
        conn = self._conn
        params = {
            "message": question.title,
            "mode": "form",
            "requestedSchema": schema(question.choices),
            "sessionId": question.session,
        }
        wait = None
        if question.expires_at is not None:
            wait = max(0.0, (question.expires_at - conn.door.now_ms()) / 1000)
        try:
            _, future = conn.outbound.begin("elicitation/create", params)
            self._open[question.id] = future
            try:
                await asyncio.wait({future}, timeout=wait)
            finally:
                future.cancel()  # nothing when it was answered
            if future.cancelled():
                return None
            return msgspec.json.decode(future.result(), type=Reply)
        except (LinkLost, TooManyCalls, CallFailed, msgspec.ValidationError):
            return None
        finally:
            self._open.pop(question.id, None)


def schema(choices: tuple[str, ...]) -> dict[str, Any]:
    """The form: one of the choices, or a free text."""
    if not choices:
        return {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "Answer"}},
            "required": ["answer"],
        }
    options = [{"const": f"choice-{n}", "title": text} for n, text in enumerate(choices)]
    return {
        "type": "object",
        "properties": {"choice": {"type": "string", "title": "Choice", "oneOf": options}},
        "required": ["choice"],
    }


def answer(reply: Reply, choices: tuple[str, ...]) -> str | None:
    """What was answered; None when the question was dismissed."""
    if reply.action != "accept":
        return None
    given = reply.content.get("choice" if choices else "answer")
    if not isinstance(given, str):
        return None
    number = counted(given.removeprefix("choice-")) if given.startswith("choice-") else None
    if number is not None and number < len(choices):
        return choices[number]
    return given if not choices or given in choices else None
