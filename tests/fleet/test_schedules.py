"""Schedules of a fleet: every node knows them, and each time is run once."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from msgspec import structs
from tests.fleet.making import Fleet, Member, until

from dragoman.engine.events import Who
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports.schedules import Job, When
from dragoman.providers.scripted import Say, Scripted, Turn
from dragoman.schedules import timetable
from dragoman.schedules.timetable import Timetable

ANN = Who("acp", name="ann")


def script() -> Scripted:
    return Scripted((Turn((Say("done"),)),), loop=True)


async def keeping(member: Member) -> tuple[Timetable, "asyncio.Task[None]"]:
    made = Timetable(member.door, member.store.node)
    await made.load()
    return made, asyncio.create_task(made.keep())


async def sessions(member: Member) -> list[Any]:
    return [*(await member.door.list(SessionQuery())).sessions]


async def test_each_time_is_run_by_one_node(fleet: Fleet, monkeypatch: Any) -> None:
    monkeypatch.setattr(timetable, "_HEADSTART_MS", 0)  # all try at the same moment
    members = [await fleet.join(name, script()) for name in "abc"]
    kept = [await keeping(member) for member in members]
    now = members[0].door.now_ms()
    made = await kept[0][0].add(Job("", "tidy up", When(at=now + 1500), "", "/"))
    await until(lambda: all(jobs.list() for jobs, _ in kept))  # the others hear of it
    await until(lambda: all(jobs.get(made.id).last_status == "ok" for jobs, _ in kept))
    (ran,) = await sessions(members[1])
    assert ran.query == "tidy up" and ran.turns == 1
    runs = [await jobs.runs(made.id, 10) for jobs, _ in kept]
    assert [len(one) for one in runs] == [1, 1, 1] and runs[0][0].node in "abc"
    await kept[2][0].remove(made.id)
    await until(lambda: not any(jobs.list() for jobs, _ in kept))
    for _, task in kept:
        task.cancel()


async def test_a_schedule_into_a_session_is_one_prompt(fleet: Fleet, monkeypatch: Any) -> None:
    monkeypatch.setattr(timetable, "_HEADSTART_MS", 0)
    a, b = await fleet.join("a", script()), await fleet.join("b", script())
    session = await a.open()
    kept = [await keeping(member) for member in (a, b)]
    due = When(at=a.door.now_ms() + 1200)
    made = await kept[1][0].add(Job("", "tidy up", due, "", session=session))
    await until(lambda: all(jobs.list() for jobs, _ in kept))
    await until(lambda: all(jobs.get(made.id).last_status == "ok" for jobs, _ in kept))
    assert (await a.door.info(session)).turns == 1
    for _, task in kept:
        task.cancel()


async def test_another_node_runs_what_the_dead_one_would_have(fleet: Fleet, tmp_path: Path) -> None:
    roots = (str(tmp_path),)
    a, b = [await fleet.join(name, script(), roots=roots) for name in "ab"]
    here, task = await keeping(a)
    due = a.door.now_ms() + 300
    shared = await here.add(Job("", "shared", When(at=due), "", str(tmp_path)))
    pinned = await here.add(Job("", "pinned", When(at=due), "", "/tmp"))
    task.cancel()
    await a.die()
    there, task = await keeping(b)
    await until(lambda: there.get(shared.id).last_status)
    assert there.get(pinned.id).last_status == ""  # its folder is on the other node
    task.cancel()


async def test_a_prompt_that_another_node_sent_is_not_written_down_twice(
    fleet: Fleet, monkeypatch: Any
) -> None:
    """The slower node hears only from the owner that the time was taken, and writes nothing."""
    monkeypatch.setattr(timetable, "_HEADSTART_MS", 0)
    a, b = await fleet.join("a", script()), await fleet.join("b", script())
    session = await a.open()
    await b.door.load(session)
    late = Timetable(b.door, b.store.node)
    made = await late.add(Job("", "tidy", When(at=a.door.now_ms() + 200), "", session=session))
    quick, task = await keeping(a)
    monkeypatch.setattr(b.node.following, "look", lambda: asyncio.sleep(0))  # b knows nothing yet
    await until(lambda: quick.get(made.id).last_status == "ok")
    run = await late._begin(made, made.next_run)
    assert run.status == "elsewhere"
    await late._look_again()
    assert late.get(made.id).last_status == "ok" and len(await late.runs(made.id, 9)) == 1
    task.cancel()


async def test_a_run_whose_node_died_before_it_told_of_it(fleet: Fleet, monkeypatch: Any) -> None:
    """It is tried once more after a while, not without a pause, and the next time is set."""
    monkeypatch.setattr(timetable, "_BOOKS_MS", 400)
    b = await fleet.join("b", script())
    here = Timetable(b.door, b.store.node)
    made = await here.add(Job("", "tidy", When(every_ms=60_000), "", "/"))
    at = b.door.now_ms() - 1
    made = await here._set(structs.replace(made, next_run=at))
    name = str(uuid5(NAMESPACE_OID, f"{made.id}:{at}"))
    await b.open("/", id=name)  # as far as the dead one came
    tries: list[int | None] = []
    began = here._begin
    monkeypatch.setattr(here, "_begin", lambda job, at=None: tries.append(at) or began(job, at))
    task = asyncio.create_task(here.keep())
    await until(lambda: (here.get(made.id).next_run or 0) > at)
    assert tries == [at, at]
    await until(lambda: not here._running)
    await here._look_again()  # what every node reads
    assert (here.get(made.id).next_run or 0) > at
    task.cancel()
