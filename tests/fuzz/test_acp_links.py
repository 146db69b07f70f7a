"""ACP with odd fields over every link, in both versions: each request gets exactly one answer."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.fuzz.test_fields import answered, fields, value
from tests.gateway.making import Served, serving
from tests.interop.acp_agent import AGENT, Scene
from websockets.asyncio.client import connect

from dragoman.dialects.acp import Desk
from dragoman.dialects.acp.verbs import VERBS
from dragoman.dialects.acp.verbs.second import VERBS2
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call
from dragoman.transports import unix

INFO = {"name": "fuzz", "version": "1"}
HELLO: dict[int, Any] = {
    1: {"protocolVersion": 1, "clientInfo": INFO, "clientCapabilities": {"subagents": {}}},
    2: {"protocolVersion": 2, "info": INFO, "capabilities": {"elicitation": {"form": {}}}},
}


class Talk(Protocol):
    """A way to the agent."""

    async def send(self, messages: list[dict[str, Any]]) -> Counter[Any]:
        """Send requests; those that were refused by the link itself are counted."""
        ...

    async def receive(self) -> dict[str, Any]: ...


class Lines:
    """One message per line, many lines at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, messages: list[dict[str, Any]]) -> Counter[Any]:
        self._writer.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        return Counter()

    async def receive(self) -> Any:
        line = await self._reader.readline()
        assert line, "the connection was ended"
        return json.loads(line)


@asynccontextmanager
async def over_stdio(tmp_path: Path) -> AsyncIterator[Talk]:
    scene = Scene(tmp_path)
    process = await asyncio.create_subprocess_exec(
        AGENT, "acp", "--alone", env=scene.env, cwd=scene.work, limit=1 << 26,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Lines(process.stdout, process.stdin)
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def odd_door() -> Any:
    return memory_door(Scripted([call("echo", text="x"), "hello"], loop=True), [EchoTool()])


@asynccontextmanager
async def over_socket(tmp_path: Path) -> AsyncIterator[Talk]:
    door = odd_door()
    listener = await unix.listen(str(tmp_path / "s"), Desk(door).hearer)
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"), limit=1 << 26)
    try:
        yield Lines(reader, writer)
    finally:
        writer.close()
        await listener.close()
        await host_of(door).stop(0)


class Frames:
    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def send(self, messages: list[dict[str, Any]]) -> Counter[Any]:
        for one in messages:
            await self._socket.send(json.dumps(one))
        return Counter()

    async def receive(self) -> Any:
        return json.loads(await self._socket.recv())


@asynccontextmanager
async def over_websocket(tmp_path: Path) -> AsyncIterator[Talk]:
    bearer = "additional_headers"
    async with serving(door=odd_door()) as served:
        options: dict[str, Any] = {bearer: {"Authorization": f"Bearer {served.token}"}}
        async with connect(served.ws + "/acp", max_size=None, **options) as socket:
            yield Frames(socket)


class Posts:
    """Streamable HTTP: a stream is opened for every session that is named."""

    def __init__(self, served: Served, client: Any, stack: AsyncExitStack) -> None:
        self._client, self._stack = client, stack
        self._head: dict[str, str] = {}
        self._streams: set[str] = set()
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def send(self, messages: list[dict[str, Any]]) -> Counter[Any]:
        refused: Counter[Any] = Counter()
        for one in messages:
            head = dict(self._head)
            session = one["params"].get("sessionId")
            if isinstance(session, str) and session.isascii() and session.isprintable():
                if session.strip() == session and 0 < len(session) < 1000:
                    head["Acp-Session-Id"] = session
                    await self._open(session)
            said = await self._client.post(
                "/acp", content=json.dumps(one),
                headers={**head, "content-type": "application/json"},
            )  # fmt: skip
            assert said.status_code in (200, 202, 400), (said.status_code, said.text, one)
            if said.status_code == 200:
                self._head = {"Acp-Connection-Id": said.headers["acp-connection-id"]}
                self._heard.put_nowait(said.json())
                await self._open("")
            elif said.status_code == 400:
                refused[one["id"]] += 1
        return refused

    async def _open(self, session: str) -> None:
        if session in self._streams or not self._head:
            return
        self._streams.add(session)
        head = {**self._head, "Accept": "text/event-stream"}
        if session:
            head["Acp-Session-Id"] = session
        stream = self._client.stream("GET", "/acp", headers=head)
        answer = await self._stack.enter_async_context(stream)
        assert answer.status_code == 200
        self._tasks.append(asyncio.ensure_future(self._read(answer)))

    async def _read(self, answer: Any) -> None:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                self._heard.put_nowait(json.loads(line[6:]))

    async def receive(self) -> Any:
        return await self._heard.get()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def over_http(tmp_path: Path) -> AsyncIterator[Talk]:
    import httpx

    limits = httpx.Limits(max_connections=None)
    async with serving(door=odd_door()) as served, served.client(limits=limits) as client:
        async with AsyncExitStack() as stack:
            talk = Posts(served, client, stack)
            yield talk
            await talk.stop()


def request(dice: random.Random, number: int, version: int, known: list[str], session: str) -> Any:
    verbs = sorted(set(VERBS if version == 1 else VERBS2) - {"_dragoman/connection"})
    params = {key: value(dice) for key in dice.sample(known, dice.randrange(7))}
    if dice.randrange(4):
        params["sessionId"] = session
    if not dice.randrange(3):
        params["prompt"] = [{"type": "text", "text": "hi"}]
    id: Any = number if dice.randrange(3) else f"r{number}"
    return {"jsonrpc": "2.0", "id": id, "method": dice.choice(verbs), "params": params}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("carry", [over_stdio, over_socket, over_websocket, over_http])
@pytest.mark.timeout(120)
async def test_every_request_gets_one_answer(carry: Any, version: int, tmp_path: Path) -> None:
    dice = random.Random(f"{carry.__name__} {version}")
    known = sorted(set(fields("acp")) - {"sessionId"})
    counts: Counter[Any] = Counter()
    async with carry(tmp_path) as talk, asyncio.timeout(110):

        async def ask(messages: list[dict[str, Any]]) -> dict[Any, Any]:
            """Send requests and wait for all their answers; counts what comes twice, too."""
            refused = await talk.send(messages)
            counts.update(refused)
            waiting = {one["id"] for one in messages} - set(refused)
            found = {}
            while waiting:
                message = await talk.receive()
                if "method" in message:
                    continue  # told, or asked of us: nobody answers
                id = answered(message)
                counts[id] += 1
                found[id] = message
                waiting.discard(id)
            return found

        hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize"}
        await ask([{**hello, "params": HELLO[version]}])
        new = {"jsonrpc": "2.0", "id": "new", "method": "session/new"}
        there = {"cwd": str(tmp_path), "mcpServers": []}
        session = (await ask([{**new, "params": there}]))["new"]["result"]["sessionId"]
        number = 0
        for _ in range(8):
            made = []
            for _ in range(25):
                number += 1
                made.append(request(dice, number, version, known, session))
            at = {"sessionId": session}
            stop = {"jsonrpc": "2.0", "id": f"stop{number}", "method": "session/cancel"}
            await ask([*made, {**stop, "params": at}])
        last = {"jsonrpc": "2.0", "id": "last", "method": "session/list", "params": {}}
        assert "result" in (await ask([last]))["last"]
    assert not {id: count for id, count in counts.items() if count != 1}
