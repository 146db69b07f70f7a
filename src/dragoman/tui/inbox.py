"""What waits for an answer, in every session."""

import asyncio
from collections.abc import Callable

from dragoman.engine import events as ev
from dragoman.engine.events import Ask, Event
from dragoman.engine.faults import Fault

from .link import ScreenLink


class Inbox:
    """All open questions, kept up to date by the kept events of all sessions."""

    def __init__(self, link: ScreenLink, changed: Callable[[], None]) -> None:
        self.asks: dict[str, Ask] = {}
        self.names: dict[str, str] = {}  # of sessions that ask
        self.listeners: list[Callable[[Event], None]] = []
        self._link = link
        self._changed = changed
        self._tasks: set[asyncio.Task[None]] = set()

    def count(self, besides: str = "") -> int:
        return sum(ask.session != besides for ask in self.asks.values())

    def others(self, besides: str) -> list[Ask]:
        """The questions of other sessions, oldest first."""
        found = [ask for ask in self.asks.values() if ask.session != besides]
        return sorted(found, key=lambda ask: ask.at)

    async def keep(self) -> None:
        await self._link.follow_all(self.take, self._read)

    async def _read(self) -> None:
        host = await self._link.ready()
        rows = await host.approvals()
        self.asks = {row.ask.id: row.ask for row in rows}
        for session in {ask.session for ask in self.asks.values()}:
            await self.know(session)
        self._changed()

    async def know(self, session: str) -> None:
        """Learn a session's name."""
        if session in self.names:
            return
        try:
            info = (await (await self._link.ready()).session(session)).session
        except Fault:
            return  # it is gone; its question is too
        self.names[session] = info.title or info.query or session[:8]

    def _learn(self, session: str) -> None:
        """Beside what is heard: the answer comes over another connection."""

        async def learn() -> None:
            await self.know(session)
            self._changed()

        task = asyncio.get_running_loop().create_task(learn())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take(self, event: Event) -> None:
        """Note a question that is open now, or is not any more."""
        body = event.body
        if type(body) is ev.Asked:
            self.asks[body.ask.id] = body.ask
            self._changed()
            if body.ask.session not in self.names:
                self._learn(body.ask.session)
        elif type(body) is ev.Settled:
            if self.asks.pop(body.ask_id, None) is not None:
                self._changed()
        for listener in self.listeners:
            listener(event)
