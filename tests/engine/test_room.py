"""Sessions that make room for others keep nobody out while they go."""

import asyncio
import threading

import pytest
from tests.engine.tape import ME
from tests.engine.test_recovery import reopen  # noqa: F401

from dragoman.engine.content import Text, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import TurnBegan
from dragoman.engine.faults import Busy
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports.commands import Command
from dragoman.engine.session import Session
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, hang, turn


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
    async with asyncio.timeout(60):
        assert (await host.get(info.id)).id == info.id


async def test_a_close_behind_prompts_that_load_the_session_comes_after_them(reopen):  # noqa: F811
    door = await reopen(Scripted([turn("one", hang())], loop=True))
    id = (await door.open(OpenSpec(cwd="/"), ME)).id
    await door.close(id)
    coming = [asyncio.ensure_future(door.prompt(id, (Text(text),), ME)) for text in "ab"]
    closing = asyncio.ensure_future(door.close(id))
    first, second = await asyncio.gather(*coming)
    await closing
    assert (await first.done).outcome == "cancelled"
    with pytest.raises(Busy, match="was closed"):
        await second.done
    assert id not in host_of(door).live


def with_a_slow_command(door: Door) -> threading.Event:
    """`/go`, which is found once the event is set."""
    gate = threading.Event()

    def slowly(cwd: str) -> dict[str, Command]:
        gate.wait(60)
        return {"go": Command("go", "", "", "Go!")}

    host_of(door).commands = slowly
    return gate


async def test_what_comes_behind_a_slash_command_stays_behind_it() -> None:
    door = memory_door(Scripted(["x"] * 3))
    info = await door.open(OpenSpec(cwd="/"), ME)
    gate = with_a_slow_command(door)
    coming = [
        asyncio.ensure_future(door.prompt(info.id, (Text(text),), ME, keep=True))
        for text in ("/go", "second", "third")
    ]
    await asyncio.sleep(0)
    gate.set()
    for work in await asyncio.gather(*coming):
        await work.done
    said = [e.body.content for e in await door.history(info.id) if isinstance(e.body, TurnBegan)]
    assert [text_of(content) for content in said] == ["Go!", "second", "third"]


async def test_a_cancel_and_a_word_back_find_the_prompts_before_them() -> None:
    door = memory_door(Scripted([turn("x", hang()), "y"]))
    info = await door.open(OpenSpec(cwd="/"), ME)
    gate = with_a_slow_command(door)

    async def stop() -> None:
        await door.begun(info.id)
        door.cancel(info.id)

    async def take_back() -> None:
        await door.arrived(info.id)
        door.retract(info.id, "k")

    first = asyncio.ensure_future(door.prompt(info.id, (Text("/go"),), ME))
    second = asyncio.ensure_future(door.prompt(info.id, (Text("b"),), ME, key="k", keep=True))
    back, stopping = asyncio.ensure_future(take_back()), asyncio.ensure_future(stop())
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(back, stopping)
    assert (await (await first).done).outcome == "cancelled"
    assert (await (await second).done).outcome == "cancelled"
    said = [e.body.content for e in await door.history(info.id) if isinstance(e.body, TurnBegan)]
    assert [text_of(content) for content in said] == ["Go!"]


async def test_no_more_waits_in_a_session_than_the_host_allows() -> None:
    door = memory_door(Scripted([turn(hang())]))
    host_of(door).max_inbox = 3
    session = (await door.open(OpenSpec(cwd="/"), ME)).id
    for _ in range(3):
        await door.prompt(session, (Text("go"),), ME, limit=100)
    with pytest.raises(Busy, match="3 prompts wait") as told:
        await door.prompt(session, (Text("one too many"),), ME, limit=100)
    assert told.value.data["waiting"] == 3
    with pytest.raises(Busy, match="3 prompts wait"):
        await door.compact(session, ME)
    with pytest.raises(Busy, match="2 prompts wait"):  # a dialect may allow fewer
        await door.prompt(session, (Text("go"),), ME, limit=2)
    await door.close(session)
