"""Keeps schedules and runs them: every run is a turn of a session like any other."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault
from dragoman.engine.host import OpenSpec
from dragoman.engine.ids import token
from dragoman.engine.ports.schedules import Job, Run, When
from dragoman.engine.traits import Trait
from dragoman.observe.log import get_log

from .times import check, interval, moment, upcoming

if TYPE_CHECKING:
    from dragoman.engine.door import Door

log = get_log("schedules")
JOBS, RUNS = "schedules", "schedule_runs"
MOST_JOBS = 1_000
MOST_RUNS = 50  # that are remembered of one job
AT_ONCE = 8
LONGEST_PROMPT = 64 * 1024
_OUTPUT = 4_000  # characters of an answer that are remembered
_LOOK = 30.0  # seconds after which the clock is looked at again: it may be set
_STATUS = {"completed": "ok", "failed": "failed", "cancelled": "cancelled"}


class Scheduled(Trait, frozen=True):
    """Kept with a session that a schedule opened."""

    NAME = "schedule"

    job: str = ""


class Timetable:
    """The schedules of one host (`ports.schedules.Schedules`), kept on the store's shelf."""

    def __init__(self, door: "Door") -> None:
        self._door = door
        self._jobs: dict[str, Job] = {}
        self._numbers: dict[str, list[int]] = {}  # of the runs that are remembered, by job
        self._running: dict[str, asyncio.Task[Run]] = {}
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(AT_ONCE)

    # --- ports.schedules.Schedules ---

    def when(self, at: str, every: str, cron: str, tz: str) -> When:
        return check(
            When(
                at=moment(at, self._door.now_ms()) if at.strip() else 0,
                every_ms=interval(every) if every.strip() else 0,
                cron=cron.strip(),
                tz=tz.strip(),
            )
        )

    def list(self) -> Sequence[Job]:
        return sorted(self._jobs.values(), key=lambda job: (job.created_at, job.id))

    def get(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is not None:
            return job
        found = [
            job for job in self.list() if job_id and job_id in (job.name, job.id[: len(job_id)])
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise BadInput(
                f"{len(found)} schedules are meant by {job_id}.", "Write more of the id."
            )
        raise BadInput(f"There is no schedule {job_id}.", "See: dragoman cron list.")

    async def add(self, job: Job) -> Job:
        if len(self._jobs) >= MOST_JOBS:
            raise BadInput(f"There are {MOST_JOBS} schedules already.", "Remove one first.")
        now = self._door.now_ms()
        agent = job.agent or self._door.default_agent() or ""
        if job.session and not job.agent:
            agent = (await self._door.info(job.session)).agent
        if not agent:
            raise BadInput("Several agents are configured and none was named.", "Name one.")
        made = msgspec.structs.replace(job, id=f"job_{token()}", agent=agent, created_at=now)
        return await self._set(await self._checked(made))

    async def change(self, job: Job) -> Job:
        self.get(job.id)
        return await self._set(await self._checked(job))

    async def remove(self, job_id: str) -> Job:
        job = self.get(job_id)
        del self._jobs[job.id]
        shelf = self._door.shelf
        await shelf.put(JOBS, job.id, None)
        for number in self._numbers.pop(job.id, ()):
            await shelf.put(RUNS, _key(job.id, number), None)
        self._changed.set()
        return job

    async def runs(self, job_id: str, limit: int) -> Sequence[Run]:
        job = self.get(job_id)
        found = []
        for number in reversed(self._numbers.get(job.id, [])[-max(1, limit) :]):
            data = await self._door.shelf.get(RUNS, _key(job.id, number))
            if data is not None:
                found.append(msgspec.json.decode(data, type=Run))
        return found

    async def trigger(self, job_id: str) -> Run:
        job = self.get(job_id)
        running = self._running.get(job.id)
        return await asyncio.shield(running if running is not None else self._begin(job))

    # --- while the host lives ---

    async def load(self) -> None:
        """Take up what was kept; a time that passed is made up for, an interval is not."""
        shelf, now = self._door.shelf, self._door.now_ms()
        for key, data in await shelf.pairs(RUNS):
            job_id, _, number = key.partition(":")
            self._numbers.setdefault(job_id, []).append(int(number))
            run = msgspec.json.decode(data, type=Run)
            if run.finished_at is None:  # its process died; the turn itself is the host's affair
                ended = msgspec.structs.replace(run, finished_at=now, status="interrupted")
                await shelf.put(RUNS, key, msgspec.json.encode(ended))
        for key, data in await shelf.pairs(JOBS):
            job = msgspec.json.decode(data, type=Job)
            if job.last_status == "running":
                job = msgspec.structs.replace(job, last_status="interrupted")
            if job.next_run is not None and job.next_run <= now and not job.when.at:
                job = msgspec.structs.replace(job, next_run=upcoming(job.when, now))
            self._jobs[key] = job

    async def keep(self) -> None:
        """Run what is due, until cancelled."""
        while True:
            self._changed.clear()
            now = self._door.now_ms()
            due = [job for job in self._jobs.values() if self._is_due(job, now)]
            for job in due:
                self._begin(job)
            coming = [
                job.next_run
                for job in self._jobs.values()
                if job.enabled and job.next_run is not None and job.id not in self._running
            ]
            wait = min([_LOOK, *(max(0, at - now) / 1000 for at in coming)])
            try:
                await asyncio.wait_for(self._changed.wait(), wait)
            except TimeoutError:
                continue

    def _is_due(self, job: Job, now: int) -> bool:
        at = job.next_run
        return job.enabled and at is not None and at <= now and job.id not in self._running

    def _begin(self, job: Job) -> "asyncio.Task[Run]":
        task = asyncio.ensure_future(self._run(job))
        self._running[job.id] = task

        def over(task: "asyncio.Task[Run]") -> None:
            self._running.pop(job.id, None)
            self._changed.set()
            if not task.cancelled() and (problem := task.exception()) is not None:
                log.error("a schedule could not be run", job=job.id, problem=str(problem))

        task.add_done_callback(over)
        return task

    async def _run(self, job: Job) -> Run:
        async with self._places:
            started = self._door.now_ms()
            numbers = self._numbers.setdefault(job.id, [])
            run = Run((numbers[-1] if numbers else 0) + 1, job.id, job.session, started)
            await self._note(job, run)
            try:
                run = await self._turn(job, run)
            except Fault as fault:
                run = msgspec.structs.replace(run, status="failed", output=str(fault)[:_OUTPUT])
            run = msgspec.structs.replace(run, finished_at=self._door.now_ms())
            await self._note(job, run)
            log.info("a schedule ran", job=job.id, status=run.status, session=run.session)
            return run

    async def _turn(self, job: Job, run: Run) -> Run:
        who = Who("schedule", name=job.name or job.id, id=f"schedule-{job.id}")
        session = job.session
        if not session:
            title = (job.name or job.prompt.split("\n", 1)[0])[:80]
            spec = OpenSpec(agent=job.agent, cwd=job.cwd, title=title, traits=(Scheduled(job.id),))
            session = (await self._door.open(spec, who)).id
        run = msgspec.structs.replace(run, session=session)
        await self._note(job, run)
        work = await self._door.prompt(session, (Text(job.prompt),), who)
        done = await asyncio.shield(work.done)
        text = done.text if done.outcome == "completed" else done.error or done.cause
        return msgspec.structs.replace(
            run, status=_STATUS.get(done.outcome, done.outcome), output=text[:_OUTPUT]
        )

    async def _note(self, job: Job, run: Run) -> None:
        """Keep how far a run got, with it and with its job."""
        shelf, numbers = self._door.shelf, self._numbers.setdefault(job.id, [])
        known = self._jobs.get(job.id)
        if known is None:  # it was removed while it ran
            return
        if run.number not in numbers:
            numbers.append(run.number)
        await shelf.put(RUNS, _key(job.id, run.number), msgspec.json.encode(run))
        while len(numbers) > MOST_RUNS:
            await shelf.put(RUNS, _key(job.id, numbers.pop(0)), None)
        changes = {"last_run": run.started_at, "last_status": run.status}
        at = known.next_run
        if at is not None and at <= run.started_at:
            changes["next_run"] = upcoming(known.when, run.started_at)
        if run.finished_at is not None:
            changes["last_output"] = run.output
        if job.id in self._jobs:
            changed = self._jobs[job.id] = msgspec.structs.replace(self._jobs[job.id], **changes)
            await shelf.put(JOBS, job.id, msgspec.json.encode(changed))

    async def _checked(self, job: Job) -> Job:
        """With its next time. Raises BadInput, UnknownAgent, UnknownSession."""
        if not job.prompt.strip():
            raise BadInput("The prompt is empty.", "Write what is to be done.")
        if len(job.prompt.encode()) > LONGEST_PROMPT:
            raise BadInput(f"The prompt has more than {LONGEST_PROMPT} bytes.")
        check(job.when)
        self._door.profile(job.agent)
        if job.session:
            await self._door.info(job.session)
        now = self._door.now_ms()
        following = upcoming(job.when, now)
        if following is None:
            raise BadInput("This time is over.", "Give one that is to come.")
        return msgspec.structs.replace(job, name=job.name[:200], next_run=following)

    async def _set(self, job: Job) -> Job:
        await self._door.shelf.put(JOBS, job.id, msgspec.json.encode(job))
        self._jobs[job.id] = job
        self._changed.set()
        return job


def _key(job: str, number: int) -> str:
    return f"{job}:{number:09d}"
