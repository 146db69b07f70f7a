"""Requests of one session take effect in the order in which they came, whatever ends meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME

from dragoman.engine.arrivals import Arrivals
from dragoman.engine.content import Text, text_of
from dragoman.engine.door import OpenSpec
from dragoman.engine.events import TurnBegan
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, say


async def test_a_line_is_left_in_order_and_then_forgotten() -> None:
    arrivals, seen = Arrivals(), []

    async def come(name: int) -> None:
        async with arrivals.turn("s"):
            await asyncio.sleep(0)
            seen.append(name)

    first = [asyncio.create_task(come(one)) for one in range(5)]
    while len(seen) < 2:
        await asyncio.sleep(0)
        first.append(asyncio.create_task(come(len(first))))
    await asyncio.gather(*first)
    assert seen == sorted(seen) and "s" not in arrivals.lines


async def test_who_gives_up_or_fails_keeps_nobody() -> None:
    arrivals = Arrivals()
    held, free = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with arrivals.turn("s"):
            held.set()
            await free.wait()
            raise ValueError("it failed")

    async def come() -> None:
        async with arrivals.turn("s"):
            pass

    one = asyncio.create_task(hold())
    await held.wait()
    two, three = asyncio.create_task(come()), asyncio.create_task(come())
    await asyncio.sleep(0)
    two.cancel()
    free.set()
    with pytest.raises(ValueError):
        await one
    await three
    assert "s" not in arrivals.lines


@pytest.mark.parametrize("behind", range(8))
async def test_prompts_keep_their_order_while_somebody_closes_the_session(
    tmp_path: Path, behind: int
) -> None:
    """One prompt at every step of the loop, around closing and loading again."""
    store = SqliteStore(str(tmp_path / "s.db"))
    door = memory_door(Scripted([say("ok")] * 80), store=store)
    session = (await door.open(OpenSpec(), ME)).id
    host = host_of(door)
    tasks: list[asyncio.Task[Any]] = []
    closing = asyncio.create_task(host.close(session))
    for _ in range(behind):
        await asyncio.sleep(0)
    for number in range(24):
        tasks.append(
            asyncio.create_task(host.prompt(session, (Text(f"prompt {number}"),), ME, limit=64))
        )
        await asyncio.sleep(0)
        if number % 5 == 4:
            await asyncio.sleep(0)
    await closing
    works = await asyncio.gather(*tasks)
    for work in works:
        await work.done
    page = await host.read(session, 0, 10_000)
    begun = [event.body for event in page if isinstance(event.body, TurnBegan)]
    texts = [text_of(one.content) for one in begun]
    assert texts == [f"prompt {number}" for number in range(24)]
    await host.stop()
    await store.close()


@pytest.mark.parametrize("marks", ["/-", "//-", "///--", "/-/-", "-/-//--", "//--/-"])
async def test_prompts_keep_their_order_whichever_are_commands(marks: str) -> None:
    door = memory_door(Scripted([say("ok")] * len(marks)))
    info = await door.open(OpenSpec(cwd="/"), ME)
    texts = [f"{'/none ' if mark == '/' else ''}p{number}" for number, mark in enumerate(marks)]
    asked = [asyncio.create_task(door.prompt(info.id, (Text(text),), ME)) for text in texts]
    for work in await asyncio.gather(*asked):
        await work.done
    history = await door.history(info.id)
    said = [text_of(one.body.content) for one in history if isinstance(one.body, TurnBegan)]
    assert said == texts
