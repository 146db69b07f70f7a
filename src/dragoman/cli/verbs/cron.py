"""`dragoman cron`: prompts that run by themselves."""

import os

from dragoman.engine.faults import BadInput

from .. import reach, say
from ..parse import Args, Usage
from ..times import ago, interval, stamp


def run(args: Args) -> int:
    """Add, list, remove, run now, or tell of runs."""
    return {
        "add": _add,
        "remove": _remove,
        "trigger": _trigger,
        "runs": _runs,
        "pause": _switch,
        "resume": _switch,
    }.get(args.sub, _list)(args)


def _add(args: Args) -> int:
    from dragoman.engine.opening import directory

    if sum(bool(one) for one in (args.at, args.every, args.cron)) != 1:
        raise Usage("cron add needs exactly one of: --at, --every, --cron", args.command)
    prompt = " ".join(args.prompt)
    given = {name: getattr(args, name) or "" for name in ("at", "every", "cron", "tz", "name")}
    params = {
        **given,
        "prompt": prompt,
        "agent": args.agent or "",
        "session": args.session or "",
        "cwd": directory(os.path.abspath(os.path.expanduser(args.cwd or "."))),
    }
    job = reach.of_daemon(args, "addSchedule", **params)
    return say.result(args, job, f"{job['id']}  {_next(job)}")


def _list(args: Args) -> int:
    jobs = reach.of_daemon(args, "schedules")["schedules"]
    if say.as_json(args, {"schedules": jobs}):
        return 0
    if not jobs:
        say.out(say.style("no schedules", "dim"))
    for job in jobs:
        name = job["name"] or job["prompt"].split("\n", 1)[0]
        about = f"{say.clean(job['agent'])}  {_when(job['when'])}  {_next(job)}"
        say.row(f"{job['id']}  ", about)
        last = f"  (last: {job['last_status']}, {ago(job['last_run'])})" if job["last_run"] else ""
        say.row("  ", f"{say.clean(name)}{last}")
    return 0


def _remove(args: Args) -> int:
    job = reach.of_daemon(args, "removeSchedule", id=args.id)
    return say.result(args, job, f"removed: {job['id']}")


def _switch(args: Args) -> int:
    job = reach.of_daemon(args, "enableSchedule", id=args.id, enabled=args.sub == "resume")
    return say.result(args, job, f"{args.sub}d: {job['id']}  {_next(job)}")


def _trigger(args: Args) -> int:
    ran = reach.of_daemon(args, "triggerSchedule", id=args.id)
    say.result(args, ran, say.clean(ran["output"]) or ran["status"])
    return 0 if ran["status"] == "ok" else 1


def _runs(args: Args) -> int:
    limit = args.limit if args.limit is not None else 20
    if limit < 1:
        raise BadInput("The limit is at least 1.")
    runs = reach.of_daemon(args, "scheduleRuns", id=args.id, limit=limit)["runs"]
    if say.as_json(args, {"runs": runs}):
        return 0
    if not runs:
        say.out(say.style("it has not run yet", "dim"))
    for one in runs:
        say.out(f"{one['number']}  {ago(one['started_at'])}  {one['status']}  {one['session']}")
    return 0


def _when(when: reach.Row) -> str:
    if when.get("cron"):
        return str(when["cron"]) + (f" ({when['tz']})" if when.get("tz") else "")
    if when.get("every_ms"):
        return f"every {interval(when['every_ms'])}"
    return "once"


def _next(job: reach.Row) -> str:
    if not job["enabled"]:
        return "paused"
    if job["next_run"] is None:
        return "over"
    return f"next: {stamp(job['next_run'])}"
