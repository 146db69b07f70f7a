"""`dragoman acp-bridge`: lines of an editor on stdio become frames of the gateway and back.

First comes the way into the gateway: its address, our token, and the WebSocket handshake.
"""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from dragoman.engine.faults import BadInput, Fault, in_words
from dragoman.host import tokens
from dragoman.host.owner import is_alive
from dragoman.host.stores import database_of
from dragoman.settings.model import Settings
from dragoman.settings.places import Places
from dragoman.stdio.relay import NotThere, Relay, Way
from dragoman.transports import stdio
from dragoman.transports.loop import Stopping, run
from dragoman.transports.websocket import WebSocketLink, attach
from dragoman.wire.link import Link, Opener, Peer

if TYPE_CHECKING:
    from websockets.client import ClientProtocol

    from dragoman.cli.parse import Args

_PATIENCE = 60.0  # seconds that a gateway which was there may be away
_WITHIN = 10.0
_LONGEST_HEAD = 32 * 1024
_START = "Start it with: dragoman daemon --background"


_TOKENS = ("DRAGOMAN_ACP_BRIDGE_TOKEN", "ZEROCLAW_ACP_BRIDGE_TOKEN")


class Unknown(BadInput):
    """Who listens there does not let us in with what we have."""


def check_there(address: str) -> None:
    """Return when something listens at the gateway's address. Raises NotThere."""
    import socket

    found = urlsplit(address)
    port = found.port or (443 if found.scheme == "https" else 80)
    try:
        socket.create_connection((found.hostname or "", port), _WITHIN).close()
    except OSError as problem:
        raise _silent(address, problem) from None


def _silent(address: str, problem: BaseException) -> NotThere:
    said = "it took too long" if isinstance(problem, TimeoutError) else in_words(problem)
    return NotThere(f"The gateway at {address} does not answer: {said}.", _START)


def _usable(token: str, where: str) -> str:
    """The token, when it can stand in a header. Raises BadInput."""
    if token.isascii() and token.isprintable() and " " not in token:
        return token
    hint = "Make one with: dragoman token new"
    raise BadInput(f"What {where} holds is no token: it has characters that no token has.", hint)


def find_token(where: Places, settings: Settings, pair_code: str = "") -> str:
    """The bridge's token: environment, file, pairing code, or a new one. Raises BadInput, NotThere.

    Whoever can write the store could make a token anyway, so one is made when there is none.
    """
    if not settings.gateway.require_pairing:
        return ""
    for variable in _TOKENS:
        if given := os.environ.get(variable, "").strip():
            return _usable(given, variable)
    path = where.bridge_token
    try:
        with open(path, encoding="utf-8-sig") as file:
            if kept := file.read().strip():
                return _usable(kept, path)
    except FileNotFoundError:
        pass  # made below
    except UnicodeDecodeError:
        raise BadInput(f"{path} is no text.", "Remove it; another token is made.") from None
    address = tokens.address(where, settings)
    code = pair_code
    for variable in ("DRAGOMAN_ACP_PAIRING_CODE", "ZEROCLAW_ACP_PAIRING_CODE"):
        code = code or os.environ.get(variable, "").strip()
    if code:
        token = _pair(address, code, tls(address, where, settings))
    elif settings.store.path == ":memory:" and not database_of(settings):
        token = _pair(address, _asked_code(where), tls(address, where, settings))
    elif not os.path.exists(os.path.join(where.data_dir, "gateway.json")):
        raise NotThere(
            f"What listens at {address} is not the daemon of {where.config_dir}.",
            "Start that with: dragoman daemon --background",
        )
    else:
        _, token = tokens.new_token(
            where.config_dir if where.given else None, "acp-bridge", "bridge"
        )
    _keep(path, token)
    return token


def _asked_code(where: Places) -> str:
    """A code of the running daemon, over its own socket. Raises NotThere."""
    from dragoman.client.address import socket_path
    from dragoman.client.plain import Plain
    from dragoman.client.problems import NotRunning

    try:
        with Plain(socket_path(where.config_dir), "dragoman acp-bridge") as host:
            return str(host.call("dragoman/pair")["code"])
    except NotRunning as problem:
        raise NotThere(str(problem), _START) from None


def _keep(path: str, token: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"{token}\n")


def _pair(address: str, code: str, context: Any) -> str:
    """Exchange a code for a token."""
    from dragoman.http.port import HttpFault

    try:
        answer = asyncio.run(_exchange(address, code, context))
    except (HttpFault, TimeoutError) as problem:
        raise _silent(address, problem) from None
    if not isinstance(answer, dict) or "token" not in answer:
        error = answer.get("error") if isinstance(answer, dict) else None
        raise BadInput(str((error or {}).get("message", "Pairing failed.")))
    return str(answer["token"])


async def _exchange(address: str, code: str, context: Any) -> Any:
    from dragoman.http.client import Client

    client = Client(trust=context, env={})  # no proxy stands before a gateway of ours
    try:
        async with asyncio.timeout(_WITHIN):
            headers = {"X-Pairing-Code": code, "content-type": "application/json"}
            made = await client.fetch(
                "POST", f"{address}/pair", headers=headers, body=b'{"name":"acp-bridge"}'
            )
            return _decoded(made.body)
    finally:
        await client.close()


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None


def tls(address: str, where: Places, settings: Settings) -> Any:
    """Trust exactly the certificate that is configured, whoever signed it; None without TLS."""
    if not address.startswith("https:"):
        return None
    import ssl

    context = ssl.create_default_context()
    given = settings.gateway
    if given.tls_cert or given.tls_self_signed:
        from dragoman.http.certificate import own_paths

        context.load_verify_locations(given.tls_cert or own_paths(where.data_dir)[0])
        context.check_hostname = False  # it is known by itself, not by a name
    return context


async def connect(
    address: str, token: str, open: Opener, *, context: Any = None, query: dict[str, str]
) -> WebSocketLink:
    """Open a WebSocket to `/acp`. Raises NotThere, BadInput."""
    from websockets.client import ClientProtocol
    from websockets.typing import Subprotocol
    from websockets.uri import parse_uri

    found = urlsplit(address)
    port = found.port or (443 if found.scheme == "https" else 80)
    words = "&".join(f"{name}={quote(value)}" for name, value in query.items() if value)
    target = f"{found.path.rstrip('/')}/acp" + (f"?{words}" if words else "")
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_WITHIN):
            transport, greeting = await loop.create_connection(
                _Greeting, found.hostname or "", port, ssl=context
            )
            scheme = "wss" if found.scheme == "https" else "ws"
            handshake = ClientProtocol(
                parse_uri(f"{scheme}://{found.netloc}{target}"),
                subprotocols=[Subprotocol("zeroclaw.acp.v1")],
            )
            request = handshake.connect()
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            handshake.send_request(request)
            transport.writelines(handshake.data_to_send())
            head, rest = await greeting.head
    except (OSError, TimeoutError) as problem:
        raise _silent(address, problem) from None
    _check(head, handshake, transport)
    peer = Peer(f"ws:{found.netloc}", "ws")
    return attach(transport, WebSocketLink(open, peer, client=True), rest)


def _check(head: bytes, handshake: "ClientProtocol", transport: asyncio.Transport) -> None:
    first = head.partition(b"\r\n")[0].decode("latin-1")
    status = first.split(" ")[1] if first.startswith("HTTP/1.1 ") else ""
    if status == "101":
        handshake.receive_data(head)
        if handshake.handshake_exc is None:
            return
        first = f"{first}: {handshake.handshake_exc}"
    transport.abort()
    if status == "401":
        raise Unknown(
            "The gateway does not know the bridge's token.",
            _new_token(),
        )
    if status in ("502", "503", "504", "429"):
        raise NotThere(f"The gateway is busy ({status}).")
    raise BadInput(f"The gateway refused the connection ({first[:200]}).")


def _new_token() -> str:
    """What to do about a token that is not known, wherever it came from."""
    for variable in _TOKENS:
        if os.environ.get(variable, "").strip():
            return f"It is that of {variable}: set another, or unset it."
    return (
        "Remove the file acp-bridge-token from the configuration directory to make a new one,"
        f" or set {_TOKENS[0]}."
    )


class _Greeting(asyncio.Protocol):
    """Reads one HTTP head."""

    def __init__(self) -> None:
        self.head: asyncio.Future[tuple[bytes, bytes]] = asyncio.get_running_loop().create_future()
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if end and not self.head.done():
            self.head.set_result((head + end, rest))
        elif len(self._data) > _LONGEST_HEAD:
            self._fail("its answer is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("it closed the connection")

    def _fail(self, why: str) -> None:
        if not self.head.done():
            self.head.set_exception(ConnectionError(why))


class GatewayWay(Way):
    """The gateway's WebSocket."""

    label = "the gateway"

    def __init__(
        self, where: Places, settings: Settings, token: str, context: Any, agent: str
    ) -> None:
        self._where = where
        self._settings = settings
        self._token = token
        self._context = context
        self._agent = agent
        self._noted = bool(tokens.noted(where)[0])

    async def connect(self, open: Opener, name: str) -> Link:
        query = {"agent": self._agent, "connection": name}
        address, pid = tokens.noted(self._where)  # one that comes back may have moved
        if self._noted and not address:  # whoever has its usual port meanwhile is a stranger
            raise NotThere(f"The daemon of {self._where.config_dir} is away.", _START)
        self._noted = bool(address)
        address = address or tokens.configured(self._settings)
        try:
            return await connect(address, self._token, open, context=self._context, query=query)
        except Unknown as unknown:
            raise self._explained(unknown, address, pid) from None

    def _explained(self, unknown: Unknown, address: str, pid: int) -> Fault:
        """Why we are not let in, as far as it can be told from here."""
        daemon = f"that of {self._where.config_dir}, with its data in {self._where.data_dir},"
        stranger = f"What listens at {address} does not let the bridge in, and may be another"
        if pid and not is_alive(str(pid)):
            return NotThere(f"{stranger} daemon: {daemon} has ended.", _START)
        if not self._noted:
            return Unknown(
                f"{stranger} daemon: {daemon} does not run here.",
                f"{_START}; for one elsewhere, set DRAGOMAN_ACP_BRIDGE_TOKEN to a token of its.",
            )
        if not self._token:
            return Unknown(
                "The gateway wants a token; the bridge has none, as gateway.require_pairing is"
                " false.",
                "Restart a daemon that is older than this setting, or set it to true.",
            )
        return unknown


def main(args: "Args") -> int:
    """Run until the editor has left and has all its answers."""
    wire = stdio.claim_stdout()
    try:
        where, loaded = tokens.read(args.config_dir)
        for warning in loaded.warnings:
            print(f"dragoman acp-bridge: {warning}", file=sys.stderr)
        settings = loaded.settings
        check_there(tokens.address(where, settings))  # before a token is made for nobody
        token = find_token(where, settings, args.pair_code or "")
        context = tls(tokens.address(where, settings), where, settings)
        way = GatewayWay(where, settings, token, context, args.agent or "")
        return run(_serve(wire, way))
    except Fault as fault:
        print(f"dragoman acp-bridge: {fault}", file=sys.stderr)
        return 1


async def _serve(wire: int, way: GatewayWay) -> int:
    relay = Relay("dragoman acp-bridge", way, patience=_PATIENCE)
    stopping = Stopping(relay.leave)
    await relay.start(wire)
    code = await relay.over
    await relay.flushed()
    stopping.end()
    return code
