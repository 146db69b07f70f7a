"""A turn whose text streams while its prompt is still being committed."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, say

GO = (Text("go"),)


class Own(Tape):
    """Of a client that does not want prompts of its own dialect repeated."""

    knows = ME.dialect


async def slow(door, wanted="turn_began"):
    """Hold commits of that kind, and those after it, back; returns how to let them go."""
    append, gate, order = host_of(door).store.append, asyncio.Event(), asyncio.Lock()

    async def wait(batch):
        async with order:
            if any(entry.kind == wanted for entry in batch.entries):
                await gate.wait()
            return await append(batch)

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(wait(batch))
    return gate.set


async def opened(door, tape):
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    await door.watch(sid, ME, tape, lambda said: None)
    return sid


async def test_own_text_comes_before_the_commit():
    door = memory_door(Scripted([say("hello")]))
    tape = Own()
    sid = await opened(door, tape)
    commit = await slow(door)
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.TextDelta)
    assert not tape.of(ev.TurnBegan) and not work.started.done()
    commit()
    assert (await work.done).text == "hello"
    assert tape.of(ev.TurnBegan) and tape.text() == "hello"


@pytest.mark.parametrize("other", ["another shape", "another dialect", "the whole host"])
async def test_whoever_is_to_see_the_prompt_sees_it_first(other):
    door = memory_door(Scripted([say("hello")]))
    own, tape = Own(), Tape()
    sid = await opened(door, own)
    by = ME
    if other == "another shape":
        await door.watch(sid, Who("it", "acp", "Editor"), tape, lambda said: None)
    elif other == "the whole host":
        door.watch_all(ME, tape, lambda said: None)
    else:
        by, tape = Who("it", "acp", "Editor"), own
    commit = await slow(door)
    work = await door.prompt(sid, GO, by)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not own.text() and not tape.text()
    commit()
    await work.done
    await tape.until(ev.TurnEnded)
    kinds = tape.kinds()
    assert kinds.index("TurnBegan") < kinds.index("TextDelta")


@pytest.mark.parametrize("since", [None, 0])
async def test_one_that_joins_meanwhile_hears_of_the_prompt_first(since):
    door = memory_door(Scripted([say("hello there", deltas=2)]))
    own, tape = Own(), Tape()
    sid = await opened(door, own)
    commit = await slow(door)
    work = await door.prompt(sid, GO, ME)
    await own.until(ev.TextDelta)
    await door.watch(sid, Who("it", "acp", "Editor"), tape, lambda said: None, since=since)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not tape.text()
    commit()
    await work.done
    await tape.until(ev.TurnEnded)
    kinds = tape.kinds()
    assert kinds.index("TurnBegan") < kinds.index("TextDelta")
    assert tape.text() == own.text() == "hello there"


async def test_a_prompt_that_cannot_be_kept_ends_its_turn():
    tool = EchoTool("echo", "read")
    door = memory_door(Scripted([call("echo", text="x"), say("fine")]), tools=[tool])
    tape = Own()
    sid = await opened(door, tape)
    post, failing = host_of(door).store.post, asyncio.Event()

    async def full(batch):
        await failing.wait()
        raise StoreFailed("The disk is full.")

    host_of(door).store.post = lambda batch, **how: asyncio.ensure_future(full(batch))
    work = await door.prompt(sid, GO, ME)
    await tape.until(ev.CallDrafted)
    failing.set()
    with pytest.raises(StoreFailed):
        await work.done
    host_of(door).store.post = post
    assert not tool.ran and not await door.messages(sid)
    assert (await (await door.prompt(sid, GO, ME)).done).text == "fine"
