"""What the stores in a database share: reading rows that both have, and becoming a writer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dragoman.engine.faults import StoreFailed
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow

from .rows import ask_of, info_of
from .rules import in_use

TRIES = 8  # times to ask for a session whose dead owner changes while we ask
ASKS = "SELECT ask, settled, settled_at FROM asks"


class SqlStore(ABC):
    """The part of the store port that needs no more than rows. Marks are $1, $2, in order."""

    durable = True
    PENDING: str  # the term by which an index of open questions is found

    @abstractmethod
    async def rows(self, sql: str, *values: str) -> Sequence[Sequence[Any]]:
        """Rows of committed state. Raises StoreFailed."""

    @abstractmethod
    async def try_take(
        self, session: str, owner: str, former: str | None
    ) -> tuple[int, str | None]:
        """Become the writer unless somebody other than `former` is: the epoch, or who is."""

    async def take(self, session: str, owner: str, is_alive: Callable[[str], bool]) -> int:
        former: str | None = None
        for _ in range(TRIES):
            epoch, former = await self.try_take(session, owner, former)
            if former is None:
                return epoch
            if is_alive(former):
                break
        assert former is not None
        raise in_use(session, former)

    async def info(self, session: str) -> SessionInfo | None:
        rows = await self.rows("SELECT info FROM sessions WHERE id = $1", session)
        return info_of(rows[0][0]) if rows else None

    async def owner(self, session: str) -> str | None:
        rows = await self.rows("SELECT owner FROM sessions WHERE id = $1", session)
        return rows[0][0] if rows else None

    async def ancestry(self, session: str) -> Sequence[SessionInfo]:
        chain: dict[str, SessionInfo] = {}
        at: str | None = session
        while at is not None and at not in chain:
            info = await self.info(at)
            if info is None:
                break
            chain[at] = info
            at = info.parent
        return [*reversed(chain.values())]

    async def asks(self, session: str | None = None, *, pending: bool = True) -> Sequence[AskRow]:
        terms = [self.PENDING] if pending else []
        if session is not None:
            terms.append("session = (SELECT num FROM sessions WHERE id = $1)")
        where = f"WHERE {' AND '.join(terms)}" if terms else ""
        values = () if session is None else (session,)
        rows = await self.rows(f"{ASKS} {where} ORDER BY at, num", *values)
        found = (ask_of(row) for row in rows)
        return [row for row in found if row is not None]

    async def ask(self, ask_id: str) -> AskRow | None:
        rows = await self.rows(f"{ASKS} WHERE id = $1", ask_id)
        found = ask_of(rows[0]) if rows else None
        if rows and found is None:
            raise StoreFailed(
                f"Question {ask_id} cannot be read: it is damaged, or a newer version wrote it.",
                "Stop its turn: dragoman sessions cancel ID",
            )
        return found

    async def get(self, space: str, key: str) -> bytes | None:
        rows = await self.rows("SELECT value FROM kv WHERE space = $1 AND key = $2", space, key)
        return rows[0][0] if rows else None

    async def pairs(self, space: str) -> Sequence[tuple[str, bytes]]:
        rows = await self.rows("SELECT key, value FROM kv WHERE space = $1 ORDER BY key", space)
        return [(row[0], row[1]) for row in rows]

    async def spaces(self) -> Sequence[str]:
        return [row[0] for row in await self.rows("SELECT DISTINCT space FROM kv ORDER BY space")]
