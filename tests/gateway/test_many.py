"""Two hundred clients watch one session over WebSockets."""

import asyncio
import json
import resource

import msgspec
import pytest
from tests.gateway.making import serving

from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import HOLD_BYTES
from dragoman.settings.host import Limits
from dragoman.testing.host import host_of
from dragoman.testing.script import say, turn
from dragoman.transports.websocket import accept_key
from dragoman.wire.frames import Frames, Op, client_frame

CLIENTS = 200
DELTAS = 2_000


class Watcher(asyncio.Protocol):
    """A small WebSocket client that gathers the text of one session."""

    def __init__(self, token: str, session: str) -> None:
        loop = asyncio.get_running_loop()
        self.token = token
        self.session = session
        self.ready = loop.create_future()
        self.over = loop.create_future()
        self.text: list[str] = []
        self.head = b""
        self.frames: Frames | None = None

    def connection_made(self, transport) -> None:
        self.transport = transport
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        transport.write(
            b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key.encode() + b"\r\n"
            b"Authorization: Bearer " + self.token.encode() + b"\r\n\r\n"
        )
        self.accepted = accept_key(key).encode()

    def data_received(self, data: bytes) -> None:
        if self.frames is None:
            self.head += data
            head, end, rest = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            assert self.accepted in head
            self.frames = Frames(1 << 26, from_client=False)
            self.ask(1, "initialize", {"protocolVersion": 1})
            join = {"dragoman": {"join": True}}  # nothing is stored here
            params = {"sessionId": self.session, "cwd": "/", "mcpServers": [], "_meta": join}
            self.ask(2, "session/resume", params)
            data = rest
        for op, payload in self.frames.feed(data):
            if op == Op.TEXT:
                self.take(msgspec.json.decode(payload))

    def take(self, message: dict) -> None:
        if message.get("id") == 2:
            assert "result" in message, message
            self.ready.set_result(None)
        update = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            self.text.append(update["content"]["text"])
            if update["content"]["text"].endswith("END") and not self.over.done():
                self.over.set_result(None)

    def ask(self, id: int, method: str, params: dict) -> None:
        row = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.transport.write(client_frame(Op.TEXT, json.dumps(row).encode()))


@pytest.mark.timeout(60)
async def test_none_loses_a_word_and_one_that_does_not_read_costs_little():
    words = "".join(f"w{n:05d} " for n in range(DELTAS)) + "END"
    script = [turn(say(words, DELTAS))]
    limits = Limits(max_clients=CLIENTS + 50, max_outbound_bytes=1_000_000)
    async with serving(script, limits=limits) as served:
        info = await served.door.open(OpenSpec())
        loop = asyncio.get_running_loop()
        watchers = []
        for _ in range(CLIENTS + 1):
            _, watcher = await loop.create_connection(
                lambda: Watcher(served.token, info.id), "127.0.0.1", served.port
            )
            watchers.append(watcher)
        await asyncio.wait_for(asyncio.gather(*(one.ready for one in watchers)), 60)
        deaf = watchers.pop()
        deaf.transport.pause_reading()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work = await served.door.prompt(info.id, (Text("go"),))
        await asyncio.wait_for(work.done, 60)
        await asyncio.wait_for(asyncio.gather(*(one.over for one in watchers)), 60)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        for one in watchers:
            assert "".join(one.text) == words
        assert grown < 100_000, f"{grown} kB"
        buffered = max(link.buffered for link in served.gate.links)
        assert buffered < 2_000_000
        # Reading again, it catches up: nothing that is kept was lost to it.
        deaf.transport.resume_reading()
        await asyncio.wait_for(asyncio.shield(deaf.over), 60)
        assert "".join(deaf.text).endswith("END")
        for one in (*watchers, deaf):
            one.transport.abort()


@pytest.mark.timeout(60)
async def test_readers_that_stop_reading_hold_a_bounded_amount():
    size = 12_000_000
    words = "".join(f"{n:07d} " for n in range(size // 8)) + "END"
    script = [turn(say(words, DELTAS))]
    async with serving(script, limits=Limits(max_outbound_bytes=1_000_000)) as served:
        info = await served.door.open(OpenSpec())
        loop = asyncio.get_running_loop()
        watchers = []
        for _ in range(2):
            _, watcher = await loop.create_connection(
                lambda: Watcher(served.token, info.id), "127.0.0.1", served.port
            )
            watchers.append(watcher)
        await asyncio.wait_for(asyncio.gather(*(one.ready for one in watchers)), 60)
        reading, deaf = watchers
        deaf.transport.pause_reading()
        _, stream = await asyncio.open_connection("127.0.0.1", served.port, limit=1)
        stream.transport.pause_reading()  # type: ignore[attr-defined]
        stream.write(
            f"GET /api/sessions/{info.id}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {served.token}\r\n\r\n".encode()
        )
        session = host_of(served.door).live[info.id]
        there = asyncio.Event()
        tell = session.ledger.hub._changed
        session.ledger.hub._changed = lambda: (tell(), there.set())  # type: ignore[assignment]
        if len(session.ledger.hub.watches) < 3:
            await asyncio.wait_for(there.wait(), 60)
        work = await served.door.prompt(info.id, (Text("go"),))
        await asyncio.wait_for(work.done, 60)
        await asyncio.wait_for(asyncio.shield(reading.over), 60)
        assert "".join(reading.text) == words
        for watch in session.ledger.hub.watches:
            assert watch.weight <= HOLD_BYTES
        assert max(link.buffered for link in served.gate.links) < 3_000_000
        streams = [one for one in served.gate.connections if one.streams]
        assert [one.transport.get_write_buffer_size() < 3_000_000 for one in streams] == [True]
        deaf.transport.resume_reading()
        await asyncio.wait_for(asyncio.shield(deaf.over), 60)
        assert "".join(deaf.text) == words  # what it missed came from the store
        stream.transport.abort()
        for one in watchers:
            one.transport.abort()
