"""What a daemon does all its life goes on after something in it broke."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.daemon import main
from dragoman.engine.faults import StoreFailed
from dragoman.schedules.timetable import Timetable


class Flaw:
    """Breaks once in the place of a method, which then does its work again."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.met = 0
        self.over = asyncio.Event()

    def of(self, usual: Any) -> Any:
        async def broken(*given: Any) -> Any:
            self.met += 1
            if self.met == 1:
                raise self.error
            done = await usual(*given)
            self.over.set()
            return done

        return broken


@pytest.fixture
async def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[main.Daemon]:
    for name in ("_AGAIN_SECONDS", "_FILE_CHECK_SECONDS", "_SWEEP_SECONDS"):
        monkeypatch.setattr(main, name, 0.01)
    composed = await main.compose(config_dir=str(tmp_path))
    made = main.Daemon(composed, ephemeral=False, gateway=False, native=False)
    yield made
    await made.close()


async def test_the_file_is_looked_at_and_sessions_are_let_go_of_after_trouble(
    daemon: main.Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host, told = daemon.composed.host, []

    def trouble(what: str, error: BaseException, **data: Any) -> None:
        told.append(str(error))
        if str(error) == "no ways":  # an edit of just then
            (tmp_path / "config.toml").write_text("[limits]\nmax_clients = 7\n")

    host.on_trouble = trouble
    ways, sweep = Flaw(OSError("no ways")), Flaw(StoreFailed("no disk"))
    monkeypatch.setattr(daemon.listening, "mend", ways.of(daemon.listening.mend))
    monkeypatch.setattr(host, "sweep", sweep.of(host.sweep))
    await daemon.start()
    async with asyncio.timeout(60):
        await ways.over.wait()
        await sweep.over.wait()
        while daemon.composed.settings.limits.max_clients != 7:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert sorted(told) == ["no disk", "no ways"]


@pytest.mark.parametrize("asked", [True, False])
async def test_schedules_that_could_not_be_loaded_are_loaded_later(
    daemon: main.Daemon, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """When somebody asks for them again, and all the same when nobody does."""
    monkeypatch.setattr(main, "_SCHEDULES_AGAIN", 600.0 if asked else 0.01)
    load = Flaw(StoreFailed("no disk"))
    monkeypatch.setattr(Timetable, "load", load.of(Timetable.load))
    await daemon.start()
    schedules: Any = daemon.composed.door.facts.schedules
    if asked:
        with pytest.raises(StoreFailed, match="no disk"):
            await schedules()
    else:
        await asyncio.wait_for(load.over.wait(), 60)
    table = await schedules()
    assert table.list() == [] and await schedules() is table and load.met == 2


async def test_schedules_are_kept_after_trouble(
    daemon: main.Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Flaw(StoreFailed("no disk"))

    async def looked(table: Timetable) -> None:
        return

    monkeypatch.setattr(Timetable, "keep", keep.of(looked))
    await daemon.start()
    await asyncio.wait_for(keep.over.wait(), 60)
