"""Questions to the human at this client: permission requests, forms, and taking them back."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.events import Ask, Settled, Verdict
from dragoman.engine.faults import AlreadySettled, UnknownAsk, UnknownSession
from dragoman.wire.jsonrpc import CallFailed, LinkLost, TooManyCalls

from . import calls

if TYPE_CHECKING:
    from asyncio import Future

    from .attach import Attachment
    from .hear import AcpHearer

_OPTIONS = (
    {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "allow-always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
    {"optionId": "reject-always", "name": "Always reject", "kind": "reject_always"},
)
_VERDICTS: dict[str, Verdict] = {
    "allow-once": "allow",
    "allow-always": "allow_always",
    "reject-once": "deny",
    "reject-always": "deny_always",
}
NO_FORMS = (
    "This client cannot take a free answer: it offers no elicitation form. "
    "Ask again with choices, or go on without an answer."
)
_DISMISSED = "the human dismissed the question"

Answer = tuple[Verdict, str, str]  # verdict, text, comment
Reading = Callable[[Any], Answer]


class Questions:
    """What this connection has asked its human about one session."""

    __slots__ = ("_attachment", "_connection", "_open")

    def __init__(self, connection: "AcpHearer", attachment: "Attachment") -> None:
        self._connection = connection
        self._attachment = attachment
        self._open: dict[str, str] = {}  # ask id -> id of our request

    def put(self, ask: Ask) -> None:
        """Show a question, in the best way that this client has."""
        if ask.id in self._open:
            return
        if ask.kind == "tool":
            self._request("session/request_permission", self._permission(ask), ask, _read_verdict)
        elif self._connection.client.forms:
            self._request("elicitation/create", self._form(ask), ask, _read_form)
        elif ask.choices:
            reading = partial(_read_choice, ask.choices)
            self._request("session/request_permission", self._choice(ask), ask, reading)
        elif not self._connection.desk.others_may_answer(self._attachment):
            self._connection.spawn(self._settle(ask.id, ("cancelled", "", NO_FORMS)))

    def settled(self, body: Settled) -> None:
        """Somebody answered: a request of ours that is still open is taken back."""
        key = self._open.pop(body.ask_id, None)
        if key is not None:
            self._withdraw(key)

    def withdraw_all(self) -> None:
        """The connection leaves the session: it need not answer any more."""
        for key in self._open.values():
            self._withdraw(key)
        self._open.clear()

    def _withdraw(self, key: str) -> None:
        outbound = self._connection.outbound
        if outbound.cancel(key):
            outbound.notify("$/cancel_request", {"requestId": key})

    def _request(self, method: str, params: Any, ask: Ask, read: Reading) -> None:
        try:
            key, future = self._connection.outbound.begin(method, params)
        except (LinkLost, TooManyCalls):
            return  # it stays open for others, or until its time is over
        self._open[ask.id] = key
        future.add_done_callback(partial(self._answered, ask, read))

    def _answered(self, ask: Ask, read: Reading, future: "Future[msgspec.Raw]") -> None:
        if future.cancelled():
            return
        self._open.pop(ask.id, None)
        trouble = future.exception()
        if isinstance(trouble, LinkLost):
            return  # the question outlives its connection
        if isinstance(trouble, CallFailed):
            answer: Answer = ("cancelled", "", f"the client could not ask: {trouble.message}")
        else:
            answer = _read(future.result(), read)
        self._connection.spawn(self._settle(ask.id, answer))

    async def _settle(self, ask_id: str, answer: Answer) -> None:
        verdict, text, comment = answer
        connection = self._connection
        try:
            await connection.door.answer(
                ask_id, verdict, connection.who, text=text, comment=comment
            )
        except (AlreadySettled, UnknownAsk, UnknownSession):
            return  # somebody was quicker, or the session is gone: this answer is too late

    # --- the ways to ask ---

    def _permission(self, ask: Ask) -> dict[str, Any]:
        cwd = self._connection.cwd_of(ask.session)
        content = calls.proposal_of(ask.tool, ask.args, cwd)
        if not content:
            content = [calls.text_content(ask.summary or ask.title)]
        real = self._connection.quirks.real_call_ids and ask.call_id
        known = self._connection.kind_of(ask.session, ask.tool)
        call: dict[str, Any] = {
            "toolCallId": real or f"approval-{ask.id}",
            "title": ask.title,
            "kind": calls.kind_of(ask.tool, known),
            "status": "pending",
            "rawInput": {"tool": ask.tool, "summary": ask.summary},
            "content": content,
        }
        if places := calls.locations_of(ask.tool, ask.args, cwd):
            call["locations"] = places
        return {
            "sessionId": ask.session,
            "options": _OPTIONS,
            "toolCall": call,
            "_meta": {"dragoman": _meta(ask)},
        }

    def _choice(self, ask: Ask) -> dict[str, Any]:
        return {
            "sessionId": ask.session,
            "options": [
                {"optionId": f"choice-{place}", "name": choice, "kind": "allow_once"}
                for place, choice in enumerate(ask.choices)
            ],
            "toolCall": {
                "toolCallId": f"ask-user-{ask.id}",
                "title": ask.title,
                "kind": "other",
                "status": "pending",
                "rawInput": {"tool": ask.tool, "summary": ask.title},
                "content": [calls.text_content(ask.title)],
            },
            "_meta": {"dragoman": _meta(ask)},
        }

    def _form(self, ask: Ask) -> dict[str, Any]:
        field: dict[str, Any] = {"type": "string", "title": "Answer"}
        if ask.choices:
            field["enum"] = list(ask.choices)
        scope = {"sessionId": ask.session}
        if ask.call_id:
            scope["toolCallId"] = ask.call_id
        return {
            "mode": "form",
            **scope,
            "message": ask.title,
            "requestedSchema": {
                "type": "object",
                "properties": {"answer": field},
                "required": ["answer"],
            },
            "_meta": {"dragoman": _meta(ask)},
        }


def _meta(ask: Ask) -> dict[str, Any]:
    given = {
        "askId": ask.id,
        "toolCallId": ask.call_id,
        "risk": ask.risk,
        "reason": ask.reason,
        "expiresAt": ask.expires_at,
    }
    return {key: value for key, value in given.items() if value}


def _read(raw: msgspec.Raw, read: Reading) -> Answer:
    value = msgspec.json.decode(raw) if raw else None
    if not isinstance(value, dict):
        return ("cancelled", "", "the client's answer could not be understood")
    return read(value)


def _selected(value: dict[str, Any]) -> str:
    outcome = value.get("outcome")
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        return str(outcome.get("optionId"))
    return ""


def _read_verdict(value: dict[str, Any]) -> Answer:
    option = _selected(value)
    if option and option not in _VERDICTS:
        return ("cancelled", "", f"the client chose an option that was not offered: {option}")
    return (_VERDICTS.get(option, "cancelled"), "", "")


def _read_choice(choices: tuple[str, ...], value: dict[str, Any]) -> Answer:
    option = _selected(value)
    offered = {f"choice-{place}": choice for place, choice in enumerate(choices)}
    if option in offered:
        return ("answer", offered[option], "")
    return ("cancelled", "", _DISMISSED)


def _read_form(value: dict[str, Any]) -> Answer:
    content = value.get("content")
    if value.get("action") == "accept" and isinstance(content, dict):
        given = content.get("answer")
        if isinstance(given, str):
            return ("answer", given, "")
    if value.get("action") == "decline":
        return ("deny", "", "the human declined to answer")
    return ("cancelled", "", _DISMISSED)
