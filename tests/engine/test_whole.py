"""All that was said, whatever compactions left of it."""

from time import perf_counter

from tests.timed import judging

from dragoman.engine import events as ev
from dragoman.engine.content import Message, Text, text_of
from dragoman.engine.entries import is_compacted, whole
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch, Entry
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


async def test_compactions_take_nothing_away_and_a_clearing_does() -> None:
    door = memory_door(Scripted([f"answer {n}" for n in range(6)]))
    session = (await door.open(OpenSpec(cwd="/"))).id
    ledger = host_of(door).live[session].ledger

    async def say(text: str) -> None:
        await (await door.prompt(session, (Text(text),))).done

    async def texts() -> list[str]:
        return [text_of(one.content) for one in await whole(host_of(door).store, session)]

    await say("one")
    await say("two")
    assert not is_compacted(ledger.state.messages)
    before = await texts()
    assert before == ["one", "answer 0", "two", "answer 1"]
    await ledger.put(ev.Compacted("short", 1))
    assert is_compacted(ledger.state.messages)
    await say("three")
    await ledger.put(ev.Compacted("shorter", 0))
    await say("four")
    said = [*before, "three", "answer 2", "four", "answer 3"]
    assert await texts() == said
    assert [text_of(one.content) for one in await door.transcript(session)] == said
    await door.clear(session)
    await say("five")
    assert await texts() == ["five", "answer 4"]


def test_an_empty_history_is_whole() -> None:
    assert not is_compacted(()) and not is_compacted((Message("user", (), 0),))


@judging
async def test_a_history_costs_as_much_as_it_is_long(judged: bool) -> None:
    store, took = MemoryStore(), {}
    for turns in (2_000, 16_000):
        name = f"s{turns}"
        info = SessionInfo(name, "default", "/", "demo/demo", "full", "idle", 1, 1)
        epoch = await store.create(info, "me")
        spoke = ev.encode_body(ev.Spoke("t", 1, (Text("yes"),), "end_turn"))
        bodies = [
            (ev.encode_body(ev.TurnBegan("t", (Text("go"),))), "turn_began"),
            (spoke, "spoke"),
        ]
        entries = [Entry(n + 1, 1, kind, body) for n, (body, kind) in enumerate(bodies * turns)]
        await store.append(Batch(name, epoch, entries, info))
        began = perf_counter()
        assert len(await whole(store, name)) == 2 * turns
        took[turns] = perf_counter() - began
    assert not judged or took[16_000] < 24 * took[2_000]  # eight times as long, not sixty-four
