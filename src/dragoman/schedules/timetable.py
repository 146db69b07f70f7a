"""Keeps schedules and runs them: every run is a turn of a session like any other."""

import asyncio
from collections.abc import Awaitable, Sequence
from math import inf
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import NAMESPACE_OID, uuid5

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault, GoesOn, StoreFailed, WrongState, no_agent
from dragoman.engine.host import OpenSpec
from dragoman.engine.ids import token
from dragoman.engine.ports import row_of
from dragoman.engine.ports.schedules import Job, Run, When
from dragoman.engine.traits import Trait
from dragoman.observe.log import get_log

from .times import check, interval, moment, not_later, upcoming

if TYPE_CHECKING:
    from dragoman.engine.door import Door

T = TypeVar("T")
log = get_log("schedules")
JOBS, RUNS = "schedules", "schedule_runs"
MOST_JOBS = 1_000
MOST_RUNS = 50  # that are remembered of one job
AT_ONCE = 8
LONGEST_PROMPT = 64 * 1024
_SHOWN = 5  # schedules of a name that are told
_OUTPUT = 4_000  # characters of an answer that are remembered
_LOOK = 30.0  # seconds after which the clock is looked at again: it may be set
_AGAIN_MS = 5_000  # after a run that could not be written down: the store is away
_LOOK_IN_FLEET = 1.0  # others write on the shelf, too
_HEADSTART_MS = 2_000  # of the node where a job was made
_BOOKS_MS = 60_000  # the node that began a run has told of it by then, or it died
_STATUS = {"completed": "ok", "failed": "failed", "cancelled": "cancelled"}


class Scheduled(Trait, frozen=True):
    """Kept with a session that a schedule opened."""

    NAME = "schedule"

    job: str = ""


class FleetPlace(Protocol):
    """This host in its fleet."""

    @property
    def name(self) -> str: ...

    def pins(self, cwd: str) -> bool:
        """Whether only one node sees a folder."""
        ...


class Elsewhere(Exception):
    """Another node runs it."""


class Timetable:
    """The schedules of one host (`ports.schedules.Schedules`), kept on the store's shelf.

    The nodes of a fleet have one shelf. Each run has a name, made of its job and its time, by which
    its session or its prompt is known: of several nodes that try, one begins it. The node where a
    job was made is the first to try.
    """

    def __init__(self, door: "Door", place: FleetPlace | None = None) -> None:
        self._door = door
        self._place = place  # in a fleet; None: there is no other node
        self._jobs: dict[str, Job] = {}
        self._numbers: dict[str, list[int]] = {}  # of the runs that are remembered, by job
        self._running: dict[str, asyncio.Task[Run]] = {}
        self._broken: dict[str, Run] = {}  # runs for a time whose process died, by job
        self._elsewhere: dict[str, tuple[int, int]] = {}  # runs of others: time, and since when
        self._broke: dict[str, int] = {}  # what could not even be written down, and until when
        self._changed = asyncio.Event()
        self._writes = 0  # of ours: what was read before the last one is old
        self._storing = 0  # jobs on their way to the shelf: what is read now is old as well
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
        return sorted(self._jobs.values(), key=lambda job: job.created_at)  # a tie: as they came

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
                f"{len(found)} schedules are meant by {job_id}.",
                f"Give the id of one: {', '.join(job.id for job in found[:_SHOWN])}.",
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
            raise no_agent(self._door.agents())
        made = msgspec.structs.replace(
            job, id=f"job_{token()}", agent=agent, created_at=now, node=self._node
        )
        return await self._set(await self._checked(made))

    async def change(self, job: Job) -> Job:
        """Change what is another in `job` than it is now, when this is called.

        Runs and others change it while this is checked and stored, and all of it holds.
        """
        base = self.get(job.id)
        checked = await self._checked(job)
        found = ((name, getattr(checked, name)) for name in job.__struct_fields__)
        changes = {name: value for name, value in found if value != getattr(base, name)}
        changed = msgspec.structs.replace(self.get(job.id), **changes)
        following = upcoming(changed.when, self._door.now_ms())
        return await self._set(msgspec.structs.replace(changed, next_run=following))

    async def remove(self, job_id: str) -> Job:
        job = self.get(job_id)
        del self._jobs[job.id]
        self._writes += 1
        shelf = self._door.shelf
        try:
            await shelf.put(JOBS, job.id, None)
        except Fault:  # it is still kept, and would be back after a start
            self._jobs.setdefault(job.id, job)
            self._changed.set()
            raise
        self._elsewhere.pop(job.id, None)
        for number in self._numbers.pop(job.id, ()):
            await shelf.put(RUNS, _key(job.id, number), None)
        self._changed.set()
        return job

    async def runs(self, job_id: str, limit: int) -> Sequence[Run]:
        job = self.get(job_id)
        await self._count(job.id)
        found = []
        for number in reversed(self._numbers.get(job.id, [])[-max(1, limit) :]):
            run = row_of(await self._door.shelf.get(RUNS, _key(job.id, number)), Run)
            if run is not None:
                found.append(run)
        return found

    async def trigger(self, job_id: str) -> Run:
        job = self.get(job_id)
        running = self._running.get(job.id)
        return await asyncio.shield(running if running is not None else self._begin(job))

    # --- while the host lives ---

    async def load(self) -> None:
        """Take up what was kept; a time that passed is made up for, an interval is not."""
        shelf, now = self._door.shelf, self._door.now_ms()
        for key, data in await shelf.pairs(JOBS):
            job = row_of(data, Job)
            if job is None:
                log.error("a schedule cannot be read, and is left out", job=key)
                continue
            if self._place is not None and job.node != self._node:
                self._jobs[key] = job  # others may be running it
                continue
            if job.last_status == "running":
                job = msgspec.structs.replace(job, last_status="interrupted")
            if job.next_run is not None and job.next_run <= now and not job.when.at:
                job = msgspec.structs.replace(job, next_run=upcoming(job.when, now))
            self._jobs[key] = job
        for key, data in await shelf.pairs(RUNS):
            job_id, _, number = key.partition(":")
            self._numbers.setdefault(job_id, []).append(int(number))
            run = row_of(data, Run)
            if run is None or run.finished_at is not None or run.node != self._node:
                continue  # else its process died; the turn itself is the host's affair
            once = self._jobs.get(job_id)
            if once is not None and once.when.at and self._place is None:
                # Nobody knows yet whether its turn began.
                self._broken[job_id] = run
                self._jobs[job_id] = msgspec.structs.replace(once, next_run=run.started_at)
                continue
            ended = msgspec.structs.replace(run, finished_at=now, status="interrupted")
            await shelf.put(RUNS, key, msgspec.json.encode(ended))

    async def keep(self) -> None:
        """Run what is due, until cancelled."""
        before: float = inf
        while True:
            self._changed.clear()
            if self._place is not None:
                await self._look_again()
            now = self._door.now_ms()
            if now < before:
                try:
                    await self._clock_set_back(now)
                except Fault as fault:  # tried again: what is due runs all the same
                    log.error("a schedule could not be brought near", problem=str(fault))
                    now = self._door.now_ms()
                else:
                    before = now
            else:
                before = now
            due = [job for job in self._jobs.values() if self._is_due(job, now)]
            for job in due:
                self._begin(job, job.next_run)
            coming = [
                max(job.next_run, self._broke.get(job.id, 0))
                for job in self._jobs.values()
                if job.enabled and job.next_run is not None and job.id not in self._running
            ]
            look = _LOOK if self._place is None else _LOOK_IN_FLEET
            wait = min([look, *(max(0, at - now) / 1000 for at in coming if at > now)])
            try:
                async with asyncio.timeout(wait):  # wait_for may swallow that we are cancelled
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _clock_set_back(self, now: int) -> None:
        """Bring near again what the clock of before has put far away."""
        self._broke = {id: min(until, now + _AGAIN_MS) for id, until in self._broke.items()}
        for job in tuple(self._jobs.values()):
            near = _in_reach(job, now)
            if self._jobs.get(job.id) is not job:
                continue  # it was changed or removed while another was stored
            if near is not job and (self._place is None or job.node == self._node):
                await self._set(near)

    async def _look_again(self) -> None:
        """Take in what other nodes have added, changed, removed or run."""
        writes = self._writes
        try:
            found = dict(await self._door.shelf.pairs(JOBS))
        except StoreFailed:
            return  # it is waited for elsewhere
        if self._storing or writes != self._writes:
            return
        for key in [*self._jobs]:
            if key not in found and key not in self._running:
                del self._jobs[key]
                self._numbers.pop(key, None)
                self._elsewhere.pop(key, None)
        for key, data in found.items():
            job = row_of(data, Job)
            if job is not None and key not in self._running:
                self._jobs[key] = job

    async def _count(self, job_id: str) -> None:
        """The runs that are remembered of a job, also those of other nodes."""
        if self._place is not None:
            kept = [key.partition(":") for key, _ in await self._door.shelf.pairs(RUNS)]
            self._numbers[job_id] = [int(number) for id, _, number in kept if id == job_id]

    @property
    def _node(self) -> str:
        return self._place.name if self._place is not None else ""

    def _is_due(self, job: Job, now: int) -> bool:
        at = job.next_run
        if not job.enabled or at is None or job.id in self._running:
            return False
        if self._broke.get(job.id, 0) > now:
            return False
        begun, since = self._elsewhere.get(job.id, (None, 0))
        if begun == at and 0 <= now - since < _BOOKS_MS:
            return False
        if self._place is None or job.node == self._node:
            return at <= now
        if job.node and not job.session and self._place.pins(job.cwd):
            return False  # its folder is elsewhere
        return at + _HEADSTART_MS <= now

    def _begin(self, job: Job, at: int | None = None) -> "asyncio.Task[Run]":
        task = asyncio.ensure_future(self._run(job, at))
        self._running[job.id] = task

        def over(task: "asyncio.Task[Run]") -> None:
            self._running.pop(job.id, None)
            self._broke.pop(job.id, None)
            self._changed.set()
            if not task.cancelled() and (problem := task.exception()) is not None:
                self._broke[job.id] = self._door.now_ms() + _AGAIN_MS
                log.error("a schedule could not be run", job=job.id, problem=str(problem))

        task.add_done_callback(over)
        return task

    async def _run(self, job: Job, at: int | None) -> Run:
        """Run it once; `at` is the time that it is due for, None: somebody wants it now."""
        async with self._places:
            started = self._door.now_ms()
            await self._count(job.id)
            numbers = self._numbers.setdefault(job.id, [])
            number = (numbers[-1] if numbers else 0) + 1
            run = self._broken.pop(job.id, None) or Run(
                number, job.id, job.session, started, node=self._node
            )
            if self._place is None:
                await self._note(job, run)
            try:
                run = await self._turn(job, run, at)
            except Elsewhere:
                return await self._left(job, run, at)
            except (GoesOn, WrongState) as fault:  # it waits in its session, or was taken before
                run = msgspec.structs.replace(run, status="interrupted", output=fault.message)
            except Fault as fault:
                if self._door.stopping:
                    return run  # it did not begin: the next start finds it so
                run = msgspec.structs.replace(run, status="failed", output=str(fault)[:_OUTPUT])
            run = msgspec.structs.replace(run, finished_at=self._door.now_ms())
            await self._note(job, run)
            log.info("a schedule ran", job=job.id, status=run.status, session=run.session)
            return run

    async def _left(self, job: Job, run: Run, at: int | None) -> Run:
        """Another node was quicker: it keeps the books, unless it died before it could."""
        known = self._jobs.get(job.id)
        if known is not None and at is not None and known.next_run == at:
            if self._elsewhere.get(job.id, (None, 0))[0] == at:
                await self._set(
                    msgspec.structs.replace(known, next_run=upcoming(known.when, run.started_at))
                )
            else:
                self._elsewhere[job.id] = (at, run.started_at)
        return msgspec.structs.replace(run, status="elsewhere", finished_at=run.started_at)

    async def _turn(self, job: Job, run: Run, at: int | None) -> Run:
        who = Who("schedule", name=job.name or job.id, id=f"schedule-{job.id}")
        session = run.session
        # A run is one turn, however often it is begun, and in a fleet on whichever node.
        key = _key(job.id, run.number)
        if self._place is not None:
            key = f"{job.id}:{at}" if at is not None else ""
        if not session:
            title = (job.name or job.prompt.split("\n", 1)[0])[:80]
            spec = OpenSpec(
                agent=job.agent, cwd=job.cwd, title=title, traits=(Scheduled(job.id),),
                id=str(uuid5(NAMESPACE_OID, key)) if key and self._place is not None else "",
            )  # fmt: skip
            session = await self._once(key, self._opened(spec, who))
        run = msgspec.structs.replace(run, session=session)
        said = (Text(job.prompt),)
        if self._place is None or not job.session:
            await self._note(job, run)
            work = await self._door.prompt(session, said, who, key=key, keep=True)
        else:
            prompting = self._door.prompt(session, said, who, key=key, keep=True)
            work = await self._once(key, prompting)
            await self._once(key, asyncio.shield(work.started))  # its owner may know it already
            await self._note(job, run)
        done = await asyncio.shield(work.done)
        text = done.text if done.outcome == "completed" else done.error or done.cause
        return msgspec.structs.replace(
            run, status=_STATUS.get(done.outcome, done.outcome), output=text[:_OUTPUT]
        )

    async def _opened(self, spec: OpenSpec, who: Who) -> str:
        return (await self._door.open(spec, who)).id

    async def _once(self, key: str, work: Awaitable[T]) -> T:
        """What only one node can do under this name. Raises Elsewhere on all others."""
        try:
            return await work
        except WrongState:
            if key:
                raise Elsewhere from None
            raise

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
            self._writes += 1
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
        cwd = self._door.folder(job.cwd) if job.cwd else ""
        return msgspec.structs.replace(job, cwd=cwd, name=job.name[:200], next_run=following)

    async def _set(self, job: Job) -> Job:
        """Use it at once, so that what is stored next is made from it, and store it."""
        former = self._jobs.get(job.id)
        self._jobs[job.id] = job
        self._storing += 1
        try:
            await self._door.shelf.put(JOBS, job.id, msgspec.json.encode(job))
        except Fault:
            if self._jobs.get(job.id) is job:
                self._jobs.pop(job.id)
                if former is not None:
                    self._jobs[job.id] = former
            raise
        finally:
            self._storing -= 1
            self._writes += 1
        self._changed.set()
        return job


def _in_reach(job: Job, now: int) -> Job:
    """With a next time that its schedule has from now on; the same job where that is so."""
    if job.next_run is None:
        return job
    near = not_later(job.when, job.next_run, now, made=max(job.created_at, job.last_run or 0))
    return job if near == job.next_run else msgspec.structs.replace(job, next_run=near)


def _key(job: str, number: int) -> str:
    return f"{job}:{number:09d}"
