"""Schedules: prompts at a time, an interval, or by a cron expression."""

from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.schedules import Job, Run, Schedules

from .shapes import AddSchedule, OfSchedule, ScheduleRuns

if TYPE_CHECKING:
    from .caller import Caller


class Jobs(msgspec.Struct, frozen=True):
    schedules: list[Job]


class Runs(msgspec.Struct, frozen=True):
    runs: list[Run]


async def timetable(conn: "Caller") -> Schedules:
    """The host's schedules. Raises BadInput where the host does not live long enough for them."""
    given = conn.door.facts.schedules
    if given is None:
        raise BadInput("This host keeps no schedules.", "Use the daemon: dragoman daemon.")
    return await given()


async def listed(conn: "Caller", _: None) -> Jobs:
    return Jobs([*(await timetable(conn)).list()])


async def add(conn: "Caller", params: AddSchedule) -> Job:
    found = await timetable(conn)
    when = found.when(params.at, params.every, params.cron, params.tz)
    return await found.add(
        Job("", params.prompt, when, params.agent, params.cwd, params.name, params.session)
    )


async def remove(conn: "Caller", params: OfSchedule) -> Job:
    return await (await timetable(conn)).remove(params.id)


async def enable(conn: "Caller", params: OfSchedule) -> Job:
    found = await timetable(conn)
    job = found.get(params.id)
    return await found.change(msgspec.structs.replace(job, enabled=params.enabled))


async def runs(conn: "Caller", params: ScheduleRuns) -> Runs:
    return Runs([*await (await timetable(conn)).runs(params.id, params.limit)])


async def trigger(conn: "Caller", params: OfSchedule) -> Run:
    return await (await timetable(conn)).trigger(params.id)
