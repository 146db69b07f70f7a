"""A WebSocket's path without one: POST says something, GET listens, DELETE leaves.

Dialects whose descriptor has `streams` are served so.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.dialects.descriptor import REGISTRY, Streams
from dragoman.wire.jsonrpc import INVALID_REQUEST, PARSE_ERROR, error

from .. import upgrade
from ..http import EVENTS, JSON, Refusal, Request, Response, Stream
from ..outlet import Outlet
from ..streamable import StreamsLink, key_of
from .table import LARGE, AnyRoute, Call, Plain, Route

_LONGEST_ID = 1024


def _rules(call: Call[Any, Any]) -> Streams:
    """How the dialect at this path is spoken so."""
    found = call.gate.sockets[upgrade.path(call.request)].streams
    assert found is not None
    return found


async def post(call: Plain) -> Response:
    """One message. `initialize` begins a connection; all else belongs to one."""
    request = call.request
    kind = request.header("content-type").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, "bad_media", "The body must be application/json.")
    try:
        message = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as trouble:
        return _wrong(PARSE_ERROR, f"Parse error: {trouble}")
    if not isinstance(message, dict):
        what = "batches are not supported" if isinstance(message, list) else "not an object"
        return _wrong(INVALID_REQUEST, f"Invalid request: {what}")
    given = message.get("method", "")
    method = given if isinstance(given, str) else ""
    id = message.get("id", UNSET)
    if isinstance(id, dict | list):
        return _wrong(INVALID_REQUEST, "Invalid request: the id is no number and no text")
    # A newline can only stand between JSON's words: the dialects hear lines.
    line = request.body.replace(b"\n", b" ").replace(b"\r", b" ")
    name = _rules(call).connection
    if name.lower() not in request.headers:
        if method != "initialize" or id is UNSET or id is None:
            raise Refusal(400, "no_connection", f"{name} is missing.",
                          "POST initialize first; its answer has one.")  # fmt: skip
        return await _begin(call, line, id)
    link = _link(call)
    if method == "initialize":
        raise Refusal(400, "initialized", "This connection was initialized already.")
    session = _session(call, link, message, method, id)
    if link.full or link.box(session) is None:
        raise Refusal(503, "unread", "Too much of this connection is unread.",
                      "Read its streams first.")  # fmt: skip
    link.take(line, method, id, session)
    return Response(202)


async def _begin(call: Call[Any, Any], line: bytes, id: Any) -> Response:
    gate, request = call.gate, call.request
    dialect, rules = gate.sockets[upgrade.path(request)].name, _rules(call)

    def ended(connection: str) -> None:
        gate.remotes.pop(connection, None)

    link = StreamsLink(
        upgrade.opener(gate, dialect, request),
        upgrade.peer_of(gate, request, "http"),
        rules,
        bound=gate.limits.max_outbound_bytes,
        ended=ended,
    )
    if link.closed:
        body = link.first.result() if link.first.done() else b""
        return Response(503, body, JSON)
    gate.remotes[link.id] = link, request.token_id
    gate.meter.upgrades[dialect] += 1
    link.take(line, "initialize", id, "")
    return Response(200, await link.first, JSON, {rules.connection.lower(): link.id})


def _wrong(code: int, text: str) -> Response:
    return Response(400, error(None, code, text), JSON)


def _link(call: Call[Any, Any]) -> StreamsLink:
    """The connection that a request names. Of the same token only: an id is no key."""
    header = _rules(call).connection
    name = call.request.header(header.lower())
    if not name:
        raise Refusal(400, "no_connection", f"{header} is missing.")
    found, token = call.gate.remotes.get(name, (None, ""))
    if found is None or found.closed or token != call.request.token_id:
        raise Refusal(404, "unknown_connection", "There is no such connection.",
                      "POST initialize again, then load or resume the session.")  # fmt: skip
    return found


def _session(call: Call[Any, Any], link: StreamsLink, message: Any, method: str, id: Any) -> str:
    """The session whose stream will have the answer. Raises Refusal."""
    rules, header = _rules(call), _named(call)
    if method:
        params = message.get("params")
        named = params.get("sessionId") if isinstance(params, dict) else None
        wanted = named if isinstance(named, str) else None
        needed = wanted is not None or method in rules.of_sessions
    else:
        wanted = link.asked.get(key_of(id)) or None
        needed = wanted is not None
    if needed and not header:
        raise Refusal(400, "no_session", f"{rules.session} is missing.",
                      "Send the message's sessionId in it.")  # fmt: skip
    if header and wanted is not None and header not in (wanted, link.home(wanted)):
        raise Refusal(400, "bad_session", f"{rules.session} names another session.")
    if not method:
        link.asked.pop(key_of(id), None)
    return header


def _named(call: Call[Any, Any]) -> str:
    """The session that a request's header names. Raises Refusal."""
    name = _rules(call).session
    given = call.request.header(name.lower())
    if len(given) > _LONGEST_ID:
        raise Refusal(400, "bad_session", f"{name} may have {_LONGEST_ID} characters.")
    return given


async def get(call: Plain) -> Stream:
    """What the connection, or one session of it, is told from now on."""
    request = call.request
    accept = request.header("accept", "*/*")
    if EVENTS not in accept and "*/*" not in accept:
        raise Refusal(406, "bad_media", f"This is a stream of {EVENTS}.")
    if request.method != "GET":
        raise Refusal(405, "bad_method", "Use GET, POST or DELETE here.")
    link = _link(call)
    box = link.box(_named(call))
    if box is None or box.taken:
        raise Refusal(409, "taken", "Somebody reads this stream already.")
    box.taken = True
    link.touch()

    def begin(outlet: Outlet) -> None:
        box.join(outlet)
        call.gate.keep_awake(outlet)

    return Stream(begin, {_rules(call).connection.lower(): link.id})


async def delete(call: Plain) -> Response:
    """The client leaves; its sessions go on."""
    link = _link(call)
    link.abort()
    call.gate.remotes.pop(link.id, None)
    return Response(202)


def speaks_streams(request: Request, streams: Streams) -> bool:
    """Whether a request at a WebSocket's path is meant for these routes."""
    if request.method in ("POST", "DELETE", "OPTIONS"):
        return True
    return not request.upgrades and (
        streams.connection.lower() in request.headers or EVENTS in request.header("accept")
    )


Remotes = dict[str, tuple[StreamsLink, str]]


def routes() -> Iterator[AnyRoute]:
    """Three for each dialect that is spoken so."""
    for one in REGISTRY.all():
        if one.streams is not None and one.websocket is not None:
            path, tag = one.websocket[0].split()[0], one.name
            yield Route("POST", path, post, "Say something over Streamable HTTP", tag, status=202,
                        limit=LARGE, hidden=True)  # fmt: skip
            yield Route("GET", path, get, "Listen over Streamable HTTP", tag, streams=True,
                        hidden=True)  # fmt: skip
            yield Route("DELETE", path, delete, "Leave", tag, status=202, hidden=True)
