"""`dragoman acp`: the Agent Client Protocol on standard input and output.

A relay carries the editor's lines: to the running daemon, or, where none runs, to a host of this
process, whose sessions the daemon gets as soon as one comes. Only what the first answer needs is
imported before the input is read (see `acp_greeting.py`).
"""

import asyncio
import gc
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from dragoman.settings.places import places
from dragoman.stdio.acp_greeting import Greeter, is_plain
from dragoman.stdio.joining import Begun
from dragoman.stdio.relay import NotThere, Relay, Way
from dragoman.transports import stdio
from dragoman.transports.loop import Stopping, run, settle_memory
from dragoman.transports.pump import Pump, Terms
from dragoman.wire.link import Blob, Hearer, Link, Opener, Peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.cli.parse import Args
    from dragoman.host.compose import Composed

_PATIENCE = 3.0  # seconds that a daemon which was there may be away before we go on alone


def main(args: "Args", path: str = "", begun: Begun | None = None) -> int:
    """Serve until the input ends; returns the exit code. `path`: of the daemon's socket, if any."""
    wire = stdio.claim_stdout()  # before anything else can print on it
    flags: dict[str, Any] = {}
    if args.max_sessions is not None:
        flags["acp.max_sessions"] = args.max_sessions
    if args.session_timeout is not None:
        flags["acp.session_timeout_secs"] = args.session_timeout
    return run(_serve(wire, OwnHost(args.config_dir, flags), path, begun))


async def _serve(wire: int, own: "OwnHost", path: str, begun: Begun | None) -> int:
    relay = Relay("dragoman acp", DaemonWay(path) if path else own, spare=own, patience=_PATIENCE)
    own.relay = relay
    stopping = Stopping(relay.leave)
    if begun is not None:
        way = DaemonWay(path)
        relay.adopt(begun.heard, begun.told)  # before anything more is heard
        link = await way.adopt(relay.hostward, begun)
        await relay.start(wire, link, begun.rest)
    else:
        relay.begin_with(own)
        await relay.start(wire)
    code = await relay.over
    if not stopping.number:
        await relay.flushed()
    await own.close()
    stopping.end()
    return code


class DaemonWay(Way):
    """The running daemon's socket."""

    label = "the daemon"
    half_closes = True

    def __init__(self, path: str) -> None:
        self._path = path

    async def connect(self, open: Opener, name: str) -> Link:
        sock = None
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # a sandbox may have none
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, self._path)
        except OSError as problem:
            if sock is not None:
                sock.close()
            from dragoman.engine.faults import in_words

            raise NotThere(
                f"The daemon at {self._path} does not answer: {in_words(problem)}."
            ) from None
        return await self._opened(sock, open)

    async def adopt(self, open: Opener, begun: Begun) -> Link:
        """Go on with a connection on which something was said already."""
        begun.sock.setblocking(False)
        return await self._opened(begun.sock, open, begun.left)

    async def _opened(self, sock: socket.socket, open: Opener, first: bytes = b"") -> Pump:
        terms = Terms(open, Peer(f"unix:{self._path}", "unix"))
        _, pump = await asyncio.get_running_loop().create_unix_connection(
            lambda: _Continued(terms, first), sock=sock
        )
        return pump


class _Continued(Pump):
    """A connection of which something was read already: that comes before everything else."""

    __slots__ = ("_first",)

    def __init__(self, terms: Terms, first: bytes) -> None:
        super().__init__(terms)
        self._first = first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._first:
            self.data_received(self._first)


class OwnHost(Way):
    """A host of this process. It is put together when somebody says something."""

    label = "a host of its own"
    half_closes = True

    def __init__(self, config_dir: str | None, flags: dict[str, Any]) -> None:
        self._config_dir = config_dir
        self._flags = flags
        self._where = places(os.environ, config_dir)
        self._composed: Composed | None = None
        self._greeter: Greeter | None = None
        self._desk: Any = None
        self._task: asyncio.Task[None] | None = None
        self.relay: Relay

    async def connect(self, open: Opener, name: str) -> Link:
        inner, outer = _Inner(), _Outer(self)
        inner.outer, outer.inner = outer, inner
        # Asked now: this may be long after the start, when the daemon is gone.
        plain = is_plain(os.environ, self._where) and _sound(self._flags)
        self._greeter = Greeter(outer, self._where, self._flags, self._wake, plain)
        inner.hearer = self._greeter
        outer.told = open(inner)
        if not plain:
            self._begin()
        return inner

    def _wake(self) -> None:
        """Put the host together, once what was said so far has been sent."""
        if self._task is None:
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._compose())

    async def _compose(self) -> None:
        from dragoman.engine.faults import Fault
        from dragoman.host.compose import compose

        try:
            composed = await compose(config_dir=self._config_dir, flags=self._flags)
        except Fault as fault:
            print(f"dragoman acp: {fault}", file=sys.stderr)
            self.relay.fail()
            return
        self._composed = composed
        for notice in composed.notices:
            print(f"dragoman acp: {notice}", file=sys.stderr)
        from dragoman.dialects.acp import Desk

        desk = self._desk = Desk(composed.door, composed.settings.acp)
        composed.config.applied.append(lambda old, new: setattr(desk, "settings", new.acp))
        assert self._greeter is not None
        self._greeter.hand_over(desk.hearer(self._greeter.link))
        gc.enable()
        settle_memory()

    def busy(self) -> bool:
        """A turn runs; one that only waits for a human can go on elsewhere."""
        if self._composed is None:
            return self._task is not None
        return self._composed.door.running()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await asyncio.wait({task})
        if self._desk is not None:
            await self._desk.close()
        if self._composed is not None:
            await self._composed.close()
        self._desk = self._composed = self._greeter = None


class _Inner:
    """The host's end as the relay sees it: what is sent is heard at once."""

    paused = False
    buffered = 0
    peer = Peer("stdio", "stdio")

    def __init__(self) -> None:
        self.hearer: Hearer
        self.outer: _Outer
        self.closed = False

    def send(self, message: bytes) -> None:
        if not self.closed:
            self.hearer.hear([message])

    def send_blob(self, blob: Blob) -> None:
        for message in blob.messages:
            self.send(message)

    def on_resume(self, callback: "Callable[[], None]") -> None:
        callback()

    def eof(self) -> None:
        if not self.closed:
            self.hearer.ended()

    def abort(self) -> None:
        self.close()

    def close(self) -> None:
        """The connection is over, whoever ended it."""
        if not self.closed:
            self.closed = True
            self.hearer.lost()
            self.outer.told.lost()


class _Outer:
    """The relay's end as the host sees it: as fast or slow as the editor."""

    peer = Peer("stdio", "stdio")

    def __init__(self, own: OwnHost) -> None:
        self._own = own
        self.told: Hearer
        self.inner: _Inner

    @property
    def _editor(self) -> Link | None:
        return self._own.relay.editor

    @property
    def paused(self) -> bool:
        return self._editor is not None and self._editor.paused

    @property
    def buffered(self) -> int:
        return self._editor.buffered if self._editor is not None else 0

    @property
    def closed(self) -> bool:
        return self.inner.closed or (self._editor is not None and self._editor.closed)

    def send(self, message: bytes) -> None:
        if not self.inner.closed:
            self.told.hear([message])

    def send_blob(self, blob: Blob) -> None:
        if not self.inner.closed:
            self._own.relay.told_all(blob)

    def on_resume(self, callback: "Callable[[], None]") -> None:
        if self._editor is not None:
            self._editor.on_resume(callback)
        else:
            callback()

    def eof(self) -> None:
        self.told.ended()

    def close(self) -> None:
        asyncio.get_running_loop().call_soon(self.inner.close)

    def abort(self) -> None:
        self.close()


def _sound(flags: dict[str, Any]) -> bool:
    """Whether the command line's values are beyond doubt; if not, the settings judge them."""
    sessions, seconds = flags.get("acp.max_sessions", 1), flags.get("acp.session_timeout_secs", 0)
    return bool(sessions >= 1 and seconds >= 0)
