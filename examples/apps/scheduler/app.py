"""Prompts at set times.

    dragoman apps add examples/apps/scheduler

Jobs stand in config.toml; the session of a job is found again by its key:

    [apps.scheduler]
    jobs = [
      { key = "daily:news", at = "08:30", text = "Summarise what changed in the repository." },
      { key = "watch:disk", every = 600, text = "Is any disk fuller than 90 %? Answer in a line." },
    ]

An agent can set one itself, once, with the tool `remind`. `scheduler.list` is a gateway method that
says what is to come.
"""

import asyncio
import datetime
from typing import Any

from dragoman.apps import App, Invocation

app = App("@examples/scheduler", name="Scheduler", description="Prompts at set times")
MOST = 200
LONGEST = 30 * 24 * 3600.0
waiting: dict[int, dict[str, Any]] = {}
changed = asyncio.Event()
_count = 0


def until(at: str, now: datetime.datetime) -> float:
    """Seconds to the next time of day `HH:MM`. Raises ValueError."""
    hour, _, minute = at.partition(":")
    then = now.replace(hour=int(hour), minute=int(minute or 0), second=0, microsecond=0)
    if then <= now:
        then += datetime.timedelta(days=1)
    return (then - now).total_seconds()


def delay_of(job: dict[str, Any], now: datetime.datetime) -> float:
    """Seconds until a job is due. Raises ValueError."""
    if "every" in job:
        every = float(job["every"])
        if not 1 <= every <= LONGEST:
            raise ValueError(f"every must be from 1 to {LONGEST:.0f} seconds")
        return every
    if "at" in job:
        return until(str(job["at"]), now)
    raise ValueError("a job has `every` or `at`")


def put(job: dict[str, Any], delay: float, *, once: bool) -> int:
    """Add what is to come; returns its number."""
    global _count
    if len(waiting) >= MOST:
        raise ValueError(f"{MOST} jobs wait already")
    _count += 1
    due = asyncio.get_running_loop().time() + delay
    waiting[_count] = {"job": job, "due": due, "once": once}
    changed.set()
    return _count


@app.tool(kind="other")
async def remind(text: str, seconds: float, call: Invocation) -> str:
    """Give yourself this prompt after so many seconds, in this session."""
    if not text.strip() or not 1 <= seconds <= LONGEST:
        return f"text must not be empty, and seconds from 1 to {LONGEST:.0f}"
    put({"key": call.session, "text": text}, seconds, once=True)
    return f"in {seconds:g} s"


@app.method("scheduler.list")
async def listed(params: Any) -> list[dict[str, Any]]:
    now = asyncio.get_running_loop().time()
    rows = sorted(waiting.values(), key=lambda one: one["due"])
    return [{**one["job"], "in": round(one["due"] - now, 1)} for one in rows]


async def load() -> None:
    """The jobs of the configuration, in place of those that came from it before."""
    for number in [number for number, one in waiting.items() if not one["once"]]:
        del waiting[number]
    settings = await app.config("apps.scheduler") or {}
    for job in settings.get("jobs") or []:
        try:
            put(job, delay_of(job, datetime.datetime.now()), once=False)
        except (ValueError, TypeError) as problem:
            print(f"a job is left out: {problem}: {job}", flush=True)
    print(f"{len(waiting)} jobs wait", flush=True)


@app.watch("apps.scheduler")
async def reload(path: str, old: Any, new: Any) -> None:
    await load()


@app.background
async def keep_time() -> None:
    loop = asyncio.get_running_loop()
    await load()
    while True:
        changed.clear()
        number = min(waiting, key=lambda one: waiting[one]["due"], default=None)
        left = waiting[number]["due"] - loop.time() if number is not None else None
        if left is None or left > 0:
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                pass  # it is due now
            continue
        due = waiting.pop(number)
        job = due["job"]
        await app.queue(str(job.get("key") or "scheduler"), str(job.get("text") or ""))
        print(f"began {job.get('key')}", flush=True)
        if not due["once"]:
            put(job, delay_of(job, datetime.datetime.now()), once=False)


if __name__ == "__main__":
    app.run()
