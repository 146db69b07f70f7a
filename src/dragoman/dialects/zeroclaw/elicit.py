"""Questions to the human as `elicitation/create` requests, for clients that offer a form."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Ask
from dragoman.engine.faults import AlreadySettled, UnknownAsk
from dragoman.wire.jsonrpc import CallFailed, LinkLost, TooManyCalls

if TYPE_CHECKING:
    from .hear import ZeroclawHearer


class Reply(msgspec.Struct, frozen=True):
    """What the client answers."""

    action: str
    content: dict[str, Any] = {}


def ask(conn: "ZeroclawHearer", question: Ask) -> None:
    """Put a question to the client; its answer settles it, unless somebody else was first."""
    conn.door.host.spawn(_ask(conn, question))


async def _ask(conn: "ZeroclawHearer", question: Ask) -> None:
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
        raw = await conn.outbound.call("elicitation/create", params, within=wait)
        reply = msgspec.json.decode(raw, type=Reply)
    except (LinkLost, TooManyCalls, TimeoutError):
        return  # the question stays open: another client may answer it
    except (CallFailed, msgspec.ValidationError):
        reply = Reply("cancel")
    text = answer(reply, question.choices)
    try:
        if text is None:
            await conn.door.answer(question.id, "cancelled", conn.who)
        else:
            await conn.door.answer(question.id, "answer", conn.who, text=text)
    except (AlreadySettled, UnknownAsk):
        return


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
    number = given.removeprefix("choice-")
    if choices and given != number and number.isdigit() and int(number) < len(choices):
        return choices[int(number)]
    return given if not choices or given in choices else None
