"""A fast stream is read in beats, a slow one at once, and nothing is lost or late by more."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from tests.http.servers import Line, Server, chunked, closing, head

from dragoman.http import gathering
from dragoman.http.client import Client
from dragoman.http.gathering import BEAT_SECONDS, CAN_BE_QUIET, Gathering
from dragoman.http.port import HungUp, TimedOut, Timeouts

pytestmark = pytest.mark.skipif(not CAN_BE_QUIET, reason="only Linux lets a socket be quiet")


class Handle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None], Handle]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Handle:
        handle = Handle()
        self.timers.append((self.now + seconds, call, handle))
        return handle

    def go(self, seconds: float) -> None:
        self.now += seconds
        due = [one for one in self.timers if one[0] <= self.now]
        self.timers = [one for one in self.timers if one[0] > self.now]
        for _, call, handle in due:
            if not handle.cancelled:
                call()


class Transport:
    def __init__(self, inner: socket.socket) -> None:
        self.inner = inner
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> Any:
        return self.inner


class Rig:
    def __init__(self, inner: socket.socket) -> None:
        self.loop = Loop()
        self.transport = Transport(inner)
        self.gathering = Gathering(self.loop, self.transport)  # type: ignore[arg-type]

    @property
    def least(self) -> int:
        return self.transport.inner.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    def read(self, *pauses: float) -> None:
        for pause in pauses:
            self.loop.go(pause)
            self.gathering.read(self.loop.now)


@pytest.fixture
def rig() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as inner:
            yield Rig(inner)


def test_a_slow_stream_is_read_at_once(rig: Rig) -> None:
    rig.read(*[0.002] * 100)
    assert rig.least == 1 and not rig.loop.timers


def test_the_first_reads_of_an_answer_are_made_at_once(rig: Rig) -> None:
    rig.read(*[0.0] * 7)
    assert rig.least == 1 and not rig.loop.timers


def test_a_fast_stream_is_quiet_until_the_beat_and_again_after_what_waited(rig: Rig) -> None:
    rig.read(*[0.001] * 8)
    assert rig.least > 1
    rig.read(0.001)  # there was enough for a read before the beat
    assert rig.least > 1 and len(rig.loop.timers) == 1
    rig.loop.go(BEAT_SECONDS)
    assert rig.least == 1
    rig.read(0.0)
    assert rig.least > 1


def test_one_that_becomes_slow_is_read_at_once_again(rig: Rig) -> None:
    rig.read(*[0.001] * 8)
    rig.loop.go(BEAT_SECONDS)
    rig.read(0.02)
    assert rig.least == 1
    rig.read(*[0.02] * 30)
    assert rig.least == 1 and not rig.loop.timers
    rig.read(*[0.001] * 16)
    assert rig.least > 1


def test_the_end_of_an_answer_is_the_end_of_quiet(rig: Rig) -> None:
    rig.read(*[0.001] * 8)
    rig.gathering.stop()
    assert rig.least == 1
    rig.loop.go(1.0)
    assert rig.least == 1
    rig.gathering.stop()  # twice is once


def test_a_socket_that_is_closing_is_left_alone(rig: Rig) -> None:
    rig.read(*[0.001] * 8)
    quiet = rig.least
    rig.transport.closing = True
    rig.loop.go(1.0)
    rig.gathering.stop()
    assert rig.least == quiet  # its number may be another's by now


# --- the whole client, with a stream that counts as fast whatever the machine does ---

HEAD = head("transfer-encoding: chunked")
WORDS = [f"word {number} ".encode() for number in range(60)]
PIECES = [chunked(word, end=False) for word in WORDS]
END = b"0\r\n\r\n"


@pytest_asyncio.fixture
async def fast(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Every stream counts as fast; what the sockets were told."""
    told: list[int] = []
    real = Gathering._set

    def told_too(self: Gathering, least: int) -> bool:
        told.append(least)
        return real(self, least)

    monkeypatch.setattr(gathering, "_FAST", 10.0)
    monkeypatch.setattr(gathering, "_AT_ONCE", 10.0)
    monkeypatch.setattr(Gathering, "_set", told_too)
    yield told


async def drip(line: Line, pieces: list[bytes]) -> None:
    for piece in pieces:
        await line.say(piece)
        await asyncio.sleep(0.0005)  # so that reads are made one by one


async def whole(client: Client, url: str) -> bytes:
    found: list[bytes] = []
    async with client.open("POST", url, body=b"{}") as answer:
        answer.into(found.append)
        while await answer.more():
            continue
    return b"".join(found)


async def test_nothing_is_lost_and_the_connection_is_used_again(fast: list[int]) -> None:
    async def play(line: Line) -> None:
        for _ in range(3):
            await line.asked()
            await line.say(HEAD)
            await drip(line, [*PIECES, END])

    async with Server(play) as server, closing(Client(env={})) as client:
        for _ in range(3):
            assert await whole(client, server.url) == b"".join(WORDS)
            assert fast and fast[-1] == 1  # the next answer's first byte is told at once
            fast.clear()
        assert server.connections == 1


@pytest.mark.parametrize("reset", [False, True])
async def test_an_end_in_the_middle_is_told_while_it_is_quiet(
    fast: list[int], monkeypatch: pytest.MonkeyPatch, reset: bool
) -> None:
    monkeypatch.setattr(gathering, "BEAT_SECONDS", 60.0)  # the beat does not help

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(HEAD)
        await drip(line, PIECES)
        if reset:
            line.reset()

    async with Server(play) as server, closing(Client(env={})) as client:
        with pytest.raises(HungUp):
            await asyncio.wait_for(whole(client, server.url), 60)
    assert max(fast) > 1


async def test_a_stall_is_told_while_it_is_quiet(fast: list[int]) -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(HEAD)
        await drip(line, PIECES)
        await line.left()

    limits = Timeouts(connect=5, first=5, between=0.3)
    async with Server(play) as server, closing(Client(env={}, timeouts=limits)) as client:
        with pytest.raises(TimedOut):
            await whole(client, server.url)
    assert max(fast) > 1


async def test_more_than_waits_for_a_beat_is_read_before_it(
    fast: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "BEAT_SECONDS", 60.0)

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(HEAD)
        await drip(line, PIECES)
        await line.say(chunked(b"x" * 4_000_000))

    async with Server(play) as server, closing(Client(env={})) as client:
        body = await asyncio.wait_for(whole(client, server.url), 60)
    assert body == b"".join(WORDS) + b"x" * 4_000_000
