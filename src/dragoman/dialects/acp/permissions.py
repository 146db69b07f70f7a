"""Questions to the human at this client: permission requests, forms, and taking them back."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman.engine import shown
from dragoman.engine.ask import LASTING
from dragoman.engine.events import Ask, Settled, Verdict
from dragoman.engine.faults import AlreadySettled, Busy, UnknownAsk, UnknownSession
from dragoman.engine.visible import on_a_line, visible
from dragoman.holding import Holder
from dragoman.wire.calls import CallFailed, LinkLost, TooManyCalls

from . import calls

if TYPE_CHECKING:
    from asyncio import Future

    from .attach import Attachment
    from .hear import AcpHearer

_ONCE = {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"}
_NO = {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"}
_PLAIN: dict[str, Verdict] = {
    "allow-once": "allow",
    "allow-always": "allow_always",
    "reject-once": "deny",
    "reject-always": "deny_always",
}
_WIDER = ("session", "project")  # for how long the wider scopes are offered: a menu stays short
NO_FORMS = (
    "This client cannot take a free answer: it offers no elicitation form. "
    "Ask again with choices, or go on without an answer."
)
_DISMISSED = "the human dismissed the question"


class Answer(NamedTuple):
    verdict: Verdict
    text: str = ""
    comment: str = ""
    scope: str = ""
    lasts: str = ""


Reading = Callable[[Any], Answer]


class Questions(Holder):
    """What this connection has asked its human about one session."""

    _connection: "AcpHearer"
    _attachment: "Attachment"
    _open: dict[str, "tuple[str, Future[msgspec.Raw]]"] = {}  # our requests, by ask
    gone_to: dict[str, str] = {}  # addresses that the human went to -> their calls

    def put(self, ask: Ask) -> None:
        """Show a question, in the best way that this client has."""
        if ask.id in self._open:
            return
        if ask.kind == "tool":
            reading = partial(_read_verdict, ask)
            self._request("session/request_permission", self._permission(ask), ask, reading)
        elif ask.url and self._connection.client.urls:
            reading = partial(self._read_url, ask)
            self._request("elicitation/create", self._address(ask), ask, reading)
        elif self._connection.client.forms and not ask.url:
            self._request("elicitation/create", self._form(ask), ask, _read_form)
        elif ask.choices:
            reading = partial(_read_choice, ask.choices)
            self._request("session/request_permission", self._choice(ask), ask, reading)
        elif not self._connection.desk.others_may_answer(self._attachment):
            self._connection.door.spawn(self._settle(ask, Answer("cancelled", "", NO_FORMS)))

    def settled(self, body: Settled) -> None:
        """Somebody answered: a request of ours that is still open is taken back."""
        sent = self._open.pop(body.ask_id, None)
        if sent is not None:
            self._withdraw(*sent)

    def withdraw_all(self) -> None:
        """The connection leaves the session: it need not answer any more."""
        for sent in self._open.values():
            self._withdraw(*sent)
        self._open.clear()

    def _withdraw(self, key: str, future: "Future[msgspec.Raw]") -> None:
        if future.cancel():
            self._connection.outbound.notify("$/cancel_request", {"requestId": key})

    def _request(self, method: str, params: object, ask: Ask, read: Reading) -> None:
        try:
            self._open[ask.id] = key, future = self._connection.outbound.begin(method, params)
        except (LinkLost, TooManyCalls):
            return  # it stays open for others, or until its time is over
        future.add_done_callback(partial(self._answered, ask, read))

    def _answered(self, ask: Ask, read: Reading, future: "Future[msgspec.Raw]") -> None:
        if future.cancelled():
            return
        self._open.pop(ask.id, None)
        trouble = future.exception()
        if isinstance(trouble, LinkLost):
            return  # the question outlives its connection
        if isinstance(trouble, CallFailed):
            answer = Answer("cancelled", "", f"the client could not ask: {trouble.message}")
        else:
            answer = _read(future.result(), read)
        self._connection.door.spawn(self._settle(ask, answer))

    async def _settle(self, ask: Ask, answer: Answer) -> None:
        connection = self._connection
        try:
            await connection.door.answer(
                ask.id, answer.verdict, connection.who, text=answer.text, comment=answer.comment,
                scope=answer.scope, lasts=answer.lasts, digest=ask.digest,
            )  # fmt: skip
        except (AlreadySettled, Busy, UnknownAsk, UnknownSession):
            return  # somebody was quicker, or session or host are gone: this answer is too late

    # --- the ways to ask ---

    def _permission(self, ask: Ask) -> dict[str, Any]:
        if self._connection.second:
            return self._permission2(ask)
        session = self._connection.door.live(ask.session)
        real = self._connection.quirks.real_call_ids and ask.call_id
        summary = visible(ask.summary, strict=True)
        raw: dict[str, Any] = {"tool": ask.tool, "summary": summary}
        if list((ask.args or {}).values()) != [summary.removeprefix("$ ")]:
            raw["input"] = ask.args or {}  # unless those are the summary
        call: dict[str, Any] = {
            "toolCallId": real or f"approval-{ask.id}",
            "title": shown.title(ask),
            "kind": calls.kind_of(ask.tool, session),
            "status": "pending",
            "rawInput": raw,
            "content": calls.question_of(ask),
        }
        cwd = session.cwd if session is not None else ""
        if places := calls.locations_of(ask.tool, ask.args, cwd):
            call["locations"] = places
        return {
            "sessionId": self._attachment.asks_as,
            "options": options_of(ask),
            "toolCall": call,
            "_meta": {"dragoman": _meta(ask)},
        }

    def _permission2(self, ask: Ask) -> dict[str, Any]:
        """Version 2: the prompt in words, and what it is about as its subject."""
        connection = self._connection
        session = connection.door.live(ask.session)
        cwd = session.cwd if session is not None else ""
        command = (ask.args or {}).get("command")
        kind = calls.kind_of(ask.tool, session)
        subject: dict[str, Any]
        if kind == "execute" and isinstance(command, str) and command:
            subject = {"type": "command", "command": command, "cwd": ask.cwd or cwd}
            if ask.call_id:
                subject["toolCallId"] = ask.call_id
        else:
            call: dict[str, Any] = {
                "toolCallId": ask.call_id or f"approval-{ask.id}",
                "title": calls.title_of(ask.tool, ask.args),
                "name": ask.tool,
                "kind": kind,
                "status": "pending",
                "rawInput": ask.args or {},
            }
            if ask.changes:
                from .changes import diff_of

                call["content"] = [diff_of((one.path, one.old, one.new) for one in ask.changes)]
            if places := calls.locations_of(ask.tool, ask.args, cwd):
                call["locations"] = places
            subject = {"type": "tool_call", "toolCall": call}
        said = calls.words_of(ask)
        params = {
            "sessionId": self._attachment.asks_as,
            "title": shown.title(ask),
            "subject": subject,
            "options": options_of(ask),
            "_meta": {"dragoman": _meta(ask)},
        }
        if said:
            params["description"] = said
        return params

    def _choice(self, ask: Ask) -> dict[str, Any]:
        offered = [
            {"optionId": f"choice-{place}", "name": visible(choice), "kind": "allow_once"}
            for place, choice in enumerate(ask.choices)
        ]
        if self._connection.second:
            return {
                "sessionId": self._attachment.asks_as,
                "title": visible(ask.title),
                "options": offered,
                "_meta": {"dragoman": _meta(ask)},
            }
        return {
            "sessionId": self._attachment.asks_as,
            "options": offered,
            "toolCall": {
                "toolCallId": f"ask-user-{ask.id}",
                "title": visible(ask.title),
                "kind": "other",
                "status": "pending",
                "rawInput": {"tool": ask.tool, "summary": visible(ask.title)},
                "content": [calls.text_content(visible(ask.title))],
            },
            "_meta": {"dragoman": _meta(ask)},
        }

    def _address(self, ask: Ask) -> dict[str, Any]:
        """Where the human is to go: a yes means only that they agree to it."""
        scope = {"sessionId": self._attachment.asks_as}
        if ask.of_call:
            scope["toolCallId"] = ask.of_call
        return {
            "mode": "url",
            **scope,
            "elicitationId": ask.id,
            "url": ask.url,
            "message": visible(ask.title.replace(ask.url, "").strip()),
            "_meta": {"dragoman": _meta(ask)},
        }

    def _read_url(self, ask: Ask, value: dict[str, Any]) -> Answer:
        action = value.get("action")
        if action == "accept":
            self.gone_to[ask.id] = ask.of_call
            return Answer("answer", ask.choices[0])
        if action == "decline":
            return Answer("answer", ask.choices[-1])
        return Answer("cancelled", "", _DISMISSED)

    def over(self, call_id: str = "") -> None:
        """A call ended, or without one the turn: where its human went is done with."""
        for id, call in tuple(self.gone_to.items()):
            if not call_id or call == call_id:
                del self.gone_to[id]
                self._connection.outbound.notify("elicitation/complete", {"elicitationId": id})

    def _form(self, ask: Ask) -> dict[str, Any]:
        field: dict[str, Any] = {"type": "string", "title": "Answer"}
        if ask.choices:
            field["enum"] = list(ask.choices)
        scope = {"sessionId": self._attachment.asks_as}
        if ask.call_id:
            scope["toolCallId"] = ask.call_id
        return {
            "mode": "form",
            **scope,
            "message": visible(ask.title),
            "requestedSchema": {
                "type": "object",
                "properties": {"answer": field},
                "required": ["answer"],
            },
            "_meta": {"dragoman": _meta(ask)},
        }


def options_of(ask: Ask) -> list[dict[str, str]]:
    """The answers on offer. Each that is remembered says what of and for how long.

    A client that knows only "always" gets `allow-always`, which is the narrowest.
    """
    always = "allow_always"
    found = [_ONCE]
    if ask.firm or not ask.scopes:
        name = f"Always allow (not kept: {ask.tool} is asked about every time)"
        found.append({"optionId": "allow-always", "name": visible(name), "kind": always})
    for place, (words, scope) in enumerate(shown.offers(ask)):
        for lasts in scope.lasts[:1] if place == 0 else [k for k in _WIDER if k in scope.lasts]:
            key = "allow-always" if place == 0 else f"allow-always:{scope.id}:{lasts}"
            name = f"Always allow {words} ({LASTING[lasts]})"
            found.append({"optionId": key, "name": name, "kind": always})
    never = f"Always reject {on_a_line(ask.tool)} ({LASTING['session']})"
    return [*found, _NO, {"optionId": "reject-always", "name": never, "kind": "reject_always"}]


def _meta(ask: Ask) -> dict[str, Any]:
    given = {
        "askId": ask.id,
        "toolCallId": ask.call_id,
        "risk": ask.risk,
        "reason": ask.reason,
        "expiresAt": ask.expires_at,
        "digest": ask.digest,
        "cwd": ask.cwd,
        "scopes": [{"id": scope.id, "lasts": scope.lasts} for scope in ask.scopes],
    }
    return {key: value for key, value in given.items() if value}


def _read(raw: msgspec.Raw, read: Reading) -> Answer:
    try:
        value = msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError:  # a number that none of ours can hold, say
        value = None
    if not isinstance(value, dict):
        return Answer("cancelled", "", "the client's answer could not be understood")
    return read(value)


def _selected(value: dict[str, Any]) -> str:
    outcome = value.get("outcome")
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        return str(outcome.get("optionId"))
    return ""


def _read_verdict(ask: Ask, value: dict[str, Any]) -> Answer:
    option = _selected(value)
    if not option:
        return Answer("cancelled")
    if option not in {one["optionId"] for one in options_of(ask)}:
        return Answer("cancelled", "", f"the client chose an option that was not offered: {option}")
    if option in _PLAIN:
        return Answer(_PLAIN[option])
    _, scope, lasts = option.split(":")
    return Answer("allow_always", scope=scope, lasts=lasts)


def _read_choice(choices: tuple[str, ...], value: dict[str, Any]) -> Answer:
    option = _selected(value)
    offered = {f"choice-{place}": choice for place, choice in enumerate(choices)}
    if option in offered:
        return Answer("answer", offered[option], "")
    return Answer("cancelled", "", _DISMISSED)


def _read_form(value: dict[str, Any]) -> Answer:
    content = value.get("content")
    if value.get("action") == "accept" and isinstance(content, dict):
        given = content.get("answer")
        if isinstance(given, str):
            return Answer("answer", given, "")
    if value.get("action") == "decline":
        return Answer("deny", "", "the human declined to answer")
    return Answer("cancelled", "", _DISMISSED)
