"""A dispatched message that was acknowledged goes out: stored first, across restarts, in order."""

import asyncio
from typing import Any

import pytest
from tests.dialects.openclawos.talking import FULL, Talker, app

from dragoman.dialects.openclawos import Desk, Settings, outbox
from dragoman.engine import events as ev
from dragoman.engine.faults import StoreFailed
from dragoman.engine.traits import Correspondent
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted

OWNER = (("channel", {"id": "telegram"}),)
MODERATOR: dict[str, Any] = {"hooks": {"intercepts": ["message_sending"]}}
TELEGRAM: dict[str, Any] = {"channels": {"provides": ["telegram"]}}


def life(store: MemoryStore, *script: Any) -> Desk:
    """The kernel's next process on a store that stays."""
    door = memory_door(Scripted(list(script)), store=store)
    host_of(door).owner = f"life-{id(door)}"
    return Desk(door, Settings())


async def died(desk: Desk) -> None:
    """The process ends without a word."""
    host = host_of(desk.door)
    for session in host.live.values():
        session.park()
    for task in tuple(host._tasks):
        task.cancel()
    await asyncio.sleep(0)


def sent(text: str, key: str = "telegram:1") -> dict[str, Any]:
    return {"sessionKey": key, "content": text}


async def rows(store: MemoryStore) -> int:
    return len(await store.pairs(outbox.OUTBOX))


async def gone(store: MemoryStore) -> None:
    """All that waited went out; the writing of that takes a few rounds."""
    for _ in range(100):
        if not await rows(store):
            return
        await asyncio.sleep(0)
    raise AssertionError("something waits")


class Slow(MemoryStore):
    """Writes small values when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.refuses: Exception | None = None

    async def put(self, space: str, key: str, value: bytes | None) -> None:
        if space == outbox.OUTBOX:
            await self.may.wait()
            if self.refuses is not None:
                raise self.refuses
        await super().put(space, key, value)


async def test_nothing_is_acknowledged_before_it_is_stored():
    store = Slow()
    talker = await app(life(store), grant=OWNER, **FULL)
    asked = talker.ask("message.dispatch", sent("hello"))
    await talker.silence()
    assert asked not in talker.answers
    store.may.set()
    assert (await talker.answer(asked))["result"]["queued"] is True
    assert (await talker.event("hook:message_sending"))["data"]["content"] == "hello"
    await gone(store)


async def test_what_cannot_be_stored_is_refused_and_not_sent():
    store = Slow()
    store.refuses = StoreFailed("the disk is full")
    store.may.set()
    talker = await app(life(store), grant=OWNER, **FULL)
    assert "disk is full" in (await talker.refused("message.dispatch", sent("hello")))["message"]
    await talker.silence()


async def test_it_goes_out_in_order_after_a_restart():
    store = MemoryStore()
    desk = life(store)
    await app(desk, "@o/o", grant=OWNER, ready=False, **FULL)
    second = await app(desk, "@b/b")
    for n in range(3):
        assert (await second.call("message.dispatch", sent(str(n))))["queued"] is True
    await died(desk)
    await died(life(store))  # twice in a row
    desk = life(store)
    owner = await app(desk, "@o/o", grant=OWNER, ready=False, **FULL)
    await owner.silence()
    await owner.call("app.ready", {})
    heard = [(await owner.event("hook:message_sending"))["data"]["content"] for _ in range(3)]
    assert heard == ["0", "1", "2"]
    await gone(store)
    await owner.call("app.ready", {})
    await owner.silence()


async def test_it_waits_for_an_interceptor_across_a_restart():
    store = MemoryStore()
    desk = life(store)
    owner = await app(desk, "@o/o", grant=OWNER, **FULL)
    asked = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    await owner.call("message.dispatch", sent("bad word"))
    await asked.event()
    await died(desk)
    desk = life(store)
    asked = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    owner = await app(desk, "@o/o", grant=OWNER, **FULL)
    event = await asked.event()
    await owner.silence()
    await asked.result(event, {"content": "***"})
    assert (await owner.event())["data"]["content"] == "***"
    await gone(store)


async def test_an_app_that_left_while_others_were_asked_gets_it_when_it_is_back():
    store = MemoryStore()
    desk = life(store)
    owner = await app(desk, "@o/o", grant=OWNER, **FULL)
    asked = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    await asked.call("message.dispatch", sent("hello"))
    event = await asked.event()
    await owner.leave()
    await asked.result(event, {"content": "HELLO"})
    await asked.silence()
    owner = await app(desk, "@o/o", grant=OWNER, **FULL)
    assert (await owner.event())["data"]["content"] == "HELLO"
    await asked.silence()  # it is not asked twice
    await gone(store)


async def test_what_is_blocked_or_too_old_ends_with_a_word_in_its_session(monkeypatch):
    store = MemoryStore()
    desk = life(store, "hi")
    owner = await app(desk, "@o/o", grant=OWNER, **TELEGRAM)
    await owner.call("agent.queue", {"sessionKey": "telegram:1", "text": "hi"})
    assert (await owner.event())["data"]["content"] == "hi"
    found = await desk.door.find(Correspondent, key="telegram:1")
    await desk.door.idle(found.id)
    asked = await app(desk, "@a/a", hears=("message_sending",), **MODERATOR)
    await owner.call("message.dispatch", sent("bad"))
    await asked.result(await asked.event(), {"block": True, "blockReason": "rude"})
    await gone(store)
    await asked.leave()
    await owner.call("app.shutdown", {})
    await owner.call("message.dispatch", sent("old"))
    monkeypatch.setattr(outbox, "LONGEST_MS", -1)
    await owner.call("app.ready", {})
    await gone(store)
    await owner.silence()
    history = await desk.door.history(found.id)
    noted = [(one.body.title, one.body.text) for one in history if isinstance(one.body, ev.Noted)]
    assert noted == [
        ("Message not sent: rude", "bad"),
        ("Message not sent: no app took it in time", "old"),
    ]


async def test_nothing_is_accepted_while_stopping_or_beyond_the_bound(monkeypatch):
    store = MemoryStore()
    desk = life(store)
    owner = await app(desk, grant=OWNER, ready=False, **FULL)
    monkeypatch.setattr(outbox, "MOST", 2)
    await owner.call("message.dispatch", sent("1"))
    await owner.call("message.dispatch", sent("2"))
    assert (await owner.refused("message.dispatch", sent("3")))["code"] == "CONFLICT"
    host_of(desk.door).stopping = True
    assert "shutting down" in (await owner.refused("message.dispatch", sent("4")))["message"]
    assert await rows(store) == 2


async def replied(desk: Desk, talker: Talker, key: str = "telegram:1") -> None:
    await talker.call("agent.queue", {"sessionKey": key, "text": "hi"})
    found = await desk.door.find(Correspondent, key=key)
    await desk.door.idle(found.id)


@pytest.mark.parametrize("restart", [False, True])
async def test_what_an_agent_says_waits_for_an_app_that_is_away(restart):
    store = MemoryStore()
    desk = life(store, "one", "two")
    owner = await app(desk, "@o/o", grant=OWNER, **TELEGRAM)
    await owner.leave()
    if restart:
        await died(desk)
        desk = life(store, "one", "two")
    other = await app(desk, "@b/b")
    await replied(desk, other)
    await replied(desk, other)
    owner = await app(desk, "@o/o", grant=OWNER, **TELEGRAM)
    heard = [(await owner.event("hook:message_sending"))["data"]["content"] for _ in range(2)]
    assert heard == ["one", "two"]
    await gone(store)


async def test_nothing_is_kept_for_a_channel_that_no_app_ever_had():
    store = MemoryStore()
    desk = life(store, "one")
    await replied(desk, await app(desk), "nowhere:1")
    await asyncio.sleep(0)
    assert await rows(store) == 0


async def test_the_newest_of_too_many_words_are_kept(monkeypatch):
    monkeypatch.setattr(outbox, "MOST", 1)
    store = MemoryStore()
    await store.put(outbox.CHANNELS, "telegram", b"@o/o")
    desk = life(store, "one", "two")
    await store.put(outbox.OUTBOX, "000000000000000.000000000", b"of another version")
    other = await app(desk, "@b/b")
    await replied(desk, other)
    await replied(desk, other)
    owner = await app(desk, "@o/o", grant=OWNER, **TELEGRAM)
    assert (await owner.event())["data"]["content"] == "two"
    await gone(store)
    await owner.silence()
