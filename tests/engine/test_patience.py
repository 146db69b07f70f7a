"""Reads of a turn while the database is away."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.content import Text
from dragoman.engine.faults import StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Shelf, patience
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call

from .tape import ME

AWAY = StoreFailed("The database cannot be reached.", stalled=True)


class Away:
    """Reads a shelf that fails so many times."""

    def __init__(self, shelf: Shelf, times: int, problem: StoreFailed = AWAY) -> None:
        self._pairs = shelf.pairs
        self.times = times
        self.problem = problem

    async def pairs(self, space: str) -> Sequence[tuple[str, bytes]]:
        if self.times:
            self.times -= 1
            raise self.problem
        return await self._pairs(space)


async def test_what_is_read_at_once_is_given_back() -> None:
    async def read() -> int:
        return 3

    assert await patience.patiently(read) == 3


@pytest.mark.parametrize("problem", [StoreFailed("damaged"), KeyError("k")])
async def test_what_no_waiting_mends_is_raised_at_once(problem: Exception) -> None:
    tries = 0

    async def read() -> None:
        nonlocal tries
        tries += 1
        raise problem

    with pytest.raises(type(problem)):
        await patience.patiently(read)
    assert tries == 1


async def test_it_is_waited_for_no_longer_than_a_change_is(monkeypatch: Any) -> None:
    monkeypatch.setattr(patience, "WAIT", 0.0)
    tries = 0

    async def read() -> None:
        nonlocal tries
        tries += 1
        raise AWAY

    with pytest.raises(StoreFailed, match="cannot be reached"):
        await patience.patiently(read)
    assert 1 <= tries <= 2


async def test_a_turn_outlives_a_database_that_is_away_when_rules_are_read(
    tmp_path: Path, monkeypatch: Any
) -> None:
    tool = EchoTool()
    door = memory_door(Scripted([call("echo", text="x"), "done"]), [tool])
    store = host_of(door).store
    away = Away(store, 2)
    monkeypatch.setattr(store, "pairs", away.pairs)
    info = await door.open(OpenSpec(cwd=str(tmp_path), mode="full"), ME)
    finished = await (await door.prompt(info.id, (Text("go"),), ME)).done
    assert (finished.outcome, finished.text, away.times) == ("completed", "done", 0)
    assert len(tool.ran) == 1
