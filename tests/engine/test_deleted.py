"""Whoever watches hears of a deletion last of all, and only when it is true."""

import asyncio

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.faults import Fault, StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, turn

GO = (Text("go"),)


async def opened(door):
    """A session, and what those hear who watch it, and who watch all."""
    info = await door.open(OpenSpec(cwd="/"), ME)
    own, every = Tape(), Tape()
    await door.watch(info.id, ME, own, lambda said: None)
    door.watch_all(ME, every, lambda said: None)
    return info.id, own, every


async def test_what_ran_and_what_waited_end_before_the_session_is_gone():
    script = Scripted([turn("words", hang()), "never"])
    door = memory_door(script)
    sid, own, every = await opened(door)
    first = await door.prompt(sid, GO, ME)
    await script.hanging.wait()
    second = await door.prompt(sid, GO, ME)
    assert await door.delete(sid, ME)
    assert (await first.done).outcome == "cancelled"
    with pytest.raises(Fault, match="closed"):
        await second.done
    for tape in (own, every):
        kinds = tape.kinds()
        assert kinds[-1] == "Deleted" and kinds.count("Deleted") == 1
        assert kinds.count("TurnBegan") == kinds.count("TurnEnded") == 1
        assert tape.of(ev.Deleted)[0].by == ME


async def test_a_session_that_left_memory_is_told_gone_too():
    door = memory_door(Scripted(["done"]))
    sid, own, every = await opened(door)
    await (await door.prompt(sid, GO, ME)).done
    await door.close(sid)
    assert await door.delete(sid, ME)
    assert own.of(ev.Deleted) and every.of(ev.Deleted)
    assert not await door.delete(sid, ME)
    assert len(every.of(ev.Deleted)) == 1


async def test_two_who_delete_at_once_are_one_deletion():
    door = memory_door(Scripted([turn(hang())]))
    sid, own, every = await opened(door)
    await door.prompt(sid, GO, ME)
    assert sorted(await asyncio.gather(door.delete(sid, ME), door.delete(sid, ME))) == [False, True]
    assert len(own.of(ev.Deleted)) == len(every.of(ev.Deleted)) == 1


async def test_nobody_is_told_of_a_deletion_that_failed():
    door = memory_door(Scripted(["done", "again"]))
    sid, own, every = await opened(door)
    store = host_of(door).store
    delete = store.delete

    async def full(session_id):
        raise StoreFailed("The disk is full.")

    store.delete = full
    with pytest.raises(StoreFailed):
        await door.delete(sid, ME)
    assert not own.of(ev.Deleted) and not every.of(ev.Deleted)
    store.delete = delete
    assert (await (await door.prompt(sid, GO, ME)).done).text == "done"
    assert own.of(ev.Spoke)  # who watched sees on


async def test_one_that_is_opened_by_the_name_of_a_deleted_one_is_another():
    """Clients choose names: `main` is deleted, and opened again at once."""
    door = memory_door(Scripted(["done", "new"]))
    sid, own, every = await opened(door)
    await (await door.prompt(sid, GO, ME)).done
    store = host_of(door).store
    put, emptied, go = store.put, asyncio.Event(), asyncio.Event()

    async def slow(space, key, value):
        if key == sid and value is None:  # it is gone, and what is beside it goes
            emptied.set()
            await go.wait()
        await put(space, key, value)

    store.put = slow
    deleting = asyncio.ensure_future(door.delete(sid, ME))
    await emptied.wait()
    opening = asyncio.ensure_future(door.open(OpenSpec(cwd="/", id=sid), ME))
    for _ in range(20):
        await asyncio.sleep(0)
    go.set()
    assert await deleting and (await opening).id == sid
    assert door.live(sid) is not None
    assert (await (await door.prompt(sid, GO, ME)).done).text == "new"
    kinds = every.kinds()
    assert kinds[kinds.index("Deleted") :].count("Opened") == 1
    assert own.kinds()[-1] == "Deleted"
