"""Watchers that join, stall, resume and leave at random: no gap, no repeat, the right text."""

import asyncio
import random

import pytest
from tests.engine.tape import ME

from dragoman.engine import events as ev
from dragoman.engine import hub as hub_module
from dragoman.engine import hub as watch_module
from dragoman.engine.content import Text, text_of
from dragoman.engine.host import OpenSpec
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, say, turn

ANSWER = "the quick brown fox jumps over the lazy dog " * 6


class Client:
    """A client that stops and starts reading."""

    def __init__(self, rng, since, exact):
        self.rng = rng
        self.since = since
        self.exact = exact
        self.paused = False
        self.events = []
        self.watch = None

    def speak(self, events):
        return list(events)

    def take(self, events):
        self.events.extend(events)
        if self.rng.random() < 0.2:
            self.paused = True

    def resume(self):
        self.paused = False
        self.watch.resume()

    def check(self, last):
        seqs = [e.seq for e in self.events if e.seq]
        first = seqs[0] if seqs else last + 1
        if self.since is not None:
            assert first == min(self.since + 1, last + 1)
        assert seqs == list(range(first, last + 1)), (self.since, seqs)
        if any(isinstance(e.body, ev.Lagged) for e in self.events):
            return
        # What streamed before a message is that message, or its beginning was before we came.
        streamed = ""
        for event in self.events:
            body = event.body
            if isinstance(body, ev.TextDelta):
                streamed += body.text
            elif isinstance(body, ev.Spoke):
                said = text_of(body.content)
                assert streamed in ("", said) or said.endswith(streamed), (said, streamed)
                streamed = ""
        assert streamed == ""


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_every_watcher_sees_every_kept_event_once_and_in_order(
    tmp_path, monkeypatch, seed, kind
):
    rng = random.Random(seed)
    if seed % 3 == 0:  # little patience, so that some are dropped
        monkeypatch.setattr(watch_module, "HOLD_BYTES", 4_000)
    if seed % 2 == 0:
        monkeypatch.setattr(hub_module, "_REPLAY_PAGE", 3)
    store = open_store(tmp_path / "s.db")[0] if kind == "file" else None
    script = Scripted(
        [turn(say(ANSWER, deltas=60), call("look", text="x")), say(ANSWER, deltas=60)], loop=True
    )
    door = memory_door(script, [EchoTool("look", "read")], store=store)
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    clients = []
    over = asyncio.Event()

    async def crowd():
        while not over.is_set():
            await asyncio.sleep(rng.random() * 0.001)
            if len(clients) < 12 and rng.random() < 0.3:
                last = (await door.info(sid)).last_seq
                since = rng.choice([None, 0, rng.randint(0, last)])
                client = Client(rng, since, rng.random() < 0.5)
                client.watch = await door.watch(
                    sid, ME, client, client.take, lambda c=client: c.paused,  # type: ignore[misc]
                    since=since, exact=client.exact, draft=rng.random() < 0.7,
                )  # fmt: skip
                clients.append(client)
            for client in clients:
                if client.paused and rng.random() < 0.3:
                    client.resume()
            await door.rename(sid, str(rng.random()))

    async def drive():
        for _ in range(6):
            await (await door.prompt(sid, (Text("go"),), ME)).done
        over.set()

    await asyncio.gather(crowd(), drive())
    last = (await door.info(sid)).last_seq
    async with asyncio.timeout(60):
        for client in clients:
            while client.paused or client.watch.held is not None:
                client.rng = random.Random(99)
                client.resume()
                await asyncio.sleep(0.001)
    for client in clients:
        client.check(last)
    if store is not None:
        await store.close()


async def test_events_that_are_stored_but_not_told_yet_are_told_once(tmp_path):
    door = memory_door(Scripted(["hello there"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    append = host_of(door).store.append
    stored, go = asyncio.Event(), asyncio.Event()

    async def slow(batch):
        first = await append(batch)
        stored.set()
        await go.wait()
        return first

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(slow(batch))
    renaming = asyncio.ensure_future(door.rename(sid, "x"))
    await stored.wait()
    rng = random.Random(1)
    rng.random = lambda: 1.0
    for client, way in ((Client(rng, 0, True), "one"), (Client(rng, 0, True), "all")):
        if way == "one":
            client.watch = await door.watch(sid, ME, client, client.take, since=0)
        else:
            client.watch = door.watch_all(ME, client, client.take, since=0)
        caught_up = asyncio.Event()
        client.watch.then(caught_up.set)
        await asyncio.wait_for(caught_up.wait(), 60)
        if way == "one":
            one = client
        else:
            everything = client
    go.set()
    await renaming
    for client in (one, everything):
        assert [e.seq for e in client.events if e.seq] == [1, 2]


async def test_a_hub_nobody_reads_stays_small(monkeypatch):
    monkeypatch.setattr(watch_module, "HOLD_BYTES", 20_000)
    door = memory_door(Scripted([say("word " * 2_000)], loop=True))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    client = Client(random.Random(1), None, True)
    watch = await door.watch(sid, ME, client, client.take, lambda: True, exact=True)
    most = 0
    for _ in range(10):
        await (await door.prompt(sid, (Text("go"),), ME)).done
        most = max(most, watch.weight)
    assert most <= 40_000
    assert not host_of(door).live[sid].ledger.hub._pending
