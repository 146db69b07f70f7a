"""WebSocket links over real TCP, against the `websockets` package's client and by hand."""

import asyncio
import contextlib

import pytest
import websockets
from tests.transports.parrot import Cage
from websockets.asyncio.client import connect

from dragoman.transports.memory import Client
from dragoman.transports.websocket import WebSocketLink, accept_key, attach
from dragoman.wire.frames import Frames, Op, close_payload, frame
from dragoman.wire.link import Blob, Peer

PEER = Peer("ws:test", "ws")
MASK = b"abcd"


class Upgrade(asyncio.Protocol):
    """The least HTTP that lets a WebSocket client in."""

    def __init__(self, cage: Cage, **options: object) -> None:
        self.cage = cage
        self.options = options
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.head += data
        head, end, rest = self.head.partition(b"\r\n\r\n")
        if not end:
            return
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        accepted = accept_key(fields["Sec-WebSocket-Key"]).encode()
        self.transport.write(  # type: ignore[attr-defined]
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
        )
        attach(self.transport, WebSocketLink(self.cage, PEER, **self.options), rest)


@contextlib.asynccontextmanager
async def serving(cage: Cage, **options: object):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upgrade(cage, **options), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"ws://127.0.0.1:{port}/acp", port
    finally:
        server.close()
        for parrot in cage.parrots:
            parrot.link.abort()


def test_accept_key_of_section_1_3():
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_the_websockets_client_talks():
    cage = Cage()
    async with serving(cage) as (url, _), connect(url, compression=None) as client:
        await client.send("hällo 😀")
        assert await client.recv() == ">hällo 😀"
        await client.send(b"binary counts too")
        assert await client.recv() == ">binary counts too"
        await client.send(["in ", "three ", "fragments"])
        assert await client.recv() == ">in three fragments"
        long = "x" * 300_000
        await client.send(long)
        assert await client.recv() == ">" + long
        await asyncio.wait_for(await client.ping(), 60)
        cage.parrots[0].link.send_blob(Blob([b"one", b"two"]))
        assert [await client.recv(), await client.recv()] == ["one", "two"]
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)
    assert client.close_code == 1000 and cage.parrots[0].losses == 1


async def test_we_close_with_a_handshake():
    cage = Cage()
    async with serving(cage) as (url, _), connect(url) as client:
        await client.send("close")
        assert await client.recv() == "bye"
        with pytest.raises(websockets.ConnectionClosedOK):
            await client.recv()
        assert client.close_code == 1000
    await asyncio.wait_for(cage.parrots[0].over.wait(), 60)


async def test_too_big_is_1009_and_the_client_learns_it():
    cage = Cage(max_line=1000)
    async with serving(cage) as (url, _), connect(url) as client:
        await client.send("x" * 1001)
        assert await client.recv() == "too long"  # the dialect answers first
        with pytest.raises(websockets.ConnectionClosedError):
            await client.recv()
        assert client.close_code == 1009


async def test_many_messages_in_flight():
    cage = Cage()
    async with serving(cage) as (url, _), connect(url, compression=None) as client:
        for n in range(500):
            await client.send(str(n))
        assert [await client.recv() for _ in range(500)] == [f">{n}" for n in range(500)]


async def test_our_client_side_against_the_websockets_server():
    from websockets.asyncio.server import serve

    async def echo(connection):
        async for message in connection:
            await connection.send("<" + message)

    got: asyncio.Queue[bytes] = asyncio.Queue()

    class Ear:
        max_line = 1 << 20

        def hear(self, lines):
            for line in lines:
                got.put_nowait(line)

        def overlong(self, size): ...
        def ended(self): ...
        def lost(self):
            got.put_nowait(b"lost")

    async with serve(echo, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        writer.write(
            f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert accept_key(key).encode() in head
        link = attach(writer.transport, WebSocketLink(lambda _: Ear(), PEER, client=True))  # type: ignore[return-value]
        link.send("über".encode())
        link.send_blob(Blob([b"a", b"b"]))
        async with asyncio.timeout(60):
            assert [await got.get() for _ in range(3)] == ["<über".encode(), b"<a", b"<b"]
            link.close()
            assert await got.get() == b"lost"


# --- by hand, on the in-process wire ----------------------------------------------------------


class Hand(Client):
    """A memory client whose server side is a WebSocket link."""

    def __init__(self, cage: Cage, **options: object) -> None:
        super().__init__(cage, **options)
        self.pump.abort()
        self.cage = cage
        cage.parrots.clear()
        self.wire = type(self.wire)(self._news.set)
        self.pump = self.wire.pump = WebSocketLink(cage, PEER, **options)
        self.pump.connection_made(self.wire)
        self.reader = Frames(1 << 24, from_client=False)

    def put(self, op: int, payload: bytes = b"", *, fin: bool = True) -> None:
        self.feed(frame(op, payload, fin=fin, mask=MASK))

    def events(self) -> list[tuple[int, bytes]]:
        out, self.wire.out = bytes(self.wire.out), bytearray()
        return self.reader.feed(out)


async def test_one_write_for_a_batch_of_frames():
    hand = Hand(Cage())
    hand.feed(b"".join(frame(Op.TEXT, b"%d" % n, mask=MASK) for n in range(50)))
    assert len(hand.wire.writes) == 1
    assert hand.events() == [(Op.TEXT, b">%d" % n) for n in range(50)]
    assert len(hand.cage.parrots[0].heard) == 1


async def test_pings_are_answered_between_fragments():
    hand = Hand(Cage())
    hand.put(Op.TEXT, b"a", fin=False)
    hand.put(Op.PING, b"p")
    hand.put(Op.PONG, b"unasked")
    hand.put(0, b"b")
    assert hand.events() == [(Op.PONG, b"p"), (Op.TEXT, b">ab")]


async def test_a_close_is_echoed_after_what_came_before_it():
    hand = Hand(Cage())
    hand.feed(
        frame(Op.TEXT, b"last", mask=MASK)
        + frame(Op.CLOSE, close_payload(4001, "bye"), mask=MASK)
        + frame(Op.TEXT, b"too late", mask=MASK)
    )
    assert hand.events() == [(Op.TEXT, b">last"), (Op.CLOSE, (4001).to_bytes(2, "big"))]
    await asyncio.wait_for(hand.cage.parrots[0].over.wait(), 60)
    assert hand.wire.is_closing()


async def test_an_unmasked_frame_is_1002():
    hand = Hand(Cage())
    hand.feed(frame(Op.TEXT, b"x"))
    ((op, body),) = hand.events()
    assert op == Op.CLOSE and body[:2] == (1002).to_bytes(2, "big")
    await asyncio.wait_for(hand.cage.parrots[0].over.wait(), 60)


async def test_after_our_close_nothing_is_heard_and_the_answer_ends_it():
    hand = Hand(Cage())
    hand.pump.close(1001, "restart")  # type: ignore[call-arg]
    assert hand.events() == [(Op.CLOSE, (1001).to_bytes(2, "big") + b"restart")]
    hand.put(Op.TEXT, b"ignored")
    assert hand.cage.parrots[0].heard == [] and not hand.wire.is_closing()
    hand.put(Op.CLOSE, close_payload(1001))
    await asyncio.wait_for(hand.cage.parrots[0].over.wait(), 60)
    assert hand.events() == []


async def test_a_connection_that_breaks_off():
    hand = Hand(Cage())
    hand.put(Op.TEXT, b"a", fin=False)
    hand.end()
    await asyncio.wait_for(hand.cage.parrots[0].over.wait(), 60)
    assert hand.events() == [] and hand.cage.parrots[0].heard == []


async def test_empty_messages_are_skipped():
    hand = Hand(Cage())
    hand.put(Op.TEXT)
    hand.put(Op.TEXT, b"x")
    assert hand.events() == [(Op.TEXT, b">x")]
