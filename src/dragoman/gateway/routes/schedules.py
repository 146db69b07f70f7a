"""Schedules: prompts that run by themselves."""

from typing import Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.schedules import Job, Run, Schedules

from .table import Call, Plain, Route


class NewSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of `at`, `every` and `cron`, as people write them."""

    prompt: str
    at: str = ""
    every: str = ""
    cron: str = ""
    tz: str = ""
    agent: str = ""
    cwd: str = ""
    name: str = ""
    session: str = ""


async def _timetable(call: Call[Any, Any]) -> Schedules:
    given = call.door.facts.schedules
    if given is None:
        raise BadInput("This host keeps no schedules.", "Use the daemon: dragoman daemon.")
    return await given()


async def schedules(call: Plain) -> list[Job]:
    return [*(await _timetable(call)).list()]


async def add(call: Call[NewSchedule, None]) -> Job:
    jobs, new = await _timetable(call), call.body
    when = jobs.when(new.at, new.every, new.cron, new.tz)
    return await jobs.add(Job("", new.prompt, when, new.agent, new.cwd, new.name, new.session))


async def remove(call: Plain) -> Job:
    return await (await _timetable(call)).remove(call.path["id"])


async def runs(call: Plain) -> list[Run]:
    return [*await (await _timetable(call)).runs(call.path["id"], 50)]


async def trigger(call: Plain) -> Run:
    return await (await _timetable(call)).trigger(call.path["id"])


ROUTES = [
    Route("GET", "/api/schedules", schedules, "Prompts that run by themselves", "schedules",
          returns=list[Job], may_fail=(400,)),
    Route("POST", "/api/schedules", add, "Have a prompt run by itself", "schedules",
          body=NewSchedule, returns=Job, status=201, may_fail=(400, 404)),
    Route("DELETE", "/api/schedules/{id}", remove, "Forget a schedule", "schedules", returns=Job,
          may_fail=(400,)),
    Route("GET", "/api/schedules/{id}/runs", runs, "The last times it ran", "schedules",
          returns=list[Run], may_fail=(400,)),
    Route("POST", "/api/schedules/{id}/run", trigger, "Run it now, and wait for its end",
          "schedules", returns=Run, may_fail=(400,)),
]  # fmt: skip
