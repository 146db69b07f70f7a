"""Noticing changes of the file."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from dragoman.settings.model import Settings
from dragoman.settings.watch import KeyChange, Watch, diff


def settings(**raw: Any) -> Settings:
    return msgspec.convert(raw, Settings)


def test_the_difference_is_listed_by_key() -> None:
    old = settings(acp={"max_sessions": 3}, agents={"a": {"model": "x"}, "gone": {}})
    new = settings(acp={"max_sessions": 4}, agents={"a": {"model": "y"}, "new": {"model": "z"}})
    changes = diff(old, new)
    assert KeyChange(("acp", "max_sessions"), 3, 4) in changes
    assert KeyChange(("agents", "a", "model"), "x", "y") in changes
    assert [one.path for one in changes if one.new is None] == [("agents", "gone")]
    assert [one.path for one in changes if one.old is None] == [("agents", "new")]
    assert len(changes) == 4
    assert diff(old, old) == []


async def test_a_change_a_removal_and_a_poke_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    seen: asyncio.Queue[int] = asyncio.Queue()
    count = 0

    async def changed() -> None:
        nonlocal count
        count += 1
        seen.put_nowait(count)

    watch = Watch(str(file), changed, interval=0.01)
    task = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(30):
            beside = tmp_path / "new"  # put there in one go, so that one change is one
            beside.write_text("a = 1\n")
            beside.replace(file)
            await seen.get()
            file.unlink()
            await seen.get()
            watch.poke()
            await seen.get()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert count == 3
