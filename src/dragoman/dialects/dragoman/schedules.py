"""Schedules: prompts at a time, an interval, or by a cron expression."""

from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.ports.schedules import Job, NewJob, Run, add_job

from .shapes import OfSchedule, ScheduleRuns

if TYPE_CHECKING:
    from .caller import Caller


class Jobs(msgspec.Struct, frozen=True):
    schedules: list[Job]


class Runs(msgspec.Struct, frozen=True):
    runs: list[Run]


async def listed(conn: "Caller", _: None) -> Jobs:
    return Jobs([*(await conn.door.facts.timetable()).list()])


async def add(conn: "Caller", params: NewJob) -> Job:
    return await add_job(await conn.door.facts.timetable(), params)


async def remove(conn: "Caller", params: OfSchedule) -> Job:
    return await (await conn.door.facts.timetable()).remove(params.id)


async def enable(conn: "Caller", params: OfSchedule) -> Job:
    found = await conn.door.facts.timetable()
    job = found.get(params.id)
    return await found.change(msgspec.structs.replace(job, enabled=params.enabled))


async def runs(conn: "Caller", params: ScheduleRuns) -> Runs:
    return Runs([*await (await conn.door.facts.timetable()).runs(params.id, params.limit)])


async def trigger(conn: "Caller", params: OfSchedule) -> Run:
    return await (await conn.door.facts.timetable()).trigger(params.id)
