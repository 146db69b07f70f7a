"""Webhooks in: a signed HTTP call begins or continues a session."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import UnknownSession, WrongState
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Correspondent, Trait

from ..http import Refusal, Response, reply
from ..signing import verify
from .table import Call, Plain, Route

if TYPE_CHECKING:
    from dragoman.settings.host import Webhook


class Begun(Trait, frozen=True):
    """Kept with a session that a webhook began."""

    NAME = "gateway"

    webhook: str = ""


class Taken(msgspec.Struct, frozen=True):
    session: str
    turn: str
    again: bool = False  # this delivery was taken before; nothing runs twice


async def take(call: Plain) -> Response:
    name = call.path["name"]
    hook = call.gate.settings.webhooks.get(name)
    if hook is None or not hook.enabled:
        raise Refusal(404, "not_found", "There is no webhook of this name.")
    request = call.request
    if hook.secret:
        verify(hook.secret, request)
    elif not request.authed:
        await call.gate.auth.identify(request)
    try:
        body = request.body.decode()
    except UnicodeDecodeError:
        raise Refusal(400, "bad_input", "The body is not UTF-8.") from None
    who = Who("webhook", f"http:{request.peer}", name, f"webhook-{name}")
    session = await _session(call, hook, name, who)
    key = request.header("idempotency-key") or request.header("x-github-delivery")
    text = hook.prompt.replace("{body}", body)
    if not text.strip():
        raise Refusal(400, "bad_input", "The prompt is empty.", "Send a body.")
    try:
        work = await call.door.prompt(
            session,
            (Text(text),),
            who,
            key=f"{name}:{key[:200]}" if key else "",
            metadata={"webhook": name},
            keep=True,
        )
    except WrongState as fault:
        if "turn" not in fault.data:
            raise
        return reply(Taken(session, str(fault.data["turn"]), True), 200)
    call.gate.watch_work(work)
    return reply(Taken(session, work.turn), 202)


async def _session(call: Call[Any, Any], hook: "Webhook", name: str, who: Who) -> str:
    """The session of a hook: a named one is found again, or begun under its name."""
    if hook.session:
        found = await call.door.find(Correspondent, key=f"webhook:{hook.session}")
        if found is not None:
            return found.id
        try:
            return (await call.door.info(hook.session)).id
        except UnknownSession:
            pass  # begun below, under this name
    traits = (Begun(name), Correspondent(f"webhook:{hook.session}" if hook.session else ""))
    spec = OpenSpec(agent=hook.agent, cwd=hook.cwd, title=f"Webhook {name}", traits=traits)
    return (await call.door.open(spec, who)).id


ROUTES = [
    Route("POST", "/hooks/{name}", take, "Begin a turn from a signed call", "webhooks",
          raw_body=True, returns=Taken, status=202, open=True, limit=1024 * 1024,
          may_fail=(200, 400, 401, 403, 404, 409, 429)),
]  # fmt: skip
