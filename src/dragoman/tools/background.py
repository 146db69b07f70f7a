"""Commands that go on while the agent works: started by bash, looked at, ended with the session."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from dragoman.engine.content import Detail, Text
from dragoman.engine.faults import BadInput, TooMany
from dragoman.engine.ports import Outcome, ToolEnv
from dragoman.engine.visible import many
from dragoman.holding import Holder

from . import told
from .args import brief, decode
from .output import Capture, without_half

MOST = 8  # that run at once in one session
_KEPT = 16  # that have ended and can still be looked at
_LONGEST_WAIT = 60.0


class BackgroundCommand(Holder):
    """One command in the background."""

    id: str
    command: str
    capture: Capture
    began: float = msgspec.field(default_factory=time.monotonic)
    shown: int = 0  # bytes of the output that were looked at already
    _half: bytes = b""  # of a character at their end
    task: asyncio.Task[None] | None = None
    code: int | None = None
    notes: list[str] = []

    @property
    def runs(self) -> bool:
        return self.task is not None and not self.task.done()

    @property
    def state(self) -> str:
        took = f"{time.monotonic() - self.began:.0f} s"
        if self.runs:
            return f"running for {took}"
        return self.end

    @property
    def end(self) -> str:
        return "ended" if self.code is None else f"ended with exit code {self.code}"

    def line(self) -> str:
        return f"{self.id}: {self.state}: {brief(self.command, 100)}"

    def news(self) -> str:
        """The output since it was last looked at, its end when that is much."""
        capture = self.capture
        fresh = capture.total - self.shown
        self.shown = capture.total
        kept = bytes(capture.tail[-min(fresh, capture.limit) :]) if fresh else b""
        left = fresh - len(kept)
        if not left:
            kept = self._half + kept
        # The rest of a character comes with what is printed next.
        whole = without_half(kept) if self.runs else kept
        self._half, kept = kept[len(whole) :], whole
        said = kept.decode("utf-8", "replace")
        return f"... [{many(left, 'byte')} left out]\n{said}" if left else said


class JobBook(Protocol):
    """Where commands are written down, so that they are not forgotten with this process."""

    def began(self, session: str, command: str) -> str:
        """The id of a command that begins."""
        ...

    def ended(self, session: str, id: str, how: str) -> None: ...

    def left(self, session: str) -> None: ...

    def lost(self, session: str) -> Mapping[str, str]:
        """A line about each command that another process had, by id."""
        ...


class _Unwritten(Holder):
    """A book that forgets."""

    _count: int = 0

    def began(self, session: str, command: str) -> str:
        self._count += 1
        return f"bg{self._count}"

    def ended(self, session: str, id: str, how: str) -> None:
        return None

    def left(self, session: str) -> None:
        return None

    def lost(self, session: str) -> Mapping[str, str]:
        return {}


class Jobs:
    """The background commands of all sessions of one agent."""

    def __init__(self, book: JobBook | None = None) -> None:
        self._of: dict[str, dict[str, BackgroundCommand]] = {}
        self._book: JobBook = book or _Unwritten()

    def all(self, session: str) -> list[BackgroundCommand]:
        return list(self._of.get(session, {}).values())

    def lost(self, session: str) -> list[str]:
        """A line about each command that ran elsewhere, or before a restart."""
        return list(self._book.lost(session).values())

    def find(self, session: str, id: str) -> BackgroundCommand | str:
        """A command; a line about one that is gone. Raises BadInput."""
        found = self._of.get(session, {}).get(id) or self._book.lost(session).get(id)
        if found is None:
            known = ", ".join([*self._of.get(session, {}), *self._book.lost(session)]) or "none"
            raise BadInput(f"There is no background command {id!r}.", f"There are: {known}.")
        return found

    def start(
        self,
        session: str,
        command: str,
        capture: Capture,
        run: Callable[[BackgroundCommand], Awaitable[None]],
    ) -> BackgroundCommand:
        """Run a command beside. Raises TooMany."""
        jobs = self._of.setdefault(session, {})
        if sum(job.runs for job in jobs.values()) >= MOST:
            raise TooMany(
                f"{MOST} commands run in the background already.", "End one with bash_kill."
            )
        for old in [job.id for job in jobs.values() if not job.runs][: -_KEPT or None]:
            del jobs[old]
        id = self._book.began(session, command)
        job = jobs[id] = BackgroundCommand(id, command, capture)
        job.task = asyncio.ensure_future(self._watch(session, job, run))
        return job

    async def _watch(
        self,
        session: str,
        job: BackgroundCommand,
        run: Callable[[BackgroundCommand], Awaitable[None]],
    ) -> None:
        try:
            await run(job)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            job.notes.append(f"[it broke: {error}]")
        finally:
            if session in self._of:  # else nobody is there to be told
                self._book.ended(session, job.id, job.end)

    async def kill(self, job: BackgroundCommand) -> None:
        """End a command and all it started."""
        if job.task is not None:
            job.task.cancel()
            await asyncio.wait({job.task})

    async def end(self, session: str) -> None:
        """The session ends: so does all that it left running."""
        jobs = self._of.pop(session, {})
        self._book.left(session)
        for job in jobs.values():
            if job.task is not None:
                job.task.cancel()
        tasks = {job.task for job in jobs.values() if job.task is not None}
        if tasks:
            await asyncio.wait(tasks)


class OutputArgs(msgspec.Struct):
    id: str = ""
    wait: float = 0.0


class BashOutput(Holder):
    """What a background command has printed since it was last looked at."""

    spec = told.BASH_OUTPUT

    _jobs: Jobs

    def summary(self, args: dict[str, Any]) -> str:
        return f"Output of {brief(args.get('id') or 'all background commands')}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(OutputArgs, args, {"bash_id": "id", "shell_id": "id"})
        if not asked.id:
            lines = [job.line() for job in self._jobs.all(env.session)]
            lines = [*self._jobs.lost(env.session), *lines]
            return Outcome((Text("\n".join(lines) or "Nothing runs in the background."),))
        job = self._jobs.find(env.session, asked.id)
        if isinstance(job, str):
            return Outcome((Text(f"[{job}]"),))
        if asked.wait > 0 and job.runs and job.capture.total == job.shown:
            await _news(job, min(asked.wait, _LONGEST_WAIT))
        said = [job.news(), *job.notes, f"[{job.line()}]"]
        return Outcome((Text("\n".join(part for part in said if part)),))


async def _news(job: BackgroundCommand, seconds: float) -> None:
    """Wait until there is output or the command has ended."""
    loop = asyncio.get_running_loop()
    seen = loop.create_future()

    def tell() -> None:
        if not seen.done():
            seen.set_result(None)

    job.capture.told = tell
    try:
        waited: set[asyncio.Future[Any]] = {seen}
        if job.task is not None:
            waited.add(job.task)
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        job.capture.told = None
        seen.cancel()


class KillArgs(msgspec.Struct):
    id: str


class BashKill(Holder):
    """Ends a background command."""

    spec = told.BASH_KILL

    _jobs: Jobs

    def summary(self, args: dict[str, Any]) -> str:
        return f"End the background command {brief(args.get('id', '?'))}"

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        job = self._jobs.find(env.session, decode(KillArgs, args, {"bash_id": "id"}).id)
        if isinstance(job, str):
            return Outcome((Text(f"[It had ended already: {job}]"),))
        running = job.runs
        await self._jobs.kill(job)
        verb = "Ended" if running else "It had ended already:"
        parts = (job.news(), *job.notes, f"[{verb} {job.line()}]")
        said = "\n".join(part for part in parts if part)
        return Outcome((Text(said),), detail=Detail(exit_code=job.code))
