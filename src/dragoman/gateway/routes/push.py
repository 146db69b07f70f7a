"""Browsers that want to be told by push; see `push.py`."""

from typing import Annotated

import msgspec
from msgspec import Meta

from .. import push
from ..http import Refusal
from .table import Call, Plain, Route

Text = Annotated[str, Meta(max_length=2_000)]


class PushView(msgspec.Struct, frozen=True):
    """`key` is the host's public one; `problem` says why it cannot push."""

    available: bool
    key: str = ""
    problem: str = ""


class BrowserKeys(msgspec.Struct, frozen=True):
    p256dh: Text
    auth: Text


class Browser(msgspec.Struct, frozen=True):
    """A subscription as browsers give it."""

    endpoint: Text
    keys: BrowserKeys


class Gone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    endpoint: Text


async def look(call: Plain) -> PushView:
    wrong = push.problem()
    if wrong:
        return PushView(False, problem=wrong)
    return PushView(True, (await call.gate.pusher.signer()).public)


async def join(call: Call[Browser, None]) -> None:
    body = call.body
    wrong = push.problem() or push.wrong_with(body.endpoint)
    if wrong:
        raise Refusal(400, "bad_input", wrong)
    try:
        push.encrypt(b"", push.plain(body.keys.p256dh), push.plain(body.keys.auth))
    except ValueError as trouble:
        raise Refusal(400, "bad_input", f"The keys cannot be used: {trouble}") from None
    known = await call.gate.pusher.browsers()
    if len(known) >= push.MOST and body.endpoint not in {one.endpoint for one in known}:
        raise Refusal(429, "limit", f"{push.MOST} browsers are told already.")
    await call.gate.pusher.join(push.Subscription(body.endpoint, body.keys.p256dh, body.keys.auth))
    call.gate.audit("push joined", peer=call.request.peer)


async def leave(call: Call[Gone, None]) -> None:
    await call.gate.pusher.leave(call.body.endpoint)


ROUTES = [
    Route("GET", "/api/push", look, "Whether this host pushes, and its key", "dashboard",
          returns=PushView),
    Route("POST", "/api/push", join, "Tell this browser of questions by push", "dashboard",
          body=Browser, status=204, may_fail=(400, 429)),
    Route("POST", "/api/push/leave", leave, "Tell it no more", "dashboard", body=Gone, status=204,
          may_fail=(400,)),
]  # fmt: skip
