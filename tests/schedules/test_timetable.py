"""Schedules of a host: kept, run, made up for."""

import asyncio
import gc
from contextlib import asynccontextmanager

import msgspec
import pytest
from tests.dialects.zeroclaw.test_terminal import Gate

from dragoman.engine.faults import BadInput, StoreFailed, UnknownAgent, UnknownSession
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports.schedules import Job, When
from dragoman.schedules import timetable as module
from dragoman.schedules.timetable import Timetable
from dragoman.store.memory import MemoryStore
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, call

YEARS = 2_200_000_000_000  # in 2039


class Clock:
    def __init__(self, now=1_000_000):
        self.now = now

    def now_ms(self):
        return self.now

    def monotonic(self):
        return self.now / 1000


def door_of(script=("one", "two", "three"), tools=(), store=None, now=1_000_000):
    door = memory_door(Scripted(list(script)), tools, store=store, mode="full")
    host_of(door).clock = Clock(now)
    return door


@asynccontextmanager
async def kept(door):
    table = Timetable(door)
    await table.load()
    task = asyncio.ensure_future(table.keep())
    try:
        yield table
    finally:
        task.cancel()


def job(**more):
    return Job("", more.pop("prompt", "go"), more.pop("when", When(every_ms=60_000)), "", **more)


async def ran(table, job_id, count=1):
    """Wait until a job ran so often."""

    async def enough():
        while True:
            runs = await table.runs(job_id, 50)
            if len([run for run in runs if run.finished_at is not None]) >= count:
                return runs
            await asyncio.sleep(0.005)

    return await asyncio.wait_for(enough(), 60)


async def is_next(table, job_id, at):
    """Wait until this is the next time of a job."""

    async def looked():
        while True:
            if table.get(job_id).next_run == at:
                return
            await asyncio.sleep(0.005)

    await asyncio.wait_for(looked(), 60)


def pass_time(door, table, ms):
    host_of(door).clock.now += ms  # type: ignore[attr-defined]
    table._changed.set()


async def test_an_interval_runs_again_and_again_in_sessions_of_its_own():
    door = door_of()
    async with kept(door) as table:
        made = await table.add(job(name="tidy", cwd="/"))
        assert made.agent == "default" and made.next_run == 1_060_000
        assert not await table.runs(made.id, 5)
        pass_time(door, table, 60_000)
        await ran(table, made.id)
        pass_time(door, table, 300_000)  # five times missed are one
        two, one = await ran(table, made.id, 2)
        assert [run.output for run in (one, two)] == ["one", "one"]
        assert one.session != two.session and one.status == "ok"
        info = await door.info(two.session)
        assert info.origin == "schedule" and info.title == "tidy" and info.cwd == "/"
        known = table.get("tidy")
        assert known.last_status == "ok" and known.last_output == "one"
        assert known.next_run == 1_420_000 and known.last_run == 1_360_000


async def test_a_time_comes_once_and_is_made_up_for():
    store = MemoryStore()
    door = door_of(store=store)
    async with kept(door) as table:
        made = await table.add(job(when=When(at=1_005_000)))
        every = await table.add(job(when=When(every_ms=10_000)))
    later = door_of(store=store, now=2_000_000)
    async with kept(later) as table:
        (run,) = await ran(table, made.id)
        assert run.started_at == 2_000_000 and table.get(made.id).next_run is None
        assert table.get(every.id).next_run == 2_010_000 and not await table.runs(every.id, 5)
        with pytest.raises(BadInput):
            await table.add(job(when=When(at=1_999_999)))


async def test_what_ran_when_the_process_died_is_told():
    store = MemoryStore()
    gate = Gate()
    door = door_of([call("gate"), "never"], [gate], store)
    async with kept(door) as table:
        made = await table.add(job())
        run = asyncio.ensure_future(table.trigger(made.id))
        await asyncio.wait_for(gate.running.wait(), 60)
        assert table.get(made.id).last_status == "running"
    run.cancel()
    async with kept(door_of(store=store)) as table:
        (one,) = await table.runs(made.id, 5)
        assert one.status == "interrupted" == table.get(made.id).last_status
        assert (await table.trigger(made.id)).number == 2


async def test_one_job_runs_once_at_a_time():
    gate = Gate()
    door = door_of([call("gate"), "done"], [gate])
    async with kept(door) as table:
        made = await table.add(job())
        first = asyncio.ensure_future(table.trigger(made.id))
        await asyncio.wait_for(gate.running.wait(), 60)
        pass_time(door, table, 60_000)
        second = asyncio.ensure_future(table.trigger(made.id))
        await asyncio.sleep(0)
        gate.open.set()
        run = await first
        assert run == await second
        pass_time(door, table, 1)
        later, earlier = await ran(table, made.id, 2)  # the time that came meanwhile, and the one
        assert earlier == run and later.started_at >= run.finished_at


async def test_a_schedule_that_is_paused_rests_and_one_that_is_removed_is_gone():
    door = door_of()
    async with kept(door) as table:
        made = await table.add(job())
        await table.change(msgspec.structs.replace(made, enabled=False))
        pass_time(door, table, 600_000)
        await asyncio.sleep(0.02)
        assert not await table.runs(made.id, 5)
        assert (await table.trigger(made.id)).status == "ok"
        await table.remove(made.id)
        assert not table.list() and not await door.shelf.pairs(module.RUNS)
        for wrong in (table.runs(made.id, 1), table.trigger(made.id), table.remove(made.id)):
            with pytest.raises(BadInput):
                await wrong


async def test_a_schedule_may_go_on_with_a_session():
    from dragoman.engine.host import OpenSpec

    door = door_of()
    info = await door.open(OpenSpec(agent="default"))
    async with kept(door) as table:
        made = await table.add(job(session=info.id))
        await table.trigger(made.id)
        assert (await table.trigger(made.id)).session == info.id
        assert len(await door.messages(info.id)) == 4
        await door.delete(info.id)
        failed = await table.trigger(made.id)
        assert failed.status == "failed" and info.id in failed.output


async def test_what_cannot_be_kept():
    door = door_of()
    async with kept(door) as table:
        for wrong in (
            job(prompt="  "), job(prompt="x" * 70_000), job(when=When()),
            job(when=When(cron="0 0 31 2 *")),
        ):  # fmt: skip
            with pytest.raises(BadInput):
                await table.add(wrong)
        with pytest.raises(UnknownSession):
            await table.add(job(session="none"))
        with pytest.raises(UnknownAgent):
            await table.add(msgspec.structs.replace(job(), agent="nobody"))
        with pytest.raises(BadInput):
            table.when("12:00", "5m", "", "")
        assert not table.list()


async def test_runs_and_jobs_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_RUNS", 3)
    monkeypatch.setattr(module, "MOST_JOBS", 2)
    door = door_of([f"{n}" for n in range(9)])
    async with kept(door) as table:
        made = await table.add(job(name="a"))
        for _ in range(5):
            await table.trigger(made.id)
        assert [run.number for run in await table.runs(made.id, 50)] == [5, 4, 3]
        assert len(await door.shelf.pairs(module.RUNS)) == 3
        other = await table.add(job(name="a"))
        with pytest.raises(BadInput, match=f"2 schedules are meant .*{made.id}, {other.id}"):
            table.get("a")
        with pytest.raises(BadInput, match="already"):
            await table.add(job())


async def test_a_time_whose_turn_had_not_begun_when_the_process_died_is_made_up_for_once():
    store = MemoryStore()
    door = door_of(store=store)
    async with kept(door) as table:
        made = await table.add(job(when=When(at=1_010_000), cwd="/"))

        died = asyncio.Event()

        async def die(*_, **__):
            died.set()
            raise asyncio.CancelledError

        door.prompt = die  # type: ignore[method-assign]
        pass_time(door, table, 10_000)
        await asyncio.wait_for(died.wait(), 60)
        (run,) = await table.runs(made.id, 5)
        assert run.finished_at is None
    door = door_of(store=store, now=1_020_000)
    for status in ("ok", "ok"):  # the second start finds nothing more to do
        async with kept(door) as table:
            (run,) = await ran(table, made.id)
            assert run.status == status and run.output == "one" and run.started_at == 1_010_000


async def test_a_time_whose_turn_began_does_not_come_twice():
    store = MemoryStore()
    door = door_of(store=store)
    async with kept(door) as table:
        made = await table.add(job(when=When(at=1_010_000), cwd="/"))
        pass_time(door, table, 10_000)
        (run,) = await ran(table, made.id)
        open_again = msgspec.structs.replace(run, finished_at=None, status="running")
        key = module._key(made.id, run.number)
        await door.shelf.put(module.RUNS, key, msgspec.json.encode(open_again))  # it was not noted
    async with kept(door) as table:
        (run,) = await ran(table, made.id)
        assert run.status == "interrupted" and "taken before" in run.output
        assert (await door.info(run.session)).turns == 1


async def test_a_run_that_cannot_be_written_down_is_tried_again_later(monkeypatch):
    """The store is away: no storm of tries, and the run comes when it is back."""
    store = MemoryStore()
    door = door_of(store=store)
    tries = []
    put = store.put

    async def away(space, key, value):
        tries.append(key)
        raise StoreFailed("The database is gone.")

    async with kept(door) as table:
        made = await table.add(job(cwd="/"))
        monkeypatch.setattr(store, "put", away)
        pass_time(door, table, 60_000)
        for _ in range(200):
            pass_time(door, table, 0)
            await asyncio.sleep(0)
        assert len(tries) == 1
        monkeypatch.setattr(store, "put", put)
        pass_time(door, table, module._AGAIN_MS)
        assert (await ran(table, made.id))[0].status == "ok"


async def test_who_is_told_something_while_being_cancelled_ends_all_the_same():
    door = door_of()
    table = Timetable(door)
    task = asyncio.ensure_future(table.keep())
    for _ in range(3):
        await asyncio.sleep(0)
    pass_time(door, table, 0)
    await asyncio.sleep(0)  # the wait is over, its task has not gone on
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()


def set_clock(door, table, now):
    pass_time(door, table, now - door.now_ms())


async def test_a_clock_that_is_set_back_leaves_no_schedule_waiting_for_years():
    door = door_of()
    async with kept(door) as table:
        every = await table.add(job(when=When(every_ms=60_000)))
        once = await table.add(job(when=When(at=YEARS + 120_000)))
        set_clock(door, table, YEARS)  # somebody sets it wrong
        await ran(table, every.id)
        assert table.get(every.id).next_run == YEARS + 60_000
        set_clock(door, table, 1_000_000)  # and right again
        await is_next(table, every.id, 1_060_000)
        assert table.get(once.id).next_run == YEARS + 120_000  # a time is a time
        pass_time(door, table, 60_000)
        await ran(table, every.id, 2)


async def test_what_was_kept_with_a_clock_that_was_ahead_is_near_after_a_restart():
    store = MemoryStore()
    door = door_of(store=store, now=YEARS)
    async with kept(door) as table:
        every = await table.add(job(when=When(every_ms=60_000)))
        daily = await table.add(job(when=When(cron="30 7 * * *", tz="UTC")))
    later = door_of(store=store, now=1_000_000)
    async with kept(later) as table:
        await is_next(table, every.id, 1_060_000)
        assert table.get(daily.id).next_run == 27_000_000  # half past seven on the first day


async def test_a_daily_time_does_not_come_twice_when_the_clock_is_set_back_an_hour():
    door = door_of(now=27_000_000)
    async with kept(door) as table:
        daily = await table.add(job(when=When(cron="31 7 * * *", tz="UTC")))
        pass_time(door, table, 60_000)
        await ran(table, daily.id)
        tomorrow = table.get(daily.id).next_run
        pass_time(door, table, -3_600_000)
        every = await table.add(job(when=When(every_ms=60_000)))
        pass_time(door, table, 60_000)
        await ran(table, every.id)  # the clock was looked at
        assert table.get(daily.id).next_run == tomorrow and len(await table.runs(daily.id, 5)) == 1


async def test_what_could_not_be_run_is_not_put_off_for_longer_when_the_clock_is_set_back(
    monkeypatch,
):
    store = MemoryStore()
    door = door_of(store=store, now=YEARS)

    async def away(space, key, value):
        raise StoreFailed("The database is gone.")

    async with kept(door) as table:
        made = await table.add(job(when=When(every_ms=1_000)))
        with monkeypatch.context() as gone, pytest.raises(StoreFailed):
            gone.setattr(store, "put", away)
            await table.trigger(made.id)
        set_clock(door, table, 1_000_000)
        await is_next(table, made.id, 1_001_000)
        pass_time(door, table, 6_000)
        await ran(table, made.id)


async def test_a_clock_that_goes_back_while_the_disk_is_full_ends_no_schedule():
    class Full(MemoryStore):
        full = False

        async def put(self, space, key, value):
            if self.full:
                raise StoreFailed("The disk is full: nothing was saved.")
            await super().put(space, key, value)

    store = Full()
    door = door_of(store=store, now=1_000_000_000)
    async with kept(door) as table:
        made = await table.add(job())
        for _ in range(20):
            await asyncio.sleep(0)
        store.full = True
        pass_time(door, table, -900_000_000)
        for _ in range(20):
            await asyncio.sleep(0)
        store.full = False
        pass_time(door, table, 0)
        await is_next(table, made.id, 100_060_000)


class Slow(MemoryStore):
    """A store that takes its time; what is put is stored in order."""

    def __init__(self):
        super().__init__()
        self.going = asyncio.Event()
        self.going.set()
        self.waiting = 0
        self.came = asyncio.Event()

    async def put(self, space, key, value):
        self.waiting += 1
        self.came.set()
        await self.going.wait()
        await super().put(space, key, value)

    async def held(self, count):
        async with asyncio.timeout(60):
            while self.waiting < count:
                self.came.clear()
                await self.came.wait()


async def edited(table, job_id, **edit):
    """As dialects do it."""
    return await table.change(msgspec.structs.replace(table.get(job_id), **edit))


async def stored(store, job_id):
    return msgspec.json.decode(await store.get(module.JOBS, job_id), type=Job)


async def test_changes_at_the_same_time_keep_each_other():
    store = Slow()
    table = Timetable(door_of(store=store))
    made = await table.add(job())
    store.going.clear()
    edits = ({"enabled": False}, {"name": "blue"}, {"prompt": "do"})
    changing = [asyncio.ensure_future(edited(table, made.id, **edit)) for edit in edits]
    await store.held(4)
    store.going.set()
    await asyncio.gather(*changing)
    for found in (table.get(made.id), await stored(store, made.id)):
        assert (found.enabled, found.name, found.prompt) == (False, "blue", "do")


async def test_one_that_is_disabled_while_its_run_is_noted_stays_so():
    store = Slow()
    table = Timetable(door_of(store=store))
    made = await table.add(job())
    store.going.clear()
    running = asyncio.ensure_future(table.trigger(made.id))
    await store.held(2)
    off = asyncio.ensure_future(edited(table, made.id, enabled=False))
    await store.held(3)
    store.going.set()
    await asyncio.gather(running, off)
    for found in (table.get(made.id), await stored(store, made.id)):
        assert not found.enabled and found.last_status == "ok"


async def test_a_change_that_was_not_stored_is_none():
    store = Slow()
    table = Timetable(door_of(store=store))
    made = await table.add(job())
    full = StoreFailed("The disk is full: nothing was saved.")

    async def refused(space, key, value):
        raise full

    put, store.put = store.put, refused
    with pytest.raises(StoreFailed):
        await table.change(msgspec.structs.replace(made, enabled=False))
    with pytest.raises(StoreFailed):
        await table.add(job(name="other"))
    assert [*table.list()] == [made]
    store.put = put
    await table.remove(made.id)
    with pytest.raises(BadInput):
        await table.change(made)


async def test_one_that_is_removed_while_it_is_changed_is_gone():
    store = Slow()
    door = door_of(store=store)
    table = Timetable(door)
    session = (await door.open(OpenSpec(cwd="/"))).id
    made = await table.add(job(session=session))
    changing = asyncio.ensure_future(edited(table, made.id, enabled=False))
    await table.remove(made.id)
    await asyncio.gather(changing, return_exceptions=True)
    assert not table.list() and not await store.pairs(module.JOBS)


async def test_a_run_whose_session_cannot_be_noted_begins_no_prompt(monkeypatch, recwarn):
    door = door_of()
    store = host_of(door).store
    put = store.put

    async def full(space, key, value):
        if space == module.RUNS and value is not None and b'"session":""' not in value:
            raise StoreFailed("no disk")
        await put(space, key, value)

    async with kept(door) as table:
        made = await table.add(job())
        monkeypatch.setattr(store, "put", full)
        assert (await table.trigger(made.id)).status == "failed"
    gc.collect()
    assert not [one for one in recwarn if "never awaited" in str(one.message)]
