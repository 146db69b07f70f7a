"""The sessions that one connection watches, and what it is told when it joins one."""

from typing import TYPE_CHECKING

from dragoman.engine.seat import Seat
from dragoman.engine.view import SessionView

from .speak import Told, Updates

if TYPE_CHECKING:
    from dragoman.wire.link import Blob

    from .elicit import Questions
    from .hear import ZeroclawHearer


class Seats:
    """The seats of one connection, by session."""

    def __init__(self, conn: "ZeroclawHearer") -> None:
        self._conn = conn
        self._seats = conn.door.seats(conn.link)
        self._questions: Questions | None = None

    async def take(self, session_id: str, *, joins: bool = False) -> Seat[Updates]:
        """Watch a session; with `joins`, be told what is open in it. Raises UnknownSession."""
        seat: Seat[Updates] = self._seats.at(session_id)
        async with seat.in_order():
            if await seat.renew():
                return seat
            conn = self._conn
            asking = self._asking()
            updates = Updates(
                conn.door, session_id, conn.camel, asking, can_write=not conn.terminal
            )
            # One that is asked by requests of its own has a stream that is not shared.
            key = None if conn.form else ("zeroclaw", conn.camel, bool(conn.terminal))
            shape = await seat.follow(conn.who, updates, self._deliver, key=key)
            if joins and seat.watches:
                self._tell_open(seat.view, shape)
            return seat

    def _deliver(self, said: "Blob | Told") -> None:
        conn = self._conn
        blob = said.for_client(conn.who.id) if isinstance(said, Told) else said
        if blob is not None:
            conn.link.send_blob(blob)

    def _asking(self) -> "Questions | None":
        if self._conn.form and self._questions is None:
            from .elicit import Questions

            self._questions = Questions(self._conn)
        return self._questions

    def _tell_open(self, session: SessionView, updates: Updates) -> None:
        """Calls that run and questions that wait, for a client that comes in the middle."""
        send = self._conn.link.send
        for call in session.running():
            send(updates.called(call.id, call.name, call.args or {}))
        for ask in tuple(session.asks.values()):
            for message in updates.asked(ask):
                send(message)
        if session.plan and not self._conn.camel:
            send(updates.planned(session.plan))

    def leave(self, session_id: str) -> None:
        self._seats.forget(session_id)

    def resume(self) -> None:
        self._seats.resume()

    def close(self) -> tuple[str, ...]:
        """Leave all of them; returns which they were."""
        left = self._seats.ids()
        self._seats.close()
        return left
