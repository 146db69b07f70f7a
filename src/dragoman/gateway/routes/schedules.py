"""Schedules: prompts that run by themselves."""

from dragoman.engine.ports.schedules import Job, NewJob, Run, add_job

from .table import Call, Plain, Route


class NewSchedule(NewJob, frozen=True, forbid_unknown_fields=True):
    """One of `at`, `every` and `cron`, as people write them."""


async def schedules(call: Plain) -> list[Job]:
    return [*(await call.door.facts.timetable()).list()]


async def add(call: Call[NewSchedule, None]) -> Job:
    return await add_job(await call.door.facts.timetable(), call.body)


async def remove(call: Plain) -> Job:
    return await (await call.door.facts.timetable()).remove(call.path["id"])


async def runs(call: Plain) -> list[Run]:
    return [*await (await call.door.facts.timetable()).runs(call.path["id"], 50)]


async def trigger(call: Plain) -> Run:
    return await (await call.door.facts.timetable()).trigger(call.path["id"])


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
