"""Subscriptions: shared encoding, slow readers, coming and going, many at once."""

import asyncio
import json

from tests.dialects.humanlayer.desk import HEALTH, HEALTHY, Client, make
from tests.timed import judging, promised

from dragoman.dialects.humanlayer import speak
from dragoman.dialects.humanlayer.subscription import BUFFER
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import host_of
from dragoman.transports import unix

ME = Who("test", id="t")


async def test_subscriptions_with_the_same_filter_share_one_encoding(monkeypatch):
    door, desk = make(["done"])
    encoded = []
    real = speak.line
    monkeypatch.setattr(speak, "line", lambda *a: encoded.append(a[0]) or real(*a))
    clients = [Client(desk) for _ in range(20)]
    for client in clients:
        await client.subscribe()
    launcher = Client(desk)
    started = await launcher.call("launchSession", query="x")
    await door.idle(started["session_id"])
    for client in clients:
        statuses = [(await client.event("session_status_changed"))["data"] for _ in range(3)]
        assert statuses[-1]["new_status"] == "completed"
    assert len(encoded) == 4
    for client in clients:
        client.wire.drop()
    await asyncio.sleep(0)
    assert desk.subscriptions == 0 and not desk._shapes and not host_of(door).hub.watches


async def test_a_client_that_does_not_read_gets_a_hundred_events_and_a_word_about_the_rest():
    door, desk = make()
    info = await door.open(OpenSpec(cwd="/"), ME)
    client = Client(desk)
    await client.subscribe()
    client.wire.wire.stuck = True
    big = "x" * 400
    total = 1_500
    for number in range(total):
        await door.rename(info.id, f"{number} {big}", ME)
        await asyncio.sleep(0)  # the store in memory never waits: let the connection be written
    assert client.wire.pump.paused
    client.wire.wire.take()
    await asyncio.sleep(0)
    got = [json.loads(line)["result"]["event"] for line in client.wire.received()]
    notice = got.pop()
    assert notice["type"] == "events_dropped"
    titles = [int(event["data"]["title"].split()[0]) for event in got]
    assert titles == list(range(len(titles)))  # the oldest are kept, in order
    assert notice["data"]["count"] == total - len(titles)
    assert BUFFER < len(titles) < 500
    await door.rename(info.id, "after", ME)
    assert (await client.event())["data"]["title"] == "after"
    # what was dropped can be had again
    again = Client(desk)
    await again.subscribe(since=got[-1]["seq"])
    async with asyncio.timeout(60):
        while (await again.event())["data"]["title"] != "after":
            titles.append(len(titles))
    assert len(titles) == total


@promised(0.1)
async def test_a_closed_connection_leaves_nothing_behind(tmp_path, within):
    door, desk = make()
    listener = await unix.listen(str(tmp_path / "h.sock"), desk.hearer)
    for ending in ("close", "half-close"):
        reader, writer = await asyncio.open_unix_connection(listener.path)
        writer.write(b'{"jsonrpc":"2.0","method":"Subscribe","id":1}\n')
        assert b"sub_" in await asyncio.wait_for(reader.readline(), 60)
        assert desk.subscriptions == 1 and len(door.visitors.clients) == 1
        gone = asyncio.Event()
        door.visitors.on_change[:] = [gone.set]
        if ending == "close":
            writer.transport.abort()
        else:
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), 60) == b""
        await asyncio.wait_for(gone.wait(), within)
        assert (
            desk.subscriptions == 0 and not door.visitors.clients and not host_of(door).hub.watches
        )
        writer.close()
    await listener.close()


async def test_coming_back_with_since_leaves_no_gap():
    door, desk = make()
    info = await door.open(OpenSpec(cwd="/"), ME)
    first = Client(desk)
    await first.subscribe()
    for number in range(5):
        await door.rename(info.id, str(number), ME)
    seen = [await first.event() for _ in range(3)]
    first.wire.drop()
    for number in range(5, 1_300):
        await door.rename(info.id, str(number), ME)
    second = Client(desk)
    await second.subscribe(since=seen[-1]["seq"], session_id=info.id)
    await door.rename(info.id, "1300", ME)
    titles = [(await second.event())["data"]["title"] for _ in range(1_298)]
    assert titles == [str(number) for number in range(3, 1_301)]


@judging
async def test_short_connections_and_subscriptions_side_by_side(tmp_path, judged):
    """500 connections a second while 50 subscriptions are open: none is lost, no event either."""
    door, desk = make()
    info = await door.open(OpenSpec(cwd="/"), ME)
    listener = await unix.listen(str(tmp_path / "h.sock"), desk.hearer)
    subscribers = []
    for _ in range(50):
        reader, writer = await asyncio.open_unix_connection(listener.path)
        writer.write(b'{"jsonrpc":"2.0","method":"Subscribe","id":1}\n')
        assert b"sub_" in await asyncio.wait_for(reader.readline(), 60)
        subscribers.append((reader, writer))

    async def short(number):
        reader, writer = await asyncio.open_unix_connection(listener.path)
        listing = b'{"jsonrpc":"2.0","method":"fetchApprovals","id":%d}\n' % number
        writer.write(HEALTH + b"\n" + listing)
        assert await reader.readline() == HEALTHY + b"\n"
        answer = json.loads(await reader.readline())
        writer.close()
        await writer.wait_closed()
        return answer == {"jsonrpc": "2.0", "result": {"approvals": []}, "id": number}

    loop = asyncio.get_running_loop()
    began = loop.time()
    answered = []
    rounds, per_round = 20, 50
    async with asyncio.timeout(150):
        for round_ in range(rounds):
            await door.rename(info.id, str(round_), ME)
            due = [short(round_ * per_round + number) for number in range(per_round)]
            answered += await asyncio.gather(*due)
    rate = len(answered) / (loop.time() - began)
    assert len(answered) == 1_000 and all(answered)
    for reader, writer in subscribers:
        for round_ in range(rounds):
            event = json.loads(await asyncio.wait_for(reader.readline(), 60))
            assert event["result"]["event"]["data"]["title"] == str(round_)
        writer.close()
        await writer.wait_closed()
    await listener.close()
    assert not judged or rate > 500, f"only {rate:.0f} connections a second"
