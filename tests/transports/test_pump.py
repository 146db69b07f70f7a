"""The pump: one hearing and one write per read, one write per turn, bounded when nobody reads."""

import asyncio
import random

import pytest
from tests.transports.parrot import Cage

from dragoman.transports.memory import Client
from dragoman.wire.link import Blob


async def turn() -> None:
    """Let the loop go round often enough for everything that is due."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_one_read_is_one_hearing_and_one_write():
    cage = Cage()
    client = Client(cage)
    client.send(*[b"%d" % n for n in range(100)])
    assert len(cage.parrots[0].heard) == 1
    assert len(client.wire.writes) == 1
    assert client.received() == [b">%d" % n for n in range(100)]


async def test_no_task_is_made_for_messages():
    made: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coro, **rest: made.append(coro))
    try:
        client = Client(Cage())
        client.send(b"a", b"b")
    finally:
        loop.set_task_factory(None)
    assert made == [] and client.received() == [b">a", b">b"]


async def test_what_is_sent_in_one_turn_is_one_write_per_connection():
    cage = Cage()
    clients = [Client(cage) for _ in range(5)]
    shared = Blob([b"1", b"2"])
    for parrot in cage.parrots:
        parrot.link.send(b"hello")
        parrot.link.send_blob(shared)
        parrot.link.send(b"end")
    assert [client.wire.writes for client in clients] == [[]] * 5
    await turn()
    assert [client.wire.writes for client in clients] == [[b"hello\n1\n2\nend\n"]] * 5


async def test_a_blob_alone_is_written_without_a_copy():
    cage = Cage()
    clients = [Client(cage) for _ in range(3)]
    shared = Blob([b"x", b"y"])
    for parrot in cage.parrots:
        parrot.link.send_blob(shared)
    await turn()
    assert all(client.wire.writes[0] is shared.lines for client in clients)
    assert shared.lines == b"x\ny\n" and shared.frames == b"\x81\x01x\x81\x01y"


async def test_a_long_message_is_written_without_a_copy():
    cage = Cage()
    client = Client(cage)
    long = b"x" * 2_000_000
    cage.parrots[0].link.send(long)
    await turn()
    assert client.wire.writes[0] is long and client.wire.writes[1:] == [b"\n"]
    cage.parrots[0].link.send(long)
    cage.parrots[0].link.send(b"end")
    await turn()
    assert client.received() == [long, long, b"end"]


async def test_split_lines_and_the_last_one_without_newline():
    cage = Cage()
    client = Client(cage)
    for byte in b"one\r\n\n\ntwo\nthr":
        client.feed(bytes((byte,)))
    assert client.received() == [b">one", b">two"]
    client.feed(b"ee")
    client.end()
    assert await client.receive() == b">three"
    with pytest.raises(EOFError):
        await client.receive()
    assert cage.parrots[0].losses == 1


async def test_overlong_lines_are_told_in_their_place():
    cage = Cage(max_line=5)
    client = Client(cage)
    client.feed(b"a\n1234567\nb\n12345\n1234567")
    assert client.received() == [b">a", b"too long", b">b", b">12345", b"too long"]
    assert cage.parrots[0].sizes == [7, 7]
    assert len(client.wire.writes) == 1
    client.feed(b"789\nc\n")
    assert client.received() == [b">c"]


async def test_close_sends_what_was_said_and_hears_no_more():
    cage = Cage()
    client = Client(cage)
    client.send(b"a", b"close", b"b")
    client.send(b"c")
    assert client.received() == [b">a", b"bye"]
    assert len(cage.parrots[0].heard) == 1
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)
    assert cage.parrots[0].link.closed
    cage.parrots[0].link.send(b"into the void")
    await turn()
    assert len(client.wire.writes) == 1


async def test_close_outside_of_hearing_flushes_first():
    cage = Cage()
    client = Client(cage)
    link = cage.parrots[0].link
    link.send(b"last")
    link.close()
    assert client.received() == [b"last"]


async def test_abort_loses_what_is_queued():
    cage = Cage()
    client = Client(cage)
    client.send(b"a", b"abort")
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)
    assert client.wire.writes == [] and cage.parrots[0].losses == 1


async def test_half_close_keeps_the_way_back():
    cage = Cage(close_at_end=False)
    client = Client(cage)
    client.end()
    parrot = cage.parrots[0]
    assert parrot.end.is_set()
    parrot.link.send(b"later")
    assert await client.receive() == b"later"
    parrot.link.eof()
    assert client.wire.eof


async def test_paused_and_resumed():
    cage = Cage()
    client = Client(cage)
    link = cage.parrots[0].link
    calls: list[str] = []
    link.on_resume(lambda: calls.append("at once"))
    assert calls == ["at once"]
    client.wire.stuck = True
    link.send(b"x" * 100_000)
    assert link.buffered == 100_001
    await turn()
    assert link.paused and link.buffered == 100_001
    link.on_resume(lambda: calls.append("resumed"))
    assert calls == ["at once"]
    client.wire.take()
    assert not link.paused and calls == ["at once", "resumed"] and link.buffered == 0


async def test_over_the_bound_it_stops_reading_until_drained():
    cage = Cage()
    client = Client(cage, bound=200_000)
    client.wire.stuck = True
    client.send(b"big 150000")
    assert client.wire.reading
    client.send(b"big 150000")
    assert not client.wire.reading
    client.wire.take()
    assert client.wire.reading and not cage.parrots[0].link.closed


async def test_a_client_that_takes_nothing_is_cut_off():
    cage = Cage()
    client = Client(cage, bound=100_000, stall=0.02)
    client.wire.stuck = True
    client.send(b"big 150000")
    woken = asyncio.Event()
    cage.parrots[0].link.on_resume(woken.set)
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)
    assert woken.is_set() and cage.parrots[0].losses == 1


async def test_a_closing_client_that_takes_nothing_is_cut_off_too():
    cage = Cage()
    client = Client(cage, stall=0.02)
    client.wire.stuck = True
    client.send(b"a", b"close")
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)


async def test_a_slow_but_living_client_is_not_cut_off():
    cage = Cage()
    client = Client(cage, bound=100_000, stall=60)
    client.wire.stuck = True
    client.send(b"big 150000")
    for _ in range(3):
        client.wire.sip(10)
        client.pump._check_stall()  # as the timer would
        assert not cage.parrots[0].link.closed
    client.pump._check_stall()
    assert cage.parrots[0].link.closed
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)


@pytest.mark.parametrize("seed", range(8))
async def test_connections_that_share_framers_hear_each_their_own_lines(seed: int) -> None:
    """Random lines in random chunks on several connections: as if each were alone."""
    chance = random.Random(seed)
    limits = [12, 12, 12, 40, 40]
    cages = [Cage(max_line=limit) for limit in limits]
    clients = [Client(cage) for cage in cages]
    left: list[bytes] = []
    expected: list[list[bytes]] = []
    for limit in limits:
        lines = [b"abcdefgh" * chance.randrange(7) for _ in range(60)]
        ends = [chance.choice([b"\n", b"\r\n"]) for _ in lines]
        left.append(b"".join(line + end for line, end in zip(lines, ends, strict=True)))
        expected.append([b">" + b if len(b) <= limit else b"too long" for b in lines if b])
    while any(left):
        at = chance.choice([number for number, data in enumerate(left) if data])
        size = chance.choice([1, 3, 20, 200])
        # Now and then up to the end of a line, as clients write.
        if chance.randrange(3) == 0:
            size = left[at].find(b"\n", size) + 1 or size
        clients[at].feed(left[at][:size])
        left[at] = left[at][size:]
    assert [client.received() for client in clients] == expected
