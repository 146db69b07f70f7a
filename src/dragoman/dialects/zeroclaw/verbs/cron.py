"""`cron/*`: the host's schedules as this protocol spells them."""

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.schedules import Job, Run, When

from ..shapes import Params
from ..spelling import rfc3339, verb

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

_LIMIT = 20


class OfJob(Params, frozen=True):
    id: str
    limit: int | None = None


class Add(Params, frozen=True):
    """`schedule` is a cron expression, or one of the tables that jobs are told with."""

    agent: str | None = None
    schedule: Any = None
    tz: str | None = None
    command: str | None = None
    prompt: str | None = None
    name: str | None = None
    cwd: str | None = None
    session_id: str | None = None


class Patch(Params, frozen=True):
    id: str
    agent: str | None = None
    name: str | None = None
    schedule: Any = None
    tz: str | None = None
    clear_tz: bool | None = None
    command: str | None = None
    prompt: str | None = None
    enabled: bool | None = None


async def listed(conn: "ZeroclawHearer", _: None) -> Any:
    return {"jobs": [_job(job) for job in (await conn.door.facts.timetable()).list()]}


async def get(conn: "ZeroclawHearer", params: OfJob) -> Any:
    return _job((await conn.door.facts.timetable()).get(params.id))


async def add(conn: "ZeroclawHearer", params: Add) -> dict[str, Any]:
    jobs = await conn.door.facts.timetable()
    if params.command:
        raise BadInput("Invalid params: `command`: only prompts are scheduled.", "Use `prompt`.")
    made = Job(
        "",
        params.prompt or "",
        _when(params.schedule, params.tz),
        params.agent or "",
        params.cwd or "",
        params.name or "",
        params.session_id or "",
    )
    return _job(await jobs.add(made))


async def patch(conn: "ZeroclawHearer", params: Patch) -> dict[str, Any]:
    jobs = await conn.door.facts.timetable()
    job = jobs.get(params.id)
    if params.command:
        raise BadInput("Invalid params: `command`: only prompts are scheduled.", "Use `prompt`.")
    when = job.when
    if params.schedule is not None:
        when = _when(params.schedule, params.tz or when.tz)
    if params.tz or params.clear_tz:
        when = msgspec.structs.replace(when, tz="" if params.clear_tz else params.tz)
    given = {"agent": params.agent, "name": params.name, "prompt": params.prompt}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if params.enabled is not None:
        changes["enabled"] = params.enabled
    return _job(await jobs.change(msgspec.structs.replace(job, when=when, **changes)))


async def remove(conn: "ZeroclawHearer", params: OfJob) -> dict[str, Any]:
    gone = await (await conn.door.facts.timetable()).remove(params.id)
    return {"id": gone.id, "deleted": True}


async def runs(conn: "ZeroclawHearer", params: OfJob) -> dict[str, Any]:
    limit = _LIMIT if params.limit is None else max(1, params.limit)
    return {
        "runs": [
            _run(run) for run in await (await conn.door.facts.timetable()).runs(params.id, limit)
        ]
    }


async def trigger(conn: "ZeroclawHearer", params: OfJob) -> dict[str, Any]:
    run = await (await conn.door.facts.timetable()).trigger(params.id)
    told = _run(run)
    times = {name: told[name] for name in ("duration_ms", "started_at", "finished_at")}
    success = run.status == "ok"
    return {"id": run.job, "success": success, "status": run.status, "output": run.output, **times}


async def settings(conn: "ZeroclawHearer", _: None) -> Any:
    return {"enabled": True, "count": len((await conn.door.facts.timetable()).list())}


def _when(schedule: object, tz: str | None) -> When:
    if isinstance(schedule, str):
        return When(cron=schedule.strip(), tz=tz or "")
    if isinstance(schedule, dict):
        kind = schedule.get("kind")
        if kind == "cron" and isinstance(schedule.get("expr"), str):
            return When(cron=schedule["expr"], tz=tz or schedule.get("tz") or "")
        every = schedule.get("every_ms", schedule.get("everyMs"))
        if kind == "every" and isinstance(every, int):
            return When(every_ms=every)
        if kind == "at" and isinstance(schedule.get("at"), str):
            from .agents import moment

            return When(at=moment(schedule["at"], 0))
    raise BadInput(
        "Invalid params: `schedule` is a cron expression, or a table of kind cron, at or every."
    )


def _schedule(when: When) -> dict[str, Any]:
    if when.cron:
        return {"kind": "cron", "expr": when.cron, "tz": when.tz or None}
    if when.at:
        return {"kind": "at", "at": rfc3339(when.at)}
    return {"kind": "every", "every_ms": when.every_ms}


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "schedule": _schedule(job.when),
        "command": "",
        "prompt": job.prompt,
        "name": job.name or None,
        "job_type": "agent",
        "agent_alias": job.agent,
        "enabled": job.enabled,
        "created_at": rfc3339(job.created_at),
        # One whose time is over has none; clients need a text here.
        "next_run": rfc3339(job.next_run if job.next_run is not None else job.when.at),
        "last_run": None if job.last_run is None else rfc3339(job.last_run),
        "last_status": job.last_status or None,
        "last_output": job.last_output or None,
        "session_id": job.session or None,
    }


def _run(run: Run) -> dict[str, Any]:
    ended = run.started_at if run.finished_at is None else run.finished_at
    return {
        "id": run.number,
        "job_id": run.job,
        "started_at": rfc3339(run.started_at),
        "finished_at": rfc3339(ended),
        "status": run.status,
        "output": run.output or None,
        "duration_ms": None if run.finished_at is None else max(ended - run.started_at, 0),
        "session_id": run.session or None,
    }


VERBS = {
    "cron/list": verb(listed),
    "cron/get": verb(get, OfJob),
    "cron/add": verb(add, Add),
    "cron/patch": verb(patch, Patch),
    "cron/delete": verb(remove, OfJob),
    "cron/runs": verb(runs, OfJob),
    "cron/trigger": verb(trigger, OfJob),
    "cron/settings": verb(settings),
}
