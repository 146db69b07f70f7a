"""A connection that says nothing costs little, whatever it speaks: counted without a clock."""

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest

from dragoman.daemon.guests import Guests
from dragoman.dialects.descriptor import REGISTRY
from dragoman.engine.events import Who
from dragoman.host.desks import Desks
from dragoman.settings.model import Settings
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client
from dragoman.transports.pump import Pump, Terms
from dragoman.wire.link import Blob, Peer

MANY = 500
PEER = Peer("unix:pid=1,uid=0", "unix", 1, 0)
HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


class Silence(asyncio.Transport):
    """A transport that holds nothing."""

    def write(self, data: Any) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0


def desks() -> Desks:
    return Desks(memory_door(Scripted(["x"], loop=True)), Settings())


@pytest.mark.parametrize("dialect", [one.name for one in REGISTRY.all()])
async def test_a_silent_connection_holds_little(dialect: str) -> None:
    made = desks()
    guests = Guests(10 * MANY, lambda link: None)
    terms = Terms(guests.counting(made.opener(dialect), dialect), PEER)
    transport = Silence()

    def connect(count: int) -> list[Pump]:
        pumps = [Pump(terms) for _ in range(count)]
        for pump in pumps:
            pump.connection_made(transport)
        return pumps

    first = connect(10)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pumps = connect(MANY)
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / MANY
    finally:
        tracemalloc.stop()
    assert size < 500, f"{size:.0f} bytes"
    assert len(guests.all) == len(made._door.visitors.clients) == MANY + 10
    for pump in (*first, *pumps):
        pump.connection_lost(None)
    assert not guests.all and not made._door.visitors.clients


async def test_after_talk_nothing_is_kept() -> None:
    client = Client(desks().opener("zeroclaw"))
    pump = client.pump
    client.feed(HELLO[:20])
    assert pump._framer is not None  # an unfinished line
    client.feed(HELLO[20:] + b"\n")
    assert b"serverVersion" in await client.receive()
    pump.send(b"1")
    pump.send_blob(Blob([b"2"]))
    await asyncio.sleep(0)
    assert (pump._framer, pump._queue, pump._slow) == (None, None, None)


@pytest.mark.parametrize(
    ("dialect", "hello", "line"),
    [
        ("zeroclaw", HELLO, b'{"jsonrpc":"2.0","id":2,"method":"status","params":{}}'),
        ("humanlayer", b"", b'{"jsonrpc":"2.0","id":2,"method":"health"}'),
        ("acp", HELLO, b'{"jsonrpc":"2.0","id":2,"method":"session/stop","params":{}}'),
        ("zot", b"", b'{"id":"9","type":"ping"}'),
    ],
)  # fmt: skip
async def test_quick_requests_make_no_task_and_one_write(
    dialect: str, hello: bytes, line: bytes
) -> None:
    client = Client(desks().opener(dialect))
    if hello:
        client.send(hello)
    await asyncio.sleep(0)
    client.wire.writes.clear()
    made: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coro, **rest: made.append(coro))
    try:
        client.send(*[line] * 32)
    finally:
        loop.set_task_factory(None)
    assert made == [] and len(client.wire.writes) == 1
    assert client.wire.writes[0].count(b"\n") == 32


async def test_who_is_connected_is_known_when_it_is_asked() -> None:
    made = desks()
    door = made._door
    told: list[int] = []
    door.visitors.on_change.append(lambda: told.append(len(door.visitors.clients)))
    client = Client(made.opener("humanlayer"), PEER)
    (one,) = door.visitors.clients.values()
    assert one.who == Who("humanlayer", PEER.label, "", one.who.id) and one.since > 0
    assert list(door.visitors.clients) == [one.who.id]  # the same the next time
    client.drop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not door.visitors.clients and told == [1, 0]
