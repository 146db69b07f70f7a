"""WebSocket upgrades: each path speaks the dialect whose descriptor names it."""

from base64 import b64decode
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dragoman.transports.websocket import WebSocketLink, accept_key, attach
from dragoman.wire.link import Came, Hearer, Link, Peer

from .http import Refusal, Request, Takeover

if TYPE_CHECKING:
    from .gate import Gate


def path(request: Request) -> str:
    """The first part of the path that is asked for."""
    return "/" + "".join(request.parts[:1])


def check(request: Request) -> None:
    """Raises Refusal when this is no WebSocket handshake."""
    if not request.upgrades or "upgrade" not in request.header("connection").lower():
        raise Refusal(
            426,
            "upgrade_required",
            "This path speaks WebSocket.",
            headers={"upgrade": "websocket", "connection": "Upgrade"},
        )
    if request.method != "GET":
        raise Refusal(405, "bad_method", "A WebSocket begins with GET.", headers={"allow": "GET"})
    if request.header("sec-websocket-version") != "13":
        raise Refusal(
            426, "bad_version", "WebSocket version 13 is spoken here.",
            headers={"sec-websocket-version": "13", "upgrade": "websocket"},
        )  # fmt: skip
    try:
        key = b64decode(request.header("sec-websocket-key"), validate=True)
    except ValueError:
        key = b""
    if len(key) != 16:
        raise Refusal(400, "bad_key", "Sec-WebSocket-Key is missing or malformed.")


def takeover(gate: "Gate", request: Request) -> Takeover:
    """The answer to a handshake whose client may come in."""
    spoken = gate.sockets[path(request)]
    own = spoken.websocket[1] if spoken.websocket else ""
    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": accept_key(request.header("sec-websocket-key")),
    }
    if spoken.streams is not None:
        headers[spoken.streams.connection.lower()] = str(uuid4())
    chosen = _subprotocol(request, own)
    if chosen:
        headers["sec-websocket-protocol"] = chosen
    peer = peer_of(gate, request, "ws")
    open = opener(gate, spoken.name, request)
    bound = gate.limits.max_outbound_bytes

    def begin(transport: Any, rest: bytes) -> None:
        longest = gate.limits.max_line_bytes
        link = WebSocketLink(open, peer, bound=bound, longest=longest)
        attach(transport, link, rest)

    gate.meter.upgrades[spoken.name] += 1
    return Takeover(begin, headers)


def _subprotocol(request: Request, own: str) -> str:
    """Ours when it is offered; else the token's, because browsers insist on one they offered."""
    offered = [one.strip() for one in request.header("sec-websocket-protocol").split(",")]
    if own in offered:
        return own
    return next((one for one in offered if one.startswith("bearer.")), "")


def peer_of(gate: "Gate", request: Request, transport: str) -> Peer:
    """Who a request begins a connection for, and what its address asks for."""
    kind = f"{transport}s" if request.secure else transport
    name = request.query.get("connection", "")[:64]
    # Of the same token only: nobody can ask for the turns of another by its name.
    steady = f"{request.token_id}:{name}" if name else ""
    came = Came(request.query.get("agent", ""), steady, gate.limits.max_line_bytes)
    return Peer(f"{kind}:{request.peer}", kind, came=came)


def opener(gate: "Gate", dialect: str, request: Request) -> Any:
    """Makes the dialect's side of a connection that this request begins."""
    token_id = request.token_id
    counted = gate.guests.counting(gate.desks.opener(dialect), dialect)

    def opened(link: Link) -> Hearer:
        hearer: Hearer = counted(link)
        gate.links[link] = token_id
        gate.guard()
        return hearer

    return opened
