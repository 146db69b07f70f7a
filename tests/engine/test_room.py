"""Sessions that make room for others keep nobody out while they go."""

import asyncio

from tests.engine.tape import ME
from tests.engine.test_recovery import reopen  # noqa: F401

from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.session import Session
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


async def test_one_that_comes_while_all_others_go_waits_for_their_places(reopen):  # noqa: F811
    door = await reopen(Scripted(["a"], loop=True))
    host = host_of(door)
    host.max_sessions = 2
    ids = [(await door.open(OpenSpec(cwd="/"), ME)).id for _ in range(2)]
    gate = asyncio.Event()
    shut = host._let_go

    async def slowly(session):
        await gate.wait()
        await shut(session)

    host._let_go = slowly
    going = [asyncio.ensure_future(door.close(id)) for id in ids]
    await asyncio.sleep(0)
    coming = asyncio.ensure_future(door.open(OpenSpec(cwd="/"), ME))
    await asyncio.sleep(0)
    assert not coming.done(), "nothing is spare, but room is being made"
    gate.set()
    await asyncio.gather(*going)
    assert (await coming).id in host.live


async def test_a_session_that_is_let_go_as_soon_as_it_is_loaded_is_loaded_again(reopen):  # noqa: F811
    door = await reopen(Scripted(["a"], loop=True))
    host = host_of(door)
    id = (await door.open(OpenSpec(cwd="/"), ME)).id
    await door.close(id)
    load, times = host._load, 0

    async def and_go(session_id):
        nonlocal times
        times += 1
        session = await load(session_id)
        if times == 1:  # another one needed the place, before whoever asked came to it
            session.ledger.closing = True
            leaving = host._leaving[id] = asyncio.create_task(host._close(session))
            leaving.add_done_callback(lambda _: host._leaving.pop(id))
        return session

    host._load = and_go
    finished = await (await door.prompt(id, (Text("go"),), ME)).done
    assert finished.outcome == "completed" and times == 2


async def test_who_comes_when_a_session_has_just_been_loaded_lets_others_go_on() -> None:
    door = memory_door(Scripted(["one"] * 50))
    info = await door.open(OpenSpec(cwd="/"), ME)
    host = host_of(door)
    loaded: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
    loaded.set_result(host.live[info.id])  # over, and not taken out yet
    host._loading[info.id] = loaded  # type: ignore[assignment]
    asyncio.get_running_loop().call_soon(host._loading.pop, info.id)
    async with asyncio.timeout(5):
        assert (await host.get(info.id)).id == info.id
