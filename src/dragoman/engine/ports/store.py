"""The store, and the clock."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from ..events import Ask, Settled
from ..info import Page, SessionInfo, SessionQuery

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One kept event as stored: `body` is encoded JSON."""

    seq: int
    at: int
    kind: str
    body: bytes
    gseq: int = 0
    session: str = ""


class Batch(msgspec.Struct, frozen=True):
    """What one step adds to a session: all of it is stored, or nothing."""

    session: str
    epoch: int
    entries: Sequence[Entry]  # consecutive seq, first = last stored + 1
    info: SessionInfo  # the row after these entries
    asked: Sequence[Ask] = ()
    settled: Sequence[Settled] = ()
    handled: str = ""  # the command of another node that this is the effect of


class AskRow(msgspec.Struct, frozen=True):
    ask: Ask
    settled: Settled | None = None
    settled_at: int | None = None


class Shelf(Protocol):
    """The part of a store for small things that belong to no session."""

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        """Keep a small value (tokens, recent paths, dismissed hints); None removes it."""
        ...

    async def get(self, space: str, key: str) -> bytes | None: ...

    async def pop(self, space: str, key: str) -> bytes | None:
        """Remove a small value; of all who do so at once, on any node, one is given it."""
        ...

    async def pairs(self, space: str) -> Sequence[tuple[str, bytes]]: ...


def row_of(data: bytes | None, kind: type[T]) -> T | None:
    """A small value of a shelf, written as JSON; one that cannot be read hides no other.

    None: there is none, it is damaged, or a version wrote it that says more than we know.
    """
    try:
        return None if data is None else msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class Store(Shelf, Protocol):
    """Where sessions live. Every method may raise StoreFailed."""

    durable: bool
    place: str  # the database that it is in; empty: a file of this machine, or memory

    @property
    def problem(self) -> str:
        """What is wrong: why nothing survives when a file was wanted, or that it is gone."""
        ...

    @property
    def stalled(self) -> str:
        """Why nothing can be written just now; what is posted waits."""
        ...

    @property
    def commits(self) -> int:
        """Transactions written so far."""
        ...

    def version(self) -> object:
        """Something that differs once anybody, also another process, has written since."""
        ...

    async def create(self, info: SessionInfo, owner: str) -> int:
        """Add a session (no entries yet) owned by this process; returns its epoch.

        Raises WrongState when the id exists.
        """
        ...

    async def take(self, session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        """Become the session's writer: a new, higher epoch. Raises UnknownSession, InUse when
        another owner for which `is_alive(owner)` holds it.
        """
        ...

    async def give(self, session: str, epoch: int) -> None:
        """Stop being the writer; another process may take it."""
        ...

    def post(self, batch: Batch, *, patient: bool = False) -> "asyncio.Future[int]":
        """Store a batch in one transaction; the future has the `gseq` of its first entry, the
        others follow it. Needs no Task: attach a callback, or await it.

        Batches are stored in the order in which they were posted. Every refusal (StaleEpoch,
        UnknownSession, ...) comes through the future, so somebody must look at it; nothing is
        raised here. Cancelling the future does not take the batch back. Once it has a result, the
        batch survives a crash. A `patient` one may wait some milliseconds for others to be stored
        with.
        """
        ...

    async def append(self, batch: Batch) -> int:
        """`post`, and wait for it."""
        ...

    async def info(self, session: str) -> SessionInfo | None: ...

    async def owner(self, session: str) -> str | None: ...

    async def find(self, **extra: Any) -> SessionInfo | None:
        """The newest session whose `extra` has all these values (see `SessionQuery`)."""
        ...

    async def entries(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> Sequence[Entry]: ...

    async def entries_since(self, gseq: int, limit: int) -> Sequence[Entry]:
        """Entries of all sessions after `gseq`, in order."""
        ...

    async def newest_gseq(self) -> int: ...

    async def list(self, query: SessionQuery) -> Page: ...

    async def search(self, text: str, limit: int = 100) -> Sequence[SessionInfo]:
        """The sessions in which all words of `text` stand in what was said in one message or one
        batch of them, in a title, a prompt, the folder or the agent's name; the newest such place
        first, then those that only their folder or agent tells.

        A word of two letters or more may be the beginning of a longer one; case and accents do not
        matter. What was posted before is found. A text without words finds nothing.
        """
        ...

    async def ancestry(self, session: str) -> Sequence[SessionInfo]:
        """The session's ancestors, oldest first, itself last."""
        ...

    async def delete(self, session: str) -> bool: ...

    async def asks(
        self, session: str | None = None, *, pending: bool = True
    ) -> Sequence[AskRow]: ...

    async def ask(self, ask_id: str) -> AskRow | None: ...

    async def spaces(self) -> Sequence[str]:
        """The spaces that have a small value."""
        ...

    async def close(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...
