"""Our HTTP client: HTTP/1.1 on asyncio, connections kept, proxies and certificates as usual."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from .connect import connect
from .connection import Connection, Incoming, Plain, Secure
from .port import BadRequest, HttpFault, TimedOut, Timeouts, Unreachable, Whole
from .route import Route, route, split

if TYPE_CHECKING:
    import ssl

_MOST = 512  # requests at once
_KEPT = 128  # idle connections of one place: as many sessions as talk at once, mostly
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})  # by RFC 9110
_IDLE = 60.0  # seconds a connection is kept without use


class Client:
    """Asks, and keeps its connections.

    `trust` is an SSL context of one's own; without it the usual certificates are loaded when a
    secure address is first asked.
    """

    def __init__(
        self,
        *,
        timeouts: Timeouts | None = None,
        trust: "ssl.SSLContext | None" = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self._trust = trust
        self._env = os.environ if env is None else env
        self._places: dict[str, tuple[Route, str]] = {}
        self._idle: dict[Route, list[Connection]] = {}
        self._routes: dict[Connection, Route] = {}
        self._asking = 0
        self._emptied: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
        timeouts: Timeouts | None = None,
    ) -> AsyncIterator[Incoming]:
        """Send a request; entered when the head of the answer is there. Leaving early aborts.

        Redirects are not followed: a key must not go where nobody sent it. Raises HttpFault.
        """
        limits = timeouts or self.timeouts
        if self._asking >= _MOST:
            raise Unreachable(f"{_MOST} requests are under way already")
        self._asking += 1
        answer: Incoming | None = None
        try:
            way, target = self._place(url)
            request = _request(method, way, target, headers, body)
            while True:
                connection = self._kept(way) or await self._connected(way, limits.connect)
                answer = Incoming(connection, request, limits, self._keep)
                try:
                    await answer.head()
                    break
                except HttpFault:
                    # The other side gave up a connection that we had kept just as we wrote. Whether
                    # it heard the request nobody knows: only what may be done twice is sent again.
                    # The rest is for whoever asks: a model's answer costs money.
                    if method not in _REPEATABLE or not answer.unanswered:
                        raise
            yield answer
        finally:
            self._asking -= 1
            if answer is not None:
                answer.close()

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
        timeouts: Timeouts | None = None,
        most: int = 1024 * 1024,
    ) -> Whole:
        """Send a request and read its answer, cut after `most` bytes. Raises HttpFault."""
        asked = self.open(method, url, headers=headers, body=body, timeouts=timeouts)
        async with asked as answer:
            return Whole(answer.status, answer.headers, await answer.read(most))

    async def close(self) -> None:
        """Cut every connection."""
        for connection in tuple(self._routes):
            connection.abort()
        if self._routes:
            self._emptied = asyncio.get_running_loop().create_future()
            await self._emptied

    # --- connections ---

    def _place(self, url: str) -> tuple[Route, str]:
        found = self._places.get(url)
        if found is None:
            there = split(url)
            way, target = route(there, self._env), there.target
            if way.proxy is not None and not way.tunnels:
                target = f"http://{way.authority}{target}"
            found = (way, target)
            if len(self._places) < 1000:
                self._places[url] = found
        return found

    def _kept(self, way: Route) -> Connection | None:
        idle = self._idle.get(way)
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            fresh = not connection.lost and now - connection.idle_since < _IDLE
            if fresh and not connection.stale:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: Connection) -> None:
        idle = self._idle.setdefault(self._routes[connection], [])
        if len(idle) >= _KEPT:
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        idle.append(connection)
        if connection.idle_since - idle[0].idle_since >= _IDLE:
            idle.pop(0).abort()

    def _lost(self, connection: Connection) -> None:
        way = self._routes.pop(connection, None)
        idle = self._idle.get(way) if way is not None else None
        if idle and connection in idle:
            idle.remove(connection)
        if not self._routes and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def _connected(self, way: Route, seconds: float) -> Connection:
        secure = way.secure or (way.proxy is not None and way.proxy.secure)
        if self._trust is None and secure:
            # Reading the certificates takes a while: not in the loop's thread.
            from .trust import trusting

            made = await asyncio.to_thread(trusting, "", self._env)
            self._trust = self._trust or made
        kind = Secure if secure else Plain
        try:
            async with asyncio.timeout(seconds):
                connection = await connect(way, self._trust, lambda: kind(self._lost))
        except TimeoutError:
            raise TimedOut(f"no connection within {seconds:g} s") from None
        if connection.lost:
            raise Unreachable("it closed the connection at once")
        self._routes[connection] = way
        return connection


def _request(
    method: str, way: Route, target: str, headers: Mapping[str, str], body: bytes
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"host: {way.authority}"]
    names = {name.lower() for name in headers}
    if way.credential and "authorization" not in names:
        lines.append(f"authorization: {way.credential}")
    if way.proxy is not None and way.proxy.credential and not way.tunnels:
        lines.append(f"proxy-authorization: {way.proxy.credential}")
    if "accept-encoding" not in names:
        lines.append("accept-encoding: identity")
    if body or method not in ("GET", "HEAD"):
        lines.append(f"content-length: {len(body)}")
    for name, value in headers.items():
        if not _is_name(name):
            raise BadRequest(f'"{name}" is no name of a header')
        if "\r" in value or "\n" in value or "\0" in value:
            raise BadRequest(f"the header {name} holds a line break")
        lines.append(f"{name}: {value.strip()}")
    try:
        head = "\r\n".join((*lines, "", "")).encode("latin-1")
    except UnicodeEncodeError:
        wrong = next((name for name, text in headers.items() if max(text, default="") > "\xff"), "")
        raise BadRequest(f"the header {wrong} holds letters that no header can hold") from None
    return head + body


def _is_name(name: str) -> bool:
    return bool(name) and name.replace("-", "").replace("_", "").replace(".", "").isalnum() and (
        name.isascii()
    )  # fmt: skip
