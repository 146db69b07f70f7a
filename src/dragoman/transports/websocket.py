"""WebSocket connections, after the HTTP upgrade: the pump with frames instead of lines.

One text frame per message; a binary frame counts as a message too. No extensions.
"""

import asyncio
from base64 import b64encode

from dragoman.wire.frames import (
    Code,
    Frames,
    Op,
    client_frame,
    close_payload,
    frame,
    text_frame,
)
from dragoman.wire.link import Blob, Opener, Peer, tell_overlong

from .pump import BOUND, Identify, Pump, Terms

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PATIENCE = 5.0  # seconds that the other side has to answer our close frame


def accept_key(key: str) -> str:
    """The Sec-WebSocket-Accept that answers a client's Sec-WebSocket-Key."""
    from hashlib import sha1

    return b64encode(sha1(key.strip().encode() + _GUID, usedforsecurity=False).digest()).decode()


class WebSocketLink(Pump):
    """One WebSocket connection, server's side unless `client`.

    Put it on an upgraded transport with `transport.set_protocol(link)`, then
    `link.connection_made(transport)`, then `link.data_received(rest)` with what was read too far.
    """

    __slots__ = ("_client", "_frames", "_longest", "_said_close")

    _glue = b""  # a frame has its own end

    def __init__(
        self,
        open: Opener,
        identify: Identify | Peer,
        *,
        client: bool = False,
        longest: int = 0,  # bytes of a message, if that is less than the dialect takes
        bound: int = BOUND,
    ) -> None:
        super().__init__(Terms(open, identify, bound=bound))
        self._client = client
        self._longest = longest
        self._said_close = False

    # --- the dialect's side ---------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        if not self.closed:
            self._post(client_frame(Op.TEXT, message) if self._client else text_frame(message))

    def send_blob(self, blob: Blob) -> None:
        if self.closed:
            return
        if self._client:
            for message in blob.messages:
                self.send(message)
        else:
            self._post(blob.frames)

    def ping(self, payload: bytes = b"") -> None:
        """Ask for a sign of life; an unanswered one shows as a stall or a lost connection."""
        self._post(self._control(Op.PING, payload))

    def eof(self) -> None:
        """A WebSocket has no half-close: end it."""
        self.close()

    def close(self, code: int = Code.NORMAL, reason: str = "") -> None:
        if self.closed:
            return
        self._say_close(close_payload(code, reason))
        super().close()

    # --- inside ---------------------------------------------------------------------------------

    def begin(
        self,
        peer: Peer,
        inlet: asyncio.ReadTransport | None,
        outlet: asyncio.WriteTransport,
    ) -> None:
        super().begin(peer, inlet, outlet)
        assert self.hearer is not None
        most = self.hearer.max_line
        longest = min(most, self._longest) if self._longest else most
        self._frames = Frames(longest, from_client=not self._client)

    def data_received(self, data: bytes) -> None:
        if self._lost:
            return
        if self.closed:
            self._await_close(data)
            return
        self._hearing = True
        try:
            self._take(data)
        finally:
            self._hearing = False
            self._settle()

    def _take(self, data: bytes) -> None:
        messages: list[bytes] = []
        for op, payload in self._frames.feed(data):
            if op <= Op.BINARY:
                if payload:
                    messages.append(payload)
            elif op == Op.PING:
                self._post(self._control(Op.PONG, payload))
            elif op == Op.CLOSE:
                self._deliver(messages)
                self._say_close(payload[:2])
                self.closed = True
                return
        self._deliver(messages)
        failure = self._frames.failure
        if failure is not None and not self.closed:
            if failure.code == Code.TOO_BIG and self.hearer is not None:
                # The dialect answers, then it is over.
                tell_overlong(self.hearer, failure.size, (failure.head, b""))
            self._say_close(close_payload(failure.code, failure.reason))
            self.closed = True

    def eof_received(self) -> bool:
        if self._lost or self._ended:
            return False
        self._ended = True
        if not self.closed:
            # The connection broke without a close frame: there is nobody left to answer.
            self._said_close = True
            self.closed = True
            self._settle()
        return True

    def _deliver(self, messages: list[bytes]) -> None:
        if messages and not self.closed and self.hearer is not None:
            self.hearer.hear(messages)

    def _await_close(self, data: bytes) -> None:
        """We said close: read on only to see the other side's answer."""
        events = self._frames.feed(data)
        if self._outlet is not None and (
            self._frames.failure is not None or any(op == Op.CLOSE for op, _ in events)
        ):
            self._outlet.close()

    def _settle(self) -> None:
        if not self.closed or self._lost or self._outlet is None:
            super()._settle()
            return
        self.flush()
        if self._frames.failure is not None or self._ended:
            super()._settle()
        elif not self._is_watched():
            self._slowed().timer = self._later(_PATIENCE, self._outlet.abort)

    def _say_close(self, payload: bytes) -> None:
        if not self._said_close:
            self._said_close = True
            self._post(self._control(Op.CLOSE, payload))

    def _control(self, op: int, payload: bytes) -> bytes:
        return client_frame(op, payload) if self._client else frame(op, payload)

    def _post(self, framed: bytes) -> None:
        if self._lost:
            return
        queue = self._queue
        if type(queue) is list:
            queue.append(framed)
        else:
            self._queue = [framed]
            if not self._hearing and not self._due:
                self._due = True
                self._terms.ticking.add(self)


def attach(transport: asyncio.Transport, link: WebSocketLink, rest: bytes = b"") -> WebSocketLink:
    """Let a link take over an upgraded transport; `rest` is what came after the HTTP head."""
    transport.set_protocol(link)
    link.connection_made(transport)
    if rest:
        link.data_received(rest)
    return link
