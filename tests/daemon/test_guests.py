"""Who comes beyond the limit is told so in his own protocol, on `any.sock` too."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.daemon import guests as module
from dragoman.daemon.guests import Guests
from dragoman.transports.memory import Client

FIRST: dict[str, tuple[bytes, str]] = {
    "zot": (b'{"type":"hello","token":"t"}', '"success":false'),
    "openclawos": (b'{"type":"request","id":"1","method":"app.register"}', "TOO_MANY_CLIENTS"),
    "humanlayer": (b'{"jsonrpc":"2.0","id":1,"method":"health"}', '"jsonrpc"'),
    "acp": (b'{"jsonrpc":"2.0","id":1,"method":"session/new"}', '"jsonrpc"'),
    "zeroclaw": (b"no message at all", '"jsonrpc"'),
}


def full() -> Any:
    return Guests(0, lambda link: None).counting(lambda link: pytest.fail("let in"), "any")


async def ended(client: Client) -> None:
    """Nothing more is said, and the connection ends."""
    with pytest.raises(EOFError):
        await client.receive()


@pytest.mark.parametrize("name", FIRST)
async def test_the_first_line_tells_in_which(name: str) -> None:
    line, part = FIRST[name]
    client = Client(full())
    assert not client.received(), "nothing is said before the protocol is known"
    client.send(line, line)
    said = (await client.receive()).decode()
    assert part in said and "limits.max_clients" in said
    await ended(client)  # it is told once


async def test_a_first_line_that_never_ends_tells_it_too() -> None:
    client = Client(full())
    client.feed(b'{"type":"prompt","message":"' + b"x" * 100_000)
    client.feed(b"x" * 1_000_000)
    client.feed(b"x" * 30_000_000 + b'"}\n')
    assert json.loads(await client.receive())["success"] is False
    await ended(client)


async def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    client = Client(full())
    assert b"-32001" in await client.receive()
    client.send(FIRST["zot"][0])
    await ended(client)


async def test_only_so_many_are_waited_for_and_whoever_leaves_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_UNHEARD", 2)
    monkeypatch.setattr(module, "_PATIENCE", 3600.0)
    opened = full()
    first, second, third = Client(opened), Client(opened), Client(opened)
    assert b'"jsonrpc"' in await third.receive()
    assert not first.received() and not second.received()
    first.drop()
    await ended(first)
    fourth = Client(opened)
    fourth.send(FIRST["zot"][0])
    assert b'"success":false' in await fourth.receive()
    second.drop()
    await ended(second)


async def test_who_comes_back_in_time_is_no_last_one() -> None:
    guests = Guests(2, lambda link: None)
    opened = guests.counting(lambda link: module.Deaf(), "any")
    gone = asyncio.ensure_future(guests.gone(1.0))
    first = Client(opened)
    await asyncio.sleep(0)
    first.drop()
    await asyncio.sleep(0)  # its patience begins
    second = Client(opened)
    await asyncio.wait({gone}, timeout=1.5)
    assert not gone.done() and guests.all
    second.drop()
    await asyncio.wait_for(gone, 60)
