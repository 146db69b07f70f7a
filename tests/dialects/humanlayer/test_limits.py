"""Lines at the limit, and lines that are nothing at all."""

import asyncio
import json
import random

import pytest
from tests.dialects.humanlayer.desk import HEALTH, HEALTHY, Client, make
from tests.lane import share

from dragoman.dialects.humanlayer import Settings
from dragoman.dialects.humanlayer.verbs import VERBS
from dragoman.testing.host import host_of
from dragoman.transports import memory, unix

MIB = 1_048_576
HEAD, TAIL = b'{"jsonrpc":"2.0","method":"health","id":1,"params":{"pad":"', b'"}}\n'


def padded(size):
    """A health request of exactly this many bytes, newline included."""
    return HEAD + b"x" * (size - len(HEAD) - len(TAIL)) + TAIL


@pytest.mark.parametrize("limit", [MIB, 10 * MIB])
async def test_the_limit_holds_to_the_byte(limit, tmp_path):
    door, desk = make(settings=Settings(max_message_bytes=limit))
    listener = await unix.listen(str(tmp_path / "h.sock"), desk.hearer)
    reader, writer = await asyncio.open_unix_connection(listener.path)
    writer.write(padded(limit))
    assert await asyncio.wait_for(reader.readline(), 60) == HEALTHY + b"\n"
    writer.write(padded(limit + 1) + HEALTH + b"\n")
    refused = json.loads(await asyncio.wait_for(reader.readline(), 60))
    assert (refused["id"], refused["error"]["code"]) == (1, -32600)
    assert str(limit) in refused["error"]["message"]
    assert await asyncio.wait_for(reader.readline(), 60) == HEALTHY + b"\n"
    writer.close()
    await writer.wait_closed()
    await listener.close()


def test_no_configuration_lifts_the_limit_over_ten_mebibytes():
    _, desk = make(settings=Settings(max_message_bytes=10**9))
    assert desk.max_line == 10 * MIB


async def test_too_many_waiting_requests_end_the_connection_with_an_error(monkeypatch):
    monkeypatch.setattr("dragoman.dialects.humanlayer.hear.TABLE.waiting", 3)
    _, desk = make()
    client = memory.Client(desk.hearer)
    listing = b'{"jsonrpc":"2.0","method":"listSessions","id":1}'
    client.send(*[listing] * 9)
    refused = json.loads(await client.receive())
    assert refused["error"]["code"] == -32603 and refused["id"] is None
    with pytest.raises(EOFError):
        while True:
            await client.receive()


async def test_health_costs_no_task_and_one_write_per_read(monkeypatch):
    door, desk = make()
    client = memory.Client(desk.hearer)
    monkeypatch.setattr(host_of(door), "spawn", lambda work: pytest.fail("a task was made"))
    client.send(*[HEALTH] * 50)
    assert client.received() == [HEALTHY] * 50
    assert len(client.wire.writes) == 1


WORDS = [
    b"null", b"true", b"[]", b"{}", b"1e999", b'"\\ud800"', b"\xff", b"\x00", b'"id"', b'"params"',
    b'"jsonrpc":"2.0"', b'"method":"health"', b"-0", b"9" * 40, b'""', b"[[[[", b"}}}}", b",", b":",
]  # fmt: skip


def seeds():
    yield HEALTH
    yield b'{"JSONRPC":"2.0","Method":"health","ID":7}'
    yield b'[{"jsonrpc":"2.0","method":"health","id":1},{"jsonrpc":"2.0","method":"nope"}]'
    for method in sorted(VERBS.keys() - {"Subscribe"}):
        for params in (
            {"session_id": "x", "query": "q", "limit": 3},
            {"call_id": "c", "type": "function_call", "decision": "approve", "comment": "x"},
            {"run_id": "r", "tool_name": "Bash", "tool_input": {"a": [1, {"b": None}]}},
            {"session_ids": ["a", "b"], "archived": True, "filter": "normal"},
        ):
            request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
            yield json.dumps(request).encode()


def mutated(dice, line):
    data = bytearray(line)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data[at : at + dice.randint(1, 8)] = b""
            case 1:
                data[at:at] = dice.choice(WORDS)
            case 2:
                data[at:at] = bytes(dice.randrange(256) for _ in range(dice.randint(1, 3)))
            case 3:
                data[at : at + 1] = bytes([dice.randrange(256)])
            case 4:
                data[at:at] = data[: dice.randint(1, 30)]
    return bytes(data).replace(b"\n", b" ")


@pytest.mark.slow
async def test_mutated_lines_are_each_answered_and_nothing_breaks():
    troubles = []
    door, desk = make(["done"] * 3)
    host_of(door).trouble = lambda what, error, **data: troubles.append((what, error))
    dice = random.Random(4711)
    pool = [line for line in seeds() if b'"launchSession"' not in line]
    sent = share(200_000, 30_000)
    client = memory.Client(desk.hearer)
    for _ in range(sent // 500):
        client.send(*[mutated(dice, dice.choice(pool)) for _ in range(500)])
        while client.pump.hearer.shell.working:
            await asyncio.wait(set(client.pump.hearer.shell.tasks))
        answers = client.received()
        assert len(answers) == 500
        for line in answers:
            answer = json.loads(line)
            for one in answer if isinstance(answer, list) else [answer]:
                assert one["jsonrpc"] == "2.0" and ("result" in one) != ("error" in one)
                if "error" in one:
                    assert one["error"]["code"] in (-32700, -32600, -32601, -32602, -32603)
        client.wire.out.clear()
        client.wire.writes.clear()
        client._read = 0
    assert not troubles, troubles[:3]
    assert not host_of(door).live
    after = Client(desk)
    assert (await after.call("health"))["status"] == "ok"


async def test_every_odd_line_gets_exactly_one_answer():
    _, desk = make()
    client = memory.Client(desk.hearer)
    odd = [b"x", b"5", b"[]", b'"x"', b"null", b"{}", b"\xff\xfe", b"[" * 500, b'{"a":1}', b" "]
    for line in odd:
        client.send(line)
        answer = json.loads(await client.receive())
        assert answer["id"] is None and answer["error"]["code"] in (-32700, -32600)
    client.send(HEALTH)
    assert client.received() == [HEALTHY]
