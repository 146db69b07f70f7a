"""A client that does not read: nothing is lost or out of order, and nobody waits for it."""

import asyncio
import json

from tests.timed import promised

from dragoman.dialects.zot import Desk, Settings
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.hub import HOLD_BYTES
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted, hang, say, turn
from dragoman.transports.memory import Client

PROMPT = b'{"id":"%d","type":"prompt","message":"go"}'


def start(script, **settings):
    door = memory_door(script, mode="full")
    desk = Desk(door, Settings(cwd="/", keeps=False, **settings))
    return door, Client(desk.hearer)


async def turns_done(door, count):
    """Wait until the only session has taken so many turns and rests."""
    changed = asyncio.Event()

    class Told:
        def speak(self, events):
            changed.set()

    watch = door.watch_all(Who("test"), Told(), lambda said: None)
    async with asyncio.timeout(60):
        while not door.live_infos() or door.live_infos()[0].turns < count:
            changed.clear()
            await changed.wait()
    watch.close()
    await door.idle(door.live_infos()[0].id)


async def all_of(client):
    frames = []
    try:
        while True:
            frames.append(json.loads(await client.receive(60)))
    except EOFError:
        return frames


async def test_what_was_held_comes_in_order_with_the_words_around_it():
    big = "x" * 200_000
    door, client = start(Scripted([say(big, deltas=4), say(big, deltas=4), "three", "sum"]))
    client.wire.stuck = True
    client.send(PROMPT % 1, PROMPT % 2, PROMPT % 3, b'{"id":"4","type":"compact"}')
    client.end()
    await turns_done(door, 3)
    assert not client.wire.eof, "it does not leave before all was said"
    client.wire.take()
    frames = await all_of(client)
    marks = [f.get("id") or f["type"] for f in frames if f["type"] in ("response", "done")]
    assert marks == ["1", "done", "2", "done", "3", "done", "4", "done"]
    said = "".join(f["delta"] for f in frames if f["type"] == "text_delta")
    assert said == big + big + "three"
    assert [f["summary"] for f in frames if f["type"] == "compact_done"] == ["sum"]


async def test_one_who_reads_far_too_late_is_told_that_deltas_are_lost():
    door, client = start(Scripted([say("y" * (HOLD_BYTES + 2_000_000), deltas=400), "next"]))
    client.wire.stuck = True
    client.send(PROMPT % 1)
    await turns_done(door, 1)
    client.end()
    client.wire.take()
    frames = await all_of(client)
    order = [f["type"] for f in frames if f["type"] != "text_delta"]
    assert "lagged" in order and order[-1] == "done" and order.count("done") == 1
    messages = [f for f in frames if f["type"] == "assistant_message"]
    assert len(messages) == 1 and len(messages[0]["content"][0]["text"]) > HOLD_BYTES


async def test_a_lost_connection_leaves_the_turn_to_others():
    script = Scripted([turn("one", hang(), "two")])
    door, client = start(script)
    client.send(PROMPT % 1)
    await asyncio.wait_for(script.hanging.wait(), 60)
    client.drop()
    await asyncio.sleep(0)
    info = door.live_infos()[0]
    assert door.present(info.id) == () and door.visitors.clients == {}
    script.release()
    await door.idle(info.id)
    assert (await door.messages(info.id))[-1].content[-1] == Text("onetwo")


@promised(0.010)
async def test_every_answer_of_a_busy_moment_comes_soon(within):
    script = Scripted([turn(say("word " * 50_000, deltas=50_000))])
    door, client = start(script)
    client.send(PROMPT % 1)
    while json.loads(await client.receive())["type"] != "text_delta":
        pass
    loop = asyncio.get_running_loop()
    times = []
    for number in range(20):
        client.received()
        began = loop.time()
        client.send(b'{"id":"q%d","type":"get_state"}' % number)
        while True:
            frame = json.loads(await client.receive())
            if frame.get("id") == f"q{number}":
                break
        times.append(loop.time() - began)
        assert frame["data"]["busy"]
    assert sorted(times)[17] < within, sorted(times)  # nine of ten: one may meet noise
    client.send(b'{"type":"abort"}')
    await door.idle(door.live_infos()[0].id)
    client.drop()
