"""Lines that are no messages, limits, the end of input, and a great many broken lines."""

import asyncio
import json
import random
import time
from typing import Any

import pytest
from tests.lane import share

from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, hang, turn
from dragoman.wire.link import Blob, Peer

from .oracle import check
from .talking import Talker, desk_of, talker


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage{", -32700), (b"{", -32700), (b'"\xff"', -32700), (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600), (b"5", -32600),
        (b'"x"', -32600), (b"null", -32600), (b'{"foo":1}', -32600),
    ],
)  # fmt: skip
async def test_what_is_no_message(line: bytes, code: int) -> None:
    client = talker(memory_door(Scripted([])))
    client.end.send(line)
    answer = await client.next()
    assert answer["error"]["code"] == code and answer["id"] is None
    await client.call("initialize")


async def test_an_old_version_is_refused_with_its_id() -> None:
    client = talker(memory_door(Scripted([])))
    client.send({"jsonrpc": "1.0", "id": 7, "method": "initialize"})
    answer = await client.next()
    assert answer["id"] == 7 and answer["error"]["code"] == -32600


async def test_unknown_methods_and_notifications() -> None:
    client = talker(memory_door(Scripted([])))
    for method in ("_x/unknown", "foo/bar", "session/set_model", "fs/read_text_file"):
        assert (await client.refused(method))["code"] == -32601
    client.tell("_x/note")
    client.tell("foo/bar", {"a": 1})
    client.tell("session/prompt", {"sessionId": "ghost"})
    await client.silence()


async def test_answers_that_nobody_waits_for() -> None:
    client = talker(memory_door(Scripted([])))
    client.end.send(b'{"jsonrpc":"2.0","id":"zc-out-9","result":{}}')
    client.end.send(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}')
    client.end.send(b'{"jsonrpc":"2.0","id":{},"result":1}')
    await client.silence()


@pytest.mark.parametrize("params", [5, "x", [1, 2], [], True])
async def test_params_must_be_an_object(params: object) -> None:
    client = talker(memory_door(Scripted([])))
    for id, method in enumerate(("initialize", "session/new", "session/list", "session/prompt")):
        client.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        answer = await client.next()
        assert (answer["id"], answer["error"]["code"]) == (id, -32602)
    client.send({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
    client.send({"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": None})
    answer = await client.next()
    assert answer["id"] == 9 and "result" in answer


async def test_bytes_one_by_one_blank_lines_and_carriage_returns() -> None:
    client = talker(memory_door(Scripted([])))
    for byte in b'\n\r\n{"jsonrpc":"2.0","id":1,"method":"initialize"}\r\n':
        client.end.feed(bytes([byte]))
    assert (await client.next())["id"] == 1


async def test_a_prompt_of_eight_mebibytes() -> None:
    script = Scripted(["ok"])
    client = talker(memory_door(script))
    session = await client.new()
    await client.prompt(session, "x" * (8 << 20))
    assert len(script.requests[0].messages[-1].content[0].text) == 8 << 20


async def test_an_endless_line_is_refused_and_skipped() -> None:
    client = talker(memory_door(Scripted([])))
    client.end.pump.hearer.max_line = 100  # type: ignore[misc, union-attr]
    hearer = client.end.pump.hearer
    hearer.overlong(200)  # type: ignore[union-attr]
    answer = await client.next()
    assert answer["error"]["code"] == -32600 and answer["id"] is None


async def test_the_request_in_a_line_that_is_too_long_is_answered() -> None:
    client = talker(memory_door(Scripted([])))
    params = {"sessionId": "x", "prompt": "y" * (17 << 20)}
    message = await client.reply(client.ask("session/prompt", params, id="mine"))
    assert message["error"]["code"] == -32600
    assert "result" in await client.reply(client.ask("initialize"))


# --- the end of input ---


async def test_at_the_end_everything_open_is_answered_first() -> None:
    script = Scripted([turn("x", hang(), "y")])
    client = talker(memory_door(script))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    client.end.end()
    await script.hanging.wait()
    script.release()
    assert (await client.reply(waiting))["result"]["content"] == "xy"
    with pytest.raises(EOFError):
        await client.next()


async def test_a_process_whose_input_ends_cancels_what_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.dialects.acp.hear.GRACE_SECONDS", 0.05)
    desk = desk_of(memory_door(Scripted([turn("x", hang())])))
    client = Talker(desk, "stdio", "stdio")
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    client.end.end()
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    with pytest.raises(EOFError):
        await client.next()


async def test_a_process_whose_input_ends_does_not_wait_for_its_human(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.dialects.acp.hear.GRACE_SECONDS", 60)
    desk = desk_of(memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]))
    client = Talker(desk, "stdio", "stdio")
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.until("session/request_permission")
    began = time.monotonic()
    client.end.end()
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("script", "stop", "grace"),
    [
        ([turn("x", hang())], "cancelled", 1.0),
        (["done"], "end_turn", 60),
        ([call("echo")], "cancelled", 1.0),
    ],
)
async def test_a_turn_of_version_2_ends_before_its_process(
    monkeypatch: pytest.MonkeyPatch, script: Any, stop: str, grace: float
) -> None:
    monkeypatch.setattr("dragoman.dialects.acp.hear.GRACE_SECONDS", grace)
    desk = desk_of(memory_door(Scripted(script), [EchoTool()]))
    client = Talker(desk, "stdio", "stdio")
    await client.greet2()
    session = await client.new2()
    words = [{"type": "text", "text": "x"}]
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": words})
    client.end.end()
    assert "messageId" in (await client.reply(waiting))["result"]
    with pytest.raises(EOFError):
        while True:
            await client.next()
    assert client.updates()[-1]["state"] == "idle" and client.updates()[-1]["stopReason"] == stop


# --- many broken lines ---


class Sink:
    """A link that counts and checks what is said."""

    paused = closed = False
    buffered = 0

    def __init__(self) -> None:
        self.peer = Peer("fuzz", "memory")
        self.count = 0
        self.sample: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.count += 1
        if self.count % 97 == 0:
            self.sample.append(message)

    def send_blob(self, blob: Blob) -> None:
        for message in blob.messages:
            self.send(message)

    def on_resume(self, callback: object) -> None: ...

    def eof(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def seeds(session: str) -> list[bytes]:
    spoken = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": {}, "terminal": True}}),
        ("authenticate", {"methodId": "x"}),
        ("session/list", {"cwd": "/tmp", "cursor": "x"}),
        ("session/load", {"sessionId": "ghost", "cwd": "/", "mcpServers": []}),
        ("session/close", {"sessionId": "ghost"}),
        ("session/prompt", {"sessionId": session, "prompt": [{"type": "image", "data": 5}]}),
        ("session/cancel", {"sessionId": session}),
        ("session/set_mode", {"sessionId": session, "modeId": "x"}),
        ("session/set_config_option", {"sessionId": session, "configId": "model", "value": "x"}),
        ("$/cancel_request", {"requestId": 3}),
        ("session/new", {"cwd": "/does/not/exist", "mcpServers": [{"name": "x"}]}),
        ("session/update", {"sessionId": "ghost", "update": {"sessionUpdate": "x"}}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode()
        for n, (method, params) in enumerate(spoken)
    ]
    return [*lines, b'{"jsonrpc":"2.0","id":"zc-out-0","result":{"outcome":{"outcome":"x"}}}']


def mutated(line: bytes, chance: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data))
        match chance.randrange(6):
            case 0:
                data[place] = chance.randrange(256)
            case 1:
                del data[place : place + chance.randint(1, 20)]
            case 2:
                data[place:place] = chance.choice(
                    [
                        b'"',
                        b"{",
                        b"}",
                        b"[",
                        b"null",
                        b"1e999",
                        b"\\ud800",
                        b"\xff",
                        b"-",
                        b",",
                        b":",
                    ]
                )
            case 3:
                data[place:place] = data[place : place + 30]
            case 4:
                data = data[:place]
            case _:
                data = data.replace(b"ghost", b"\xf0\x9f\x98\x80").replace(b'"x"', b"[[[]]]", 1)
        if not data:
            return b"{}"
    return bytes(data).replace(b"\n", b" ") or b"{}"


@pytest.mark.slow
async def test_broken_lines_break_nothing() -> None:
    chance = random.Random(20261115)
    door = memory_door(Scripted(["x"], loop=True))
    troubles: list[object] = []
    host_of(door).trouble = lambda what, error, **data: troubles.append((what, error))
    desk = desk_of(door)
    sink = Sink()
    hearer = desk.hearer(sink)  # type: ignore[arg-type]
    client = Talker(desk)
    session = await client.new()
    await client.call("session/stop", {"sessionId": session})
    lines = seeds(session)
    rounds = share(2_000, 300)
    for _ in range(rounds):
        hearer.hear([mutated(chance.choice(lines), chance) for _ in range(100)])
        while hearer.shell.tasks:
            await asyncio.wait(set(hearer.shell.tasks))
    assert troubles == []
    assert sink.count > 50 * rounds
    for line in sink.sample:
        check(json.loads(line), {})
    assert (await client.call("initialize"))["protocolVersion"] == 1
    assert len(desk.active) <= desk.settings.max_sessions
    await desk.close()
