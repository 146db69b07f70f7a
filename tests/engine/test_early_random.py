"""Watchers that come and go at random while prompts wait for a slow store."""

import asyncio
import random

import pytest
from tests.engine.tape import ME
from tests.engine.test_watch_random import ANSWER, Client

from dragoman.engine import events as ev
from dragoman.engine import hub as hub_module
from dragoman.engine import hub as watch_module
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, say, turn


class Own(Client):
    """One whose text may come before the prompt is committed, unless it comes later than that."""

    knows = ME.dialect

    def __init__(self, rng, since, exact, turn, draft):
        super().__init__(rng, since, exact)
        self.turn = turn  # that ran when it came
        self.draft = draft

    def check(self, last):
        super().check(last)
        began, full = set(), True
        text = ""
        for event in self.events:
            body = event.body
            if isinstance(body, ev.Lagged):
                full = False
            if isinstance(body, ev.TurnBegan):
                began.add(body.turn)
            elif isinstance(body, ev.TextDelta):
                text += body.text
                if self.since == 0 and body.turn == self.turn:
                    assert body.turn in began
            elif isinstance(body, ev.Spoke):
                # Nothing is lost either, but to those who came in the middle.
                if full and text and (self.draft or body.turn != self.turn):
                    assert text == ANSWER
                text = ""


def delay(store, rng):
    """Answer late, in order, and sometimes several at once."""
    append, queue = store._append, []

    def answer():
        for batch, future in queue[: rng.randint(1, 3)]:
            queue.pop(0)
            try:
                future.set_result(append(batch))
            except Exception as error:
                future.set_exception(error)

    def post(batch, **how):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        queue.append((batch, future))
        later()
        return future

    def later():
        loop = asyncio.get_running_loop()
        loop.call_later(rng.random() * 0.004, lambda: (answer(), queue and later()))

    store.post = post


@pytest.mark.parametrize("seed", range(12))
async def test_nobody_misses_or_repeats_anything(monkeypatch, seed):
    rng = random.Random(seed)
    if seed % 3 == 0:
        monkeypatch.setattr(watch_module, "HOLD_BYTES", 4_000)
    if seed % 2 == 0:
        monkeypatch.setattr(hub_module, "_REPLAY_PAGE", 3)
    script = Scripted(
        [turn(say(ANSWER, deltas=60), call("look", text="x")), say(ANSWER, deltas=60)], loop=True
    )
    door = memory_door(script, [EchoTool("look", "read")])
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    delay(host_of(door).store, rng)
    session = host_of(door).live[sid]
    clients, over, early = [], asyncio.Event(), 0

    async def crowd():
        nonlocal early
        while not over.is_set():
            await asyncio.sleep(rng.random() * 0.001)
            early += session.ledger.hub.early
            if len(clients) < 40 and rng.random() < 0.5:
                since = rng.choice([None, 0])
                draft = rng.random() < 0.7
                exact = rng.random() < 0.5
                running = session.ledger.turn.id if session.ledger.turn else ""
                client = Own(rng, since, exact, running, draft)
                client.watch = await door.watch(
                    sid, Who("test", id=str(len(clients))), client, client.take,
                    lambda c=client: c.paused, since=since, exact=exact, draft=draft,  # type: ignore[misc]
                )  # fmt: skip
                clients.append(client)
            for client in clients:
                if rng.random() < 0.3:
                    client.resume()
            if rng.random() < 0.3:
                session.ledger.put(ev.Renamed(str(rng.random())))

    async def drive():
        for _ in range(6):
            works = [await door.prompt(sid, (Text("go"),), ME) for _ in range(rng.randint(1, 3))]
            for work in works:
                await work.done
        over.set()

    await asyncio.gather(crowd(), drive())
    await session.ledger.told()
    last = (await door.info(sid)).last_seq
    async with asyncio.timeout(60):
        for client in clients:
            while client.paused or client.watch.held is not None:
                client.rng = random.Random(99)
                client.resume()
                await asyncio.sleep(0.001)
    assert early and not session.ledger.hub.early
    for client in clients:
        client.check(last)
