"""The way from a first line to an engine, and the bounds of what may wait."""

import asyncio
import json
import subprocess
import sys

import pytest

from dragoman.dialects.zot import Desk, Settings
from dragoman.dialects.zot.frames import clock_time, money
from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, turn
from dragoman.transports.memory import Client


async def test_a_ping_needs_no_engine_and_the_rest_waits_for_it_in_order():
    gate = asyncio.Event()

    async def provide():
        await gate.wait()
        return memory_door(Scripted(["hello"]), mode="full")

    desk = Desk(None, Settings(cwd="/"), provide=provide)
    client = Client(desk.hearer)
    client.send(b'{"id":"0","type":"ping"}')
    assert [json.loads(line)["id"] for line in client.received()] == ["0"]
    client.send(
        b'{"id":"1","type":"get_state"}',
        b'{"id":"2","type":"prompt","message":"hi"}',
        b'{"id":"3","type":"get_state"}',
        b'{"id":"4","type":"clear"}',
        b'{"id":"5","type":"ping"}',
    )
    gate.set()
    frames = {}
    while "2" not in frames or "5" not in frames:
        frame = json.loads(await client.receive())
        frames[frame.get("id", frame["type"])] = frame
    assert [id for id in frames if id in "1345"] == [*"1345"]
    assert frames["1"]["data"]["busy"] is False and frames["3"]["data"]["busy"] is True
    assert "busy" in frames["4"]["error"]
    client.end()
    while True:
        try:
            last = await client.receive()
        except EOFError:
            break
    assert last == b'{"type":"done"}'


async def test_a_client_that_leaves_before_there_is_an_engine_leaves_nothing():
    gate = asyncio.Event()
    door = memory_door(Scripted(["hello"]), mode="full")

    async def provide():
        await gate.wait()
        return door

    desk = Desk(None, Settings(cwd="/"), provide=provide)
    client = Client(desk.hearer)
    client.send(b'{"id":"1","type":"prompt","message":"hi"}')
    await asyncio.sleep(0)
    client.drop()
    await asyncio.sleep(0)
    gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert desk.door is door and door.visitors.clients == {} and door.live_infos() == []


async def test_without_an_engine_the_client_is_told_and_the_connection_ends():
    async def provide():
        raise BadInput("no credential for anthropic", "Set a key.")

    desk = Desk(None, Settings(), provide=provide)
    client = Client(desk.hearer)
    client.send(b'{"id":"1","type":"hello"}', b'{"id":"2","type":"hello"}')
    answer = json.loads(await client.receive())
    assert answer["id"] == "1" and answer["error"].startswith("no credential for anthropic")
    try:
        await client.receive()
        raise AssertionError("it goes on")
    except EOFError:
        assert desk.failure.startswith("no credential")


async def test_what_waits_is_bounded_and_what_is_refused_says_so():
    gate = asyncio.Event()
    script = Scripted([turn("a", hang())])

    async def provide():
        await gate.wait()
        return memory_door(script, mode="full")

    desk = Desk(None, Settings(cwd="/"), provide=provide)
    client = Client(desk.hearer)
    client.send(*[b'{"id":"%d","type":"get_messages"}' % n for n in range(4_100)])
    refused = [json.loads(await client.receive()) for _ in range(4)]
    assert all("busy" in answer["error"] for answer in refused)
    gate.set()
    for number in range(4_096):
        assert json.loads(await client.receive())["id"] == str(number)
    client.send(*[b'{"id":"p%d","type":"prompt","message":"x"}' % n for n in range(300)])
    await asyncio.wait_for(script.hanging.wait(), 60)
    frames = [json.loads(line) for line in client.received()]
    full = [frame for frame in frames if frame.get("success") is False]
    assert full and all("busy" in frame["error"] for frame in full)
    assert len(full) == 300 - 256
    client.drop()
    assert desk.door is not None
    await host_of(desk.door).stop(1.0)


async def test_what_is_no_command_is_refused_in_its_place_and_when_too_many_wait_at_once():
    gate = asyncio.Event()

    async def provide():
        await gate.wait()
        return memory_door(Scripted([]), mode="full")

    desk = Desk(None, Settings(cwd="/"), provide=provide)
    client = Client(desk.hearer)
    odd = [b"{", b'{"id":"u","type":"nothing"}', b'{"id":"s","type":"set_mode","mode":5}']
    client.send(b'{"id":"0","type":"get_messages"}', *odd, b'{"id":"p","type":"ping"}')
    client.send(*[b'{"id":"%d","type":"get_messages"}' % n for n in range(4_091)], *odd)
    refused = [json.loads(await client.receive()) for _ in range(3)]
    assert all("busy" in answer["error"] for answer in refused)
    assert [answer.get("id") for answer in refused] == [None, "u", "s"]
    gate.set()
    first = [json.loads(await client.receive()) for _ in range(6)]
    assert [one.get("id") for one in first] == ["0", None, "u", "s", "p", "0"]
    assert "malformed json" in first[1]["error"] and first[2]["error"] == "unknown command"
    assert first[3]["error"].startswith("invalid set_mode") and first[4]["data"] == {"pong": True}
    client.drop()
    assert desk.door is not None
    await host_of(desk.door).stop(1.0)


@pytest.mark.bare
def test_the_start_imports_no_engine_and_nothing_heavy():
    code = (
        "import sys, dragoman.stdio.zot, dragoman.transports.stdio\n"
        "heavy = ('httpx', 'sqlite3', 'tomllib', 'argparse', 'dragoman.engine.door',"
        " 'dragoman.engine.events', 'dragoman.host.compose', 'dragoman.tools')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_times_and_sums_are_written_as_zot_writes_them(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert clock_time(1_776_598_200_000) == "2026-04-19T11:30:00Z"
    assert clock_time(1_776_598_200_120) == "2026-04-19T11:30:00.12Z"
    monkeypatch.setenv("TZ", "Asia/Tehran")
    time.tzset()
    assert clock_time(1_776_598_200_001) == "2026-04-19T15:00:00.001+03:30"
    monkeypatch.undo()
    time.tzset()
    assert (money(0.0), money(2.0), money(0.25)) == (0, 2, 0.25)
    assert isinstance(money(0.0), int)


async def test_a_session_that_another_process_has_is_busy_when_it_is():
    store = MemoryStore()
    other = memory_door(Scripted([hang()]), store=store, mode="full")
    sessions = [(await other.open(OpenSpec(cwd="/"))).id for _ in range(2)]
    work = await other.prompt(sessions[0], (Text("hi"),))
    await work.started
    client = Client(Desk(memory_door(Scripted([]), store=store), Settings(cwd="/")).hearer)
    client.send(b'{"id":"1","type":"list_sessions"}')
    answer = json.loads(await client.receive())
    busy = {row["id"]: row["busy"] for row in answer["data"]["sessions"]}
    assert busy == {sessions[0]: True, sessions[1]: False}
    other.cancel(sessions[0])
    await work.done
