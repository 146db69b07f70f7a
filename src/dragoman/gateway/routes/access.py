"""Pairing, tokens, and who is connected."""

import msgspec

from dragoman.engine.events import Who

from .. import tokens
from ..auth import cookie_header
from ..http import Refusal, Response, reply
from .table import Call, Plain, Route


class PairCode(msgspec.Struct, frozen=True):
    success: bool
    pairing_required: bool
    pairing_code: str | None


class Pairing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`code` may also come in the header X-Pairing-Code."""

    code: str = ""
    name: str = ""
    browser: bool = False  # set a cookie instead of telling the token


class Paired(msgspec.Struct, frozen=True, omit_defaults=True):
    success: bool
    paired: bool
    id: str
    token: str = ""


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""


class MadeToken(msgspec.Struct, frozen=True):
    id: str
    name: str
    token: str


class ClientView(msgspec.Struct, frozen=True):
    who: Who
    since: int


class Me(msgspec.Struct, frozen=True):
    """Whether the asking client is let in, and how."""

    authed: bool
    via: str = ""
    pairing_required: bool = True


async def pair(call: Call[Pairing, None]) -> Paired | Response:
    body = call.body
    code = call.request.header("x-pairing-code") or body.code
    if not code:
        raise Refusal(400, "bad_input", "No code was given.", "Send it as X-Pairing-Code.")
    name = body.name or call.request.header("x-client-name") or "paired"
    kind = "browser" if body.browser else "client"
    token, secret = await call.gate.auth.pair(call.request, code, name, kind)
    call.gate.audit("paired", token=token.id, peer=call.request.peer, kind=kind)
    if body.browser:
        gate = call.gate
        cookie = cookie_header(
            gate.auth.cookie, secret, secure=call.request.secure, path=f"{gate.prefix}/"
        )
        return reply(Paired(True, True, token.id), headers={"set-cookie": cookie})
    return Paired(True, True, token.id, secret)


async def leave(call: Plain) -> Response:
    """Forget this browser: its token is revoked and its cookie removed."""
    gate = call.gate
    if call.request.via == "cookie":
        await tokens.revoke_token(gate.auth.shelf, call.request.token_id)
        await gate.check_tokens()
    cookie = cookie_header(
        gate.auth.cookie, "", secure=call.request.secure, path=f"{gate.prefix}/", age=0
    )
    return reply({"success": True}, headers={"set-cookie": cookie})


async def me(call: Plain) -> Me:
    try:
        await call.gate.auth.identify(call.request)
    except Refusal:
        return Me(False, "", call.gate.auth.required)
    return Me(True, call.request.via, call.gate.auth.required)


async def list_tokens(call: Plain) -> list[tokens.Token]:
    return await tokens.list_tokens(call.gate.auth.shelf)


async def make_token(call: Call[NewToken, None]) -> MadeToken:
    token, secret = await tokens.new_token(call.gate.auth.shelf, call.body.name)
    call.gate.audit("token made", token=token.id, peer=call.request.peer)
    return MadeToken(token.id, token.name, secret)


async def revoke(call: Plain) -> None:
    if not await tokens.revoke_token(call.gate.auth.shelf, call.path["id"]):
        raise Refusal(404, "unknown_token", "There is no token of this id.")
    call.gate.audit("token revoked", token=call.path["id"], peer=call.request.peer)
    await call.gate.check_tokens()


async def new_code(call: Plain) -> PairCode:
    return PairCode(True, call.gate.auth.required, await tokens.new_code(call.gate.auth.shelf))


async def clients(call: Plain) -> list[ClientView]:
    return [ClientView(one.who, one.since) for one in call.door.visitors.clients.values()]


ROUTES = [
    Route("POST", "/pair", pair, "Exchange a pairing code for a token", "access", body=Pairing,
          optional_body=True, returns=Paired, open=True, may_fail=(400, 403, 429)),
    Route("GET", "/api/me", me, "Whether this client is let in", "access", returns=Me, open=True),
    Route("POST", "/api/leave", leave, "Forget this browser", "access",
          returns=dict[str, bool]),
    Route("GET", "/api/tokens", list_tokens, "Tokens, without their secrets", "access",
          returns=list[tokens.Token]),
    Route("POST", "/api/tokens", make_token, "Make a token; it is shown once", "access",
          body=NewToken, returns=MadeToken, status=201, may_fail=(400,)),
    Route("DELETE", "/api/tokens/{id}", revoke, "Make a token worthless", "access", status=204,
          may_fail=(404,)),
    Route("POST", "/api/pair-codes", new_code, "A new pairing code", "access", returns=PairCode,
          status=201),
    Route("GET", "/api/clients", clients, "Connected clients, by dialect", "host",
          returns=list[ClientView]),
]  # fmt: skip
