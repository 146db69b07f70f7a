"""What a watch delivers waits for the stream, then flows, and stops while nobody reads."""

from collections.abc import Callable
from typing import Any

from dragoman.gateway.outlet import Feed, Outlet


class Connection:
    def __init__(self) -> None:
        self.paused = False
        self.written: list[bytes] = []
        self.ended: list[Outlet] = []

    def write_chunk(self, data: bytes) -> None:
        self.written.append(data)

    def end_stream(self, outlet: Outlet) -> None:
        self.ended.append(outlet)
        outlet.lost()


class Watch:
    def __init__(self) -> None:
        self.resumed = 0
        self.closed = 0

    def resume(self) -> None:
        self.resumed += 1

    def close(self) -> None:
        self.closed += 1


def make() -> tuple[Connection, Outlet]:
    connection: Any = Connection()
    return connection, Outlet(connection)


def test_what_came_before_the_stream_is_first() -> None:
    (connection, outlet), feed, watch = make(), Feed(), Watch()
    feed.deliver(b"1")
    feed.deliver(b"2")
    assert not feed.paused
    feed.join(outlet, watch)
    feed.deliver(b"3")
    assert connection.written == [b"1", b"2", b"3"] and watch.resumed == 1


def test_a_stream_that_does_not_begin_holds_a_bounded_number() -> None:
    feed = Feed()
    for _ in range(1_001):
        assert not feed.paused
        feed.deliver(b"x")
    assert feed.paused


def test_a_reader_that_stops_is_waited_for_once() -> None:
    (connection, outlet), feed, watch = make(), Feed(), Watch()
    feed.join(outlet, watch)
    connection.paused = True
    assert feed.paused and feed.paused
    connection.paused = False
    outlet.resumed()
    assert watch.resumed == 2 and not feed.paused


def test_the_end_of_the_stream_ends_the_watch_once_and_nothing_is_written_after() -> None:
    (connection, outlet), feed, watch = make(), Feed(), Watch()
    feed.join(outlet, watch)
    outlet.close()
    outlet.close()
    outlet.lost()
    feed.deliver(b"late")
    assert (watch.closed, connection.written, len(connection.ended)) == (1, [], 1)


def test_an_outlet_calls_back_at_once_unless_it_must_wait() -> None:
    connection, outlet = make()
    called: list[int] = []
    note: Callable[[int], Callable[[], None]] = lambda n: lambda: called.append(n)  # noqa: E731
    outlet.on_resume(note(1))
    connection.paused = True
    outlet.on_resume(note(2))
    assert called == [1]
    outlet.lost()
    outlet.resumed()
    outlet.on_resume(note(3))
    assert called == [1, 3]
    outlet.write(b"")
    assert connection.written == []
