"""The sessions that one connection watches, and what it is told when it joins one."""

from typing import TYPE_CHECKING

from dragoman.engine.content import ToolCall
from dragoman.engine.hub import Watch
from dragoman.engine.session import Session

from .speak import Updates

if TYPE_CHECKING:
    from .elicit import Questions
    from .hear import ZeroclawHearer


class Seat:
    """One watched session."""

    __slots__ = ("updates", "watch")

    def __init__(self, watch: Watch, updates: Updates) -> None:
        self.watch = watch
        self.updates = updates


class Seats:
    """The seats of one connection, by session."""

    def __init__(self, conn: "ZeroclawHearer") -> None:
        self._conn = conn
        self._seats: dict[str, Seat] = {}
        self._questions: Questions | None = None

    async def take(self, session_id: str, *, joins: bool = False) -> Seat:
        """Watch a session; with `joins`, be told what is open in it. Raises UnknownSession."""
        conn = self._conn
        session = await conn.door.host.get(session_id)
        seat = self._seats.get(session_id)
        if seat is not None and seat.watch.hub is session.ledger.hub:
            return seat
        if seat is not None:  # the session was closed and opened again since
            seat.watch.close()
        updates = self._updates(session)
        watch = session.ledger.hub.watch(
            conn.who, updates, conn.link.send_blob, conn.is_paused, draft=True
        )
        seat = self._seats[session_id] = Seat(watch, updates)
        if conn.gone:
            self.close()
        elif joins:
            self._tell_open(session, updates)
        return seat

    def _updates(self, session: Session) -> Updates:
        conn = self._conn
        if conn.form:  # it is asked by requests of its own, so its stream is not shared
            if self._questions is None:
                from .elicit import Questions

                self._questions = Questions(conn)
            return Updates(conn.door, session.id, conn.camel, self._questions)
        key = ("zeroclaw", conn.camel)
        made = session.ledger.hub.shape(key, lambda: Updates(conn.door, session.id, conn.camel))
        assert isinstance(made, Updates)
        return made

    def _tell_open(self, session: Session, updates: Updates) -> None:
        """Calls that run and questions that wait, for a client that comes in the middle."""
        state = session.state
        send = self._conn.link.send
        for call in state.unanswered():
            if state.journal[call.id][1]:
                send(updates.called(call.id, call.name, _args(call)))
        for ask in tuple(state.asks.values()):
            for message in updates.asked(ask):
                send(message)
        if state.plan and not self._conn.camel:
            send(updates.planned(state.plan))

    def leave(self, session_id: str) -> None:
        seat = self._seats.pop(session_id, None)
        if seat is not None:
            seat.watch.close()

    def resume(self) -> None:
        for seat in tuple(self._seats.values()):
            seat.watch.resume()

    def close(self) -> None:
        for seat in self._seats.values():
            seat.watch.close()
        self._seats.clear()


def _args(call: ToolCall) -> dict[str, object]:
    return call.args or {}
