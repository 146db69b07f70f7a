"""Listening for TLS: who has not finished the handshake takes room, too.

The loop's own server tells of a connection only after its handshake, so that programs which say
nothing could take every descriptor of this process, unseen.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from dragoman.observe.log import get_log

log = get_log("gateway")

_BACKLOG = 512
_AT_ONCE = 64  # accepted before others are served
_HANDSHAKE_SECONDS = 10.0
_AGAIN_SECONDS = 1.0
_FAREWELL_SECONDS = 1.0
_NO_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Handshake:
    """A connection whose client has not greeted us yet."""

    __slots__ = ("_socket", "address")

    def __init__(self, accepted: socket.socket, address: str) -> None:
        self._socket = accepted
        self.address = address

    def end(self) -> None:
        """The loop, which has the socket, sees its end and lets go of it."""
        with suppress(OSError):  # it is over already
            self._socket.shutdown(socket.SHUT_RDWR)


class SecureServer:
    """Accepts connections by itself; then they are the loop's, as from a server of its own."""

    def __init__(
        self,
        context: ssl.SSLContext,
        made: Callable[[], asyncio.Protocol],
        make_room: Callable[[dict[Handshake, None], str], None],
    ) -> None:
        """`make_room` ends, of what is under way, what stands in the way of one more address."""
        self.sockets: list[socket.socket] = []
        self._context = context
        self._made = made
        self._make_room = make_room
        self._under_way: dict[Handshake, None] = {}  # the oldest first
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[socket.socket, asyncio.TimerHandle] = {}

    async def listen(self, host: str, port: int) -> None:
        """At every address that this host has. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, kind, number, _, address in dict.fromkeys(found):
                try:
                    one = socket.socket(family, kind, number)
                except OSError:
                    continue  # this machine has none of the kind
                self.sockets.append(one)
                one.setblocking(False)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # the same port is taken in the other family, too
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind(address)
                one.listen(_BACKLOG)
        except OSError:
            self.close()
            raise
        for one in self.sockets:
            loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Listen no more, and end what is not greeted yet."""
        loop = asyncio.get_running_loop()
        for timer in self._timers.values():
            timer.cancel()
        for one in self.sockets:
            loop.remove_reader(one)
            one.close()
        for handshake in self._under_way:
            handshake.end()

    async def over(self) -> None:
        """Wait until the loop has let go of what was ended."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_FAREWELL_SECONDS)

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_AT_ONCE):
            try:
                accepted, name = listener.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as trouble:
                if trouble.errno not in _NO_ROOM:
                    raise
                log.error("nobody can be let in", problem=trouble.strerror)
                loop.remove_reader(listener)
                self._timers[listener] = loop.call_later(_AGAIN_SECONDS, self._again, listener)
                return
            accepted.setblocking(False)
            handshake = Handshake(accepted, str(name[0]))
            self._make_room(self._under_way, handshake.address)
            self._under_way[handshake] = None
            task = loop.create_task(self._greet(handshake, accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _again(self, listener: socket.socket) -> None:
        del self._timers[listener]
        asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def _greet(self, handshake: Handshake, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._made,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )
        except OSError as problem:  # no TLS, none that we speak, or nothing in time
            log.debug("no handshake", peer=handshake.address, problem=str(problem))
        finally:
            self._under_way.pop(handshake, None)
