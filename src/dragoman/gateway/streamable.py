"""A connection over Streamable HTTP: messages come by POST and leave by server-sent events.

One stream belongs to the connection, one to each session. What nobody reads yet waits, within
bounds; a stream that breaks goes on where it stopped when it is opened again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET

from dragoman.dialects.descriptor import Streams
from dragoman.holding import Holder
from dragoman.wire.link import Blob, Hearer, Opener, Peer

from .outlet import Outlet

HIGH = 1024 * 1024  # bytes that wait before the dialect is asked to pause
STALL_SECONDS = 60.0  # for a client that leaves more than the bound unread
IDLE_SECONDS = 300.0  # for a client that has no stream open and sends nothing
MOST_UNREAD = 256  # sessions with something to say that nobody listens to
_MOST_ASKED = 1024


class _Update(msgspec.Struct, rename="camel"):
    session_update: Any = None
    session_id: Any = None  # of a child


class _Session(msgspec.Struct, rename="camel"):
    session_id: Any = None
    update: _Update | None = None


class _Out(msgspec.Struct):
    """What a message of ours is, as far as its way depends on it."""

    method: str = ""
    id: Any = UNSET
    params: _Session | None = None


_read = msgspec.json.Decoder(_Out).decode


def key_of(id: object) -> tuple[type, Any]:
    """1, 1.0, true and "1" are different ids."""
    return type(id), id


class Mailbox(Holder):
    """One stream: what is written to it, and what waits for somebody to read it."""

    _link: "StreamsLink"
    _queue: deque[bytes | Callable[[], None]] = msgspec.field(default_factory=deque)
    outlet: Outlet | None = None
    taken: bool = False  # somebody reads it, or is about to

    @property
    def empty(self) -> bool:
        return not self._queue

    def push(self, message: bytes) -> None:
        self._queue.append(message)
        self._link.grow(len(message))
        self.flush()

    def then(self, act: Callable[[], None]) -> None:
        """Do this when what is here now has been written; at once while nobody reads."""
        if self.outlet is None or self.empty:
            act()
        else:
            self._queue.append(act)

    def join(self, outlet: Outlet) -> None:
        self.outlet = outlet
        outlet.on_close.append(self._left)
        outlet.write(b": \n\n")  # something to show that the stream is open
        self.flush()

    def _left(self) -> None:
        self.outlet, self.taken = None, False
        self._link.touch()

    def flush(self) -> None:
        outlet, queue = self.outlet, self._queue
        while queue and outlet is not None and not outlet.closed and not outlet.paused:
            one = queue.popleft()
            if callable(one):
                one()
                continue
            outlet.write(b"data: " + one + b"\n\n")
            self._link.grow(-len(one))
        if queue and outlet is not None and not outlet.closed:
            outlet.on_resume(self.flush)


class StreamsLink:
    """The dialect's side of it (`wire.link.Link`), and the routes'."""

    def __init__(
        self,
        open: Opener,
        peer: Peer,
        rules: Streams,
        *,
        bound: int,
        ended: Callable[[str], None],
    ) -> None:
        self.id = str(uuid4())
        self.peer = peer
        self.closed = False
        self.buffered = 0
        self.left: Callable[[Any], None] | None = None
        self.spy: Callable[[bytes], None] | None = None
        self._rules = rules
        self._child = b'"%s"' % rules.child.encode()
        self._bound = bound
        self._ended = ended
        self._boxes: dict[str, Mailbox] = {"": Mailbox(self)}
        self._homes: dict[str, str] = {}  # children -> the sessions that announced them
        self._ways: dict[Any, tuple[str, bool]] = {}  # requests of the client -> their stream
        self.asked: dict[Any, str] = {}  # our requests -> the session they are about
        self._resumed: list[Callable[[], None]] = []
        self._late: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.hearer: Hearer | None = open(self)
        self.touch()

    # --- the routes' side ---

    @property
    def full(self) -> bool:
        """So much is unread that nothing more is to be asked."""
        return self.buffered > self._bound

    def box(self, session: str = "") -> Mailbox | None:
        """A stream; None when too many wait for a reader already."""
        found = self._boxes.get(session)
        if found is None:
            unread = [name for name, one in self._boxes.items() if not one.taken and name]
            for name in unread:
                if self._boxes[name].empty:
                    del self._boxes[name]
            if len(self._boxes) > MOST_UNREAD and len(unread) >= MOST_UNREAD:
                return None
            found = self._boxes[session] = Mailbox(self)
        return found

    def home(self, session: str) -> str:
        """Where a session is told: a child with its parent, until somebody reads its own stream."""
        own = self._boxes.get(session)
        while session in self._homes and (own is None or not own.taken):
            session = self._homes[session]
            own = self._boxes.get(session)
        return session

    def take(self, message: bytes, method: str, id: object, session: str) -> None:
        """Hear one message of the client."""
        self.touch()
        if method and id is not UNSET:
            self._ways[key_of(id)] = (session, method in self._rules.replays)
        if self.hearer is not None:
            self.hearer.hear([message])

    def touch(self) -> None:
        """The client showed that it is there."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self.closed and not any(one.taken for one in self._boxes.values()):
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.abort)

    def grow(self, size: int) -> None:
        self.buffered += size
        if self.full and self._late is None:
            self._late = asyncio.get_running_loop().call_later(STALL_SECONDS, self.abort)
        elif not self.full and self._late is not None:
            self._late.cancel()
            self._late = None
        if not self.paused and self._resumed:
            waiting, self._resumed = self._resumed, []
            for callback in waiting:
                callback()

    # --- wire.link.Link ---

    @property
    def paused(self) -> bool:
        return self.buffered > HIGH

    def send(self, message: bytes) -> None:
        if self.closed:
            return
        if self.spy is not None:
            self.spy(message + b"\n")
        out = _read(message)
        if not out.method:
            if not self.first.done():
                self.first.set_result(message)
                return
            session, last = self._ways.pop(key_of(out.id), ("", False))
            if last:
                self._put(session, lambda box: box.then(lambda: self._push("", message)))
            else:
                self._push(session, message)
            return
        named = out.params.session_id if out.params is not None else None
        session = named if isinstance(named, str) else ""
        if self._rules.child and self._child in message:
            self._meet(session, out)
        if out.id is not UNSET:
            self.asked[key_of(out.id)] = session
            if len(self.asked) > _MOST_ASKED:  # those that were taken back are never answered
                del self.asked[next(iter(self.asked))]
        self._push(self.home(session), message)

    def _meet(self, parent: str, out: _Out) -> None:
        """A child is announced."""
        update = out.params.update if out.params is not None else None
        if update is None or update.session_update != self._rules.child:
            return
        child = update.session_id
        if isinstance(child, str) and child != parent and self.home(parent) != child:
            self._homes[child] = parent
            if len(self._homes) > _MOST_ASKED:
                del self._homes[next(iter(self._homes))]

    def _push(self, session: str, message: bytes) -> None:
        self._put(session, lambda box: box.push(message))

    def _put(self, session: str, act: Callable[[Mailbox], None]) -> None:
        box = self.box(session)
        act(box if box is not None else self._boxes[""])

    def send_blob(self, blob: Blob) -> None:
        for message in blob.messages:
            self.send(message)

    def on_resume(self, callback: Callable[[], None]) -> None:
        if self.closed or not self.paused:
            callback()
        else:
            self._resumed.append(callback)

    def ping(self) -> None:
        """Each stream is kept awake by itself."""

    def eof(self) -> None:
        self.close()

    def close(self, code: int = 0, reason: str = "") -> None:
        """End all streams; what was queued is written first, where somebody reads."""
        if self.closed:
            return
        self.closed = True
        for timer in (self._late, self._idle):
            if timer is not None:
                timer.cancel()
        for box in tuple(self._boxes.values()):
            if box.outlet is not None:
                box.outlet.close()
        asyncio.get_running_loop().call_soon(self._lost)

    def abort(self) -> None:
        self.close()

    def _lost(self) -> None:
        hearer, self.hearer = self.hearer, None
        if hearer is not None:
            hearer.lost()
        if not self.first.done():
            self.first.cancel()
        waiting, self._resumed = self._resumed, []
        for callback in waiting:
            callback()
        if self.left is not None:
            self.left(self)
        self._ended(self.id)
