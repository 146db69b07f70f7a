"""Prompts at a time or an interval: what is kept of them, and what can be done with them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class When(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of three: at a moment, every so often, or as a cron expression says."""

    at: int = 0  # milliseconds since the epoch
    every_ms: int = 0
    cron: str = ""
    tz: str = ""  # of a cron expression; empty: the host's


class Job(msgspec.Struct, frozen=True):
    """A prompt that is given to an agent when its time has come."""

    id: str
    prompt: str
    when: When
    agent: str
    cwd: str = ""
    name: str = ""
    session: str = ""  # go on with this one; empty: a new session each time
    enabled: bool = True
    created_at: int = 0
    next_run: int | None = None  # None: it has no time any more
    last_run: int | None = None
    last_status: str = ""  # running, ok, failed, cancelled, interrupted
    last_output: str = ""
    node: str = ""  # of a fleet, where it was made: its folder may be there alone


class NewJob(msgspec.Struct, frozen=True):
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


class Run(msgspec.Struct, frozen=True):
    """One time that a job ran."""

    number: int
    job: str
    session: str
    started_at: int
    finished_at: int | None = None
    status: str = "running"
    output: str = ""
    node: str = ""  # that ran it


class Schedules(Protocol):
    """The schedules of a host that lives long enough to keep them."""

    def when(self, at: str, every: str, cron: str, tz: str) -> When:
        """A time as people write it: `12:30` or `in 2h`, `15m`, a cron expression with its zone.

        Raises BadInput.
        """
        ...

    def list(self) -> Sequence[Job]:
        """All jobs, oldest first."""
        ...

    def get(self, job_id: str) -> Job:
        """Raises BadInput when there is none of this id, or several that begin so."""
        ...

    async def add(self, job: Job) -> Job:
        """Keep a job; its id, times and agent are filled in. Raises BadInput, UnknownAgent."""
        ...

    async def change(self, job: Job) -> Job:
        """Keep a job that is there already as it is given here."""
        ...

    async def remove(self, job_id: str) -> Job: ...

    async def runs(self, job_id: str, limit: int) -> Sequence[Run]:
        """The last times that it ran, newest first."""
        ...

    async def trigger(self, job_id: str) -> Run:
        """Run it now, whatever its times, and wait for its end."""
        ...


async def add_job(jobs: Schedules, new: NewJob) -> Job:
    """Keep a job as somebody wrote it down. Raises BadInput, UnknownAgent."""
    when = jobs.when(new.at, new.every, new.cron, new.tz)
    return await jobs.add(Job("", new.prompt, when, new.agent, new.cwd, new.name, new.session))
