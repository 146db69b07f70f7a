"""The gateway itself: listens, admits, finds the route, and keeps what is open."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput, Fault, in_words
from dragoman.observe.aloud import aloud
from dragoman.observe.log import get_log
from dragoman.transports.unix import remove_if_same

from . import tokens, upgrade
from .auth import HEADER, Auth
from .board import ShortShape
from .http import Answer, Refusal, Request, Response, Stream, problem
from .links import Links
from .metrics import Meter
from .origin import Origins, is_loopback
from .outlet import Outlet
from .ports import Composed, Desks, Guests
from .push import Pusher
from .routes import all_routes
from .routes.streamable import Remotes, speaks_streams
from .routes.table import LARGE, SMALL, Call, find, run
from .server import Connection
from .spending import Spending
from .static import Static
from .views import EventShape

if TYPE_CHECKING:
    import ssl

    from dragoman.dialects.descriptor import Dialect, RestPlace
    from dragoman.engine.work import Work
    from dragoman.http.client import Client
    from dragoman.settings.host import Gateway

    from .native import Native
    from .secure import Handshake, SecureServer

_NOWHERE = ("nowhere",)  # parts of a path that no page has
_OPEN = "require_pairing = false: every program of this user is let in without a token"
_AWAKE_SECONDS = 15.0
_GUARD_SECONDS = 1.0
STATUS = {
    "bad_input": 400, "unknown_session": 404, "unknown_agent": 404, "unknown_model": 404,
    "unknown_approval": 404, "unknown_rule": 404, "changed": 409, "already_settled": 409,
    "busy": 409, "goes_on": 503, "nothing_running": 409,
    "limit": 429, "wrong_state": 409, "in_use": 409, "stale_epoch": 409, "store_failed": 503,
    "refused": 403, "provider_failed": 502,
}  # fmt: skip
log = get_log("gateway")
audit_log = get_log("audit")


class Gate:
    """One listening gateway."""

    def __init__(self, composed: Composed, desks: Desks, guests: Guests) -> None:
        self.composed = composed
        self.door = composed.door
        self.desks = desks
        self.sockets: dict[str, Dialect] = desks.websockets()
        self.guests = guests
        self.limits = composed.settings.limits
        given = composed.settings.gateway
        self.prefix = "/" + given.path_prefix.strip("/") if given.path_prefix.strip("/") else ""
        self._prefix_parts = tuple(self.prefix.strip("/").split("/")) if self.prefix else ()
        self._host = given.host
        self.origins = Origins(given.host, given.allowed_origins)
        self.routes = all_routes()
        streams = [one.streams for one in {*self.sockets.values()} if one.streams is not None]
        self._connections = [one.connection.lower() for one in streams]
        self._sessions = [one.session.lower() for one in streams]
        self.static = Static(self.prefix)
        self.meter = Meter()
        self.spending = Spending(self.door)
        self.door.on_spent(self.meter.spent)
        self.short = ShortShape(self.door)
        self.cwd = os.getcwd()
        self.connections: dict[Connection, None] = {}  # the oldest first
        self.links: dict[Any, str] = {}  # WebSocket -> id of the token it came with
        self.remotes: Remotes = {}  # connections over Streamable HTTP, and their tokens
        self.address = ""
        self.fingerprint = ""  # of the certificate, with TLS
        self.auth = Auth(self.door.shelf, required=given.require_pairing, cookie="dragoman")
        self.answers = Links(self.door.shelf)
        self.pusher = Pusher(self)
        self._awake: set[Outlet] = set()
        self._server: asyncio.Server | SecureServer | None = None
        self._secure: SecureServer | None = None
        self._natives: list[asyncio.Server] = []
        self._rules: list[Native] = []
        self._tasks: set[asyncio.Future[Any]] = set()
        self._guarding = False
        self._shapes = {passing: EventShape(by_gseq=True, passing=passing)
                        for passing in (False, True)}  # fmt: skip
        self._http: Client | None = None
        self._address_file = ""
        self._address_mark = (0, 0)  # which file that is

    @property
    def settings(self) -> "Gateway":
        """`[gateway]` as it is now; what listening depends on is read once."""
        return self.composed.settings.gateway

    def follow(self) -> None:
        """Take up who is let in now, and from which pages."""
        given = self.settings
        self.origins = Origins(self._host, given.allowed_origins)
        for rules in self._rules:
            rules.follow(given.allowed_origins)
        before, self.auth.required = self.auth.required, given.require_pairing
        if before and not self.auth.required:
            self._say(_OPEN)
        if self.auth.required:
            for link in [one for one, token in self.links.items() if not token]:
                link.close(1008, "a token is needed now")
            for connection in tuple(self.connections):  # on a port of its own none is needed
                if connection.streams and not connection.token_id and connection.keeper is self:
                    connection.abort()

    # --- life ---

    async def open(self) -> None:
        """Listen. Raises BadInput."""
        given = self.settings
        secure = await self._tls(given)
        self._server = await self._listen(given, secure)
        host, port = self._server.sockets[0].getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # where it is reached
        shown = f"[{shown}]" if ":" in shown else shown
        self.address = f"{'https' if secure else 'http'}://{shown}:{port}"
        # Cookies do not tell ports apart: two hosts on one machine need two names.
        self.auth.cookie = f"dragoman_{port}"
        self._note_address()
        if self.auth.required:
            await self._show_code()
        else:
            self._say_address()
            self._say(_OPEN)
        if not secure and not is_loopback(host):
            self._say(
                f"warning: {host}:{port} can be reached from other machines without TLS: "
                "tokens and all that is said can be read on the way "
                "(set gateway.tls_self_signed true)"
            )
        self.spawn(self._stay_awake())
        await self.pusher.resume()
        for name, one in given.callbacks.items():
            if one.enabled and one.url:
                from .callbacks import Callback

                self.spawn(Callback(self, name, one).run())

    async def _tls(self, given: "Gateway") -> "ssl.SSLContext | None":
        cert, key = given.tls_cert, given.tls_key
        if not cert and not key and not given.tls_self_signed:
            return None
        import ssl

        from dragoman.http import certificate

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            if given.tls_self_signed:
                folder = self.composed.places.data_dir
                names = sorted({"localhost", "127.0.0.1", "::1", socket.gethostname(), given.host})
                cert, key = await asyncio.to_thread(certificate.own, folder, names)
            context.load_cert_chain(cert, key or None)
            self.fingerprint = certificate.fingerprint(cert)
        except (OSError, ValueError, certificate.NoCertificate) as trouble:
            raise BadInput(
                f"The certificate cannot be used: {in_words(trouble)}.",
                "Check gateway.tls_cert and gateway.tls_key, or set gateway.tls_self_signed.",
            ) from None
        return context

    async def _listen(
        self, given: "Gateway", secure: "ssl.SSLContext | None"
    ) -> "asyncio.Server | SecureServer":

        def accept() -> Connection:
            return Connection(self, secure is not None)

        port = given.port
        sources = self.composed.config.loaded.sources
        for last in (False, True):
            try:
                server = await self._serve(accept, given.host, port, secure)
                if not server.sockets:  # the loop passes over those that it cannot make
                    server.close()
                    raise OSError(errno.EACCES, "the system gives no socket for it")
                return server
            except OSError as trouble:
                if last or ("gateway", "port") in sources or trouble.errno != errno.EADDRINUSE:
                    raise BadInput(
                        f"The gateway cannot listen on {given.host}, port {port}: "
                        f"{in_words(trouble)}.",
                        f"Set gateway.{_to_change(trouble)}, or use --no-gateway.",
                    ) from None
                self._say(f"port {port} is taken; the gateway listens on a free one")
                port = 0
        raise AssertionError

    async def _serve(
        self,
        accept: Callable[[], Connection],
        host: str,
        port: int,
        secure: "ssl.SSLContext | None",
    ) -> "asyncio.Server | SecureServer":
        if secure is None:
            loop = asyncio.get_running_loop()
            return await loop.create_server(accept, host, port, backlog=512)
        from .secure import SecureServer

        server = SecureServer(secure, accept, self._make_room_for_handshake)
        await server.listen(host, port)
        self._secure = server
        return server

    async def open_native(self, rest: "RestPlace", port: int) -> str:
        """Listen where a dialect's own clients look; returns the address."""
        from .native import HOST, Native

        rules = Native(self, rest)
        self._rules.append(rules)
        loop = asyncio.get_running_loop()
        try:
            self._natives.append(await loop.create_server(rules.accept, HOST, port, backlog=64))
        except OSError as trouble:
            self._say(f"the port {port} of {rest.path} cannot be used: {in_words(trouble)}")
            return ""
        return f"http://{HOST}:{port}"

    def _note_address(self) -> None:
        """Leave the address where the bridge and other commands of this host find it."""
        folder = self.composed.places.data_dir
        if not folder or not os.path.isdir(folder):
            return
        path = os.path.join(folder, "gateway.json")
        row = {"address": self.address + self.prefix, "pid": os.getpid()}
        # A new file takes the name's place: what the name led to, a link perhaps, is not written.
        fresh = f"{path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(row))
            made = os.fstat(handle)
        os.replace(fresh, path)
        self._address_file, self._address_mark = path, (made.st_dev, made.st_ino)

    async def _show_code(self) -> None:
        """The code is for the first one only: whoever has paired makes others."""
        code = await self.auth.first_code()
        if not code:
            self._say_address()
            return
        self._say(f"open {self._place()} and pair with the code {code}")
        if self.fingerprint:
            self._say(f"its certificate has the SHA-256 fingerprint {self.fingerprint}")

    def _say_address(self) -> None:
        self._say(f"the gateway listens at {self._place()}")

    def _place(self) -> str:
        other = self.settings.host in ("0.0.0.0", "::")
        from_elsewhere = " (from elsewhere: with this machine's name)" if other else ""
        return f"{self.address}{self.prefix}/{from_elsewhere}"

    async def pairing(self, *, link: bool = False) -> dict[str, Any]:
        """A new code for whoever asks over the Unix socket, or a link that works once."""
        shelf, place = self.auth.shelf, self.address + self.prefix
        if not link:
            code = await tokens.new_code(shelf)
            made = {"code": code, "address": place, "expires_in": tokens.CODE_SECONDS}
            return made | ({"fingerprint": self.fingerprint} if self.fingerprint else {})
        secret = await tokens.new_link(shelf)
        linked = {"link": f"{place}/#enter={secret}", "address": place}
        return {**linked, "expires_in": tokens.LINK_SECONDS}

    def _say(self, text: str) -> None:
        aloud(f"dragoman: {text}")

    async def close(self) -> None:
        """Stop listening, end what is open."""
        for server in (self._server, *self._natives):
            if server is not None:
                server.close()
        for link in tuple(self.links):
            link.close()
        for connection in tuple(self.connections):
            connection.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)
        for connection in tuple(self.connections):
            connection.abort()
        if self._secure is not None:
            await self._secure.over()
        if self._http is not None:
            await self._http.close()
        remove_if_same(self._address_file, self._address_mark)

    # --- the server's side (server.Rules) ---

    def is_owner(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        from dragoman.transports.neighbour import is_ours

        return is_ours(peer, here, self.composed.descendants.refuses)

    def is_tools(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        from dragoman.transports.neighbour import is_refused

        return is_refused(peer, here, self.composed.descendants.refuses)

    def joined(self, connection: Connection) -> bool:
        most = self.limits.max_clients
        self._make_room(connection, most)
        if len(self.connections) >= most:
            return False
        self.connections[connection] = None
        return True

    def _make_room(self, connection: Connection, most: int) -> None:
        """Those of one address that have not shown who they are take a quarter at most.

        The one that has been silent longest goes, not the newest: that may be its owner.
        """
        address = connection.peer.rpartition(":")[0]
        if len(self.connections) < most // 4:
            return
        unknown = [one for one in self.connections
                   if not one.welcome and one.peer.rpartition(":")[0] == address]  # fmt: skip
        if len(unknown) >= max(1, most // 4):
            self.connections.pop(unknown[0])
            self.meter.refusals["crowded_out"] += 1
            unknown[0].abort()

    def _make_room_for_handshake(self, under_way: "dict[Handshake, None]", address: str) -> None:
        """The same for those of one address that have not finished it, and a bound for all."""
        most = self.limits.max_clients
        quarter = max(1, most // 4)
        waiting: Iterable[Handshake] = ()
        if len(under_way) + len(self.connections) >= most:
            waiting = under_way
        elif len(under_way) >= quarter:
            mine = [one for one in under_way if one.address == address]
            waiting = mine if len(mine) >= quarter else ()
        if oldest := next(iter(waiting), None):
            del under_way[oldest]
            self.meter.refusals["crowded_out"] += 1
            oldest.end()

    def left(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def limit(self, request: Request, native: Origins | None = None) -> int:
        """`native`: who may ask on the port of another program, which knows no prefix."""
        (native or self.origins).check(request)
        parts = request.parts
        size = len(self._prefix_parts) if native is None else 0
        if size:
            if parts[:size] != self._prefix_parts or (len(parts) == size and not request.upgrades):
                if self.static.asked_by_browser(request):
                    request.parts = _NOWHERE
                    return SMALL
                raise Refusal(404, "not_found", "There is nothing at this path.")
            request.parts = parts = parts[size:]
        # The bare address is the dashboard's, unless a terminal asks it for a WebSocket.
        asked = len(parts) == 1 if any(parts) else request.upgrades
        if asked and upgrade.path(request) in self.sockets and not self._streams(request):
            upgrade.check(request)
            return 0
        if request.method == "OPTIONS" and self.origins.is_foreign_but_allowed(request):
            return 0
        if self.static.has(parts):
            return SMALL
        try:
            request.route, request.values = find(self.routes, request)
        except Refusal as refusal:
            if refusal.status != 404 or not self.static.asked_by_browser(request):
                raise
            return SMALL  # the answer is a page
        limit: int = min(request.route.limit, LARGE)
        return limit

    def _streams(self, request: Request) -> bool:
        """Whether a path of WebSockets is asked for Streamable HTTP, which one of them has."""
        path = upgrade.path(request)
        one = self.sockets[path]
        if one.streams is None or one.websocket is None or one.websocket[0].split()[0] != path:
            return False
        return speaks_streams(request, one.streams)

    async def admit(self, request: Request) -> None:
        route = request.route
        if route is None and not request.upgrades:
            return  # the dashboard's files are no secret
        if route is not None and (route.open or (route.local and request.local)):
            return
        try:
            await self.auth.identify(request)
        except Refusal as refusal:
            self.meter.refusals[refusal.code] += 1
            log.info("refused", reason=refusal.code, peer=request.peer, path=request.path[:200])
            raise

    async def answer(self, request: Request) -> Answer:
        if request.route is None:
            if request.upgrades:
                return upgrade.takeover(self, request)
            if request.method == "OPTIONS":
                return Response(204)
            return self.static.answer(request, request.parts)
        return await run(Call(self, request.route, request, request.values))

    def dress(self, request: Request | None, response: Response | Stream) -> None:
        headers = response.headers
        headers.setdefault("x-content-type-options", "nosniff")
        headers.setdefault("referrer-policy", "no-referrer")
        headers.setdefault("cache-control", "no-store")
        headers.setdefault("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
        headers.setdefault("cross-origin-resource-policy", "same-origin")
        headers.setdefault("cross-origin-opener-policy", "same-origin")
        headers.setdefault("x-frame-options", "DENY")
        if request is None:
            return
        log.debug("request", method=request.method, path=request.path[:200],
                  status=response.status, peer=request.peer)  # fmt: skip
        if self.origins.is_foreign_but_allowed(request) and response.status not in (403, 421):
            headers["access-control-allow-origin"] = request.header("origin")
            headers["access-control-expose-headers"] = ", ".join(self._connections)
            headers["vary"] = "origin"
            headers["cross-origin-resource-policy"] = "cross-origin"
            if request.method == "OPTIONS":
                headers["access-control-allow-methods"] = "GET, POST, PUT, PATCH, DELETE"
                headers["access-control-allow-headers"] = (
                    "authorization, content-type, last-event-id, x-pairing-code, x-client, "
                    f"x-client-version, {', '.join((*self._connections, *self._sessions, HEADER))}"
                )
                headers["access-control-max-age"] = "600"

    def answered(self, method: str, status: int) -> None:
        self.meter.answered(method, status)

    def failure(self, request: Request, trouble: Exception) -> Response:
        if isinstance(trouble, Refusal):
            return trouble.response()
        if isinstance(trouble, Fault):
            status = STATUS.get(trouble.code, 500)
            data = {name: value for name, value in trouble.data.items() if name != "status"}
            return problem(status, trouble.code, trouble.message, trouble.hint, _plain(data))
        self.door.trouble("gateway request failed", trouble, path=request.path[:200])
        return problem(500, "internal", "Something went wrong here.", "The log says more.")

    def audit(self, what: str, **pairs: Any) -> None:
        audit_log.info(what, **{name: value for name, value in pairs.items() if name != "token"},
                       id=pairs.get("token", ""))  # fmt: skip

    # --- what stays open ---

    def spawn(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.door.trouble("gateway work failed", error)

    def shape(self, passing: bool) -> EventShape:
        return self._shapes[passing]

    def keep_awake(self, outlet: Outlet) -> None:
        """Say something now and then, so that proxies and clients know the stream lives."""
        self._awake.add(outlet)
        outlet.on_close.append(lambda: self._awake.discard(outlet))
        self.guard()

    async def _stay_awake(self) -> None:
        while True:
            await asyncio.sleep(_AWAKE_SECONDS)
            for outlet in tuple(self._awake):
                if not outlet.paused:
                    outlet.write(b": \n\n")
            for link in self._open_links():
                if not link.paused:
                    link.ping()

    def guard(self) -> None:
        """Look after the tokens of what is open, for as long as something is."""
        if not self._guarding:
            self._guarding = True
            self.spawn(self._guard())

    async def _guard(self) -> None:
        # Another process may revoke a token in the store; there is no event for that.
        try:
            while self._open_links() or self._awake:
                await asyncio.sleep(_GUARD_SECONDS)
                try:
                    await self.check_tokens()
                except Fault as problem:  # of the store: they are looked at again soon
                    self.door.trouble("tokens were not looked after", problem)
        finally:
            self._guarding = False

    def _open_links(self) -> list[Any]:
        for link in tuple(self.links):
            if link.closed:
                del self.links[link]
        return list(self.links)

    async def check_tokens(self) -> None:
        """Cut off whoever came with a token that is worthless now."""
        known = {token.id for token in await tokens.list_tokens(self.auth.shelf)}
        for link in self._open_links():
            if self.links[link] and self.links[link] not in known:
                link.close(1008, "the token was revoked")
        for connection in tuple(self.connections):
            # The next request of a quiet connection is looked at anyway.
            if connection.streams and connection.token_id not in known | {""}:
                connection.abort()

    def watch_work(self, work: "Work") -> None:
        """Nobody waits for this turn: its failure is in the session, not in a warning."""
        work.done.add_done_callback(lambda done: done.cancelled() or done.exception())

    def client(self) -> "Client":
        """The HTTP client of webhooks out, made when it is first needed."""
        if self._http is None:
            from dragoman.http.client import Client

            self._http = Client()
        return self._http


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Fault data as JSON can hold it."""
    found = {}
    for name, value in data.items():
        try:
            found[name] = msgspec.to_builtins(value)
        except TypeError:
            found[name] = str(value)
    return found


def _to_change(trouble: OSError) -> str:
    """What of the address was wrong, and what to put there."""
    if trouble.errno in (errno.EADDRINUSE, errno.EACCES, errno.EPERM):
        return "port to another one"
    return "host to an address of this machine (127.0.0.1; 0.0.0.0 for all)"
