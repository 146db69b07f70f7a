"""What waits for an answer, in every session."""

from collections.abc import Callable

from dragoman.engine import events as ev
from dragoman.engine.events import Ask, Event
from dragoman.engine.faults import Fault

from .link import Link


class Inbox:
    """All open questions, kept up to date by the kept events of all sessions."""

    def __init__(self, link: Link, changed: Callable[[], None]) -> None:
        self.asks: dict[str, Ask] = {}
        self.folders: dict[str, str] = {}  # of sessions that ask
        self.names: dict[str, str] = {}
        self.listeners: list[Callable[[Event], None]] = []
        self._link = link
        self._changed = changed

    def count(self, besides: str = "") -> int:
        return sum(ask.session != besides for ask in self.asks.values())

    def others(self, besides: str) -> list[Ask]:
        """The questions of other sessions, oldest first."""
        found = [ask for ask in self.asks.values() if ask.session != besides]
        return sorted(found, key=lambda ask: ask.at)

    async def keep(self) -> None:
        await self._link.follow_all(self._take, self._read)

    async def _read(self) -> None:
        host = await self._link.ready()
        rows = await host.approvals()
        self.asks = {row.ask.id: row.ask for row in rows}
        for session in {ask.session for ask in self.asks.values()}:
            await self.know(session)
        self._changed()

    async def know(self, session: str) -> None:
        """Learn a session's folder and name."""
        if session in self.folders:
            return
        try:
            info = (await (await self._link.ready()).session(session)).session
        except Fault:
            return  # it is gone; its question is too
        self.folders[session] = info.cwd
        self.names[session] = info.title or info.query or session[:8]

    def _take(self, event: Event) -> None:
        body = event.body
        if type(body) is ev.Asked:
            self.asks[body.ask.id] = body.ask
            self._changed()
        elif type(body) is ev.Settled:
            if self.asks.pop(body.ask_id, None) is not None:
                self._changed()
        for listener in self.listeners:
            listener(event)
