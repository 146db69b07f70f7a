"""Sessions that were let go leave the memory at once, not when the garbage collector comes by."""

import gc

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import Hub
from dragoman.engine.session import Session
from dragoman.engine.state import State
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted

GO = (Text("go"),)


def held() -> list[int]:
    """How many sessions, states and hubs there are."""
    there = [type(one) for one in gc.get_objects()]
    return [there.count(kind) for kind in (Session, State, Hub)]


@pytest.mark.parametrize("leaves", ["before", "after"])
async def test_a_closed_session_is_gone(leaves):
    """Its watcher leaves before it is closed, or later."""
    door = memory_door(Scripted(["hello"]))
    sid = (await door.open(OpenSpec(cwd="/"), ME)).id
    watch = await door.watch(sid, ME, Tape(), lambda said: None)
    await (await door.prompt(sid, GO, ME)).done
    await door.idle(sid)
    gc.collect()
    before = held()
    gc.disable()
    try:
        if leaves == "before":
            watch.close()
        await door.close(sid)
        if leaves == "after":
            watch.close()
        del watch
        assert held() == [count - 1 for count in before]
    finally:
        gc.enable()
