"""One command from its start until nothing of it is left."""

import asyncio
import errno
import os
import subprocess
from collections.abc import Callable

from dragoman.engine.faults import BadInput, Refused
from dragoman.observe.log import get_log
from dragoman.sandbox import brand, modes, room
from dragoman.sandbox.launch import Launch

from .group import Group
from .output import Capture, Progress
from .work import insist, settled

GRACE = 1.5  # seconds between SIGTERM and SIGKILL
_LEFTOVER_GRACE = 0.5  # the same for what a finished command left in the background
_DRAIN = 1.0  # seconds for output that is still in the pipe when everything has ended
_PIECE = 1 << 16
_TRIES = 3  # a library may have begun a thread in the child, now and then (see `room`)
_WORDS = 1000  # bytes of why a child could not become the command
_LISTINGS = 8  # times that walls are put up where somebody removes what they are made of
_BWRAP = b"bwrap: Can't "  # how it begins to say what it could not mount, and where
_MOVED = tuple(f"[Errno {number}]" for number in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
_LOOK = 0.1  # seconds between two looks at how many processes there are


log = get_log("command")


class CommandRun:
    """Runs a launch, feeds its output to a capture and a progress, and ends all it started."""

    def __init__(self, launch: Launch, mark: str, capture: Capture, progress: Progress) -> None:
        self.launch = launch
        self.mark = mark
        self.capture = capture
        self.progress = progress
        self.code = -1
        self.leftovers = 0
        self.mended = False  # it had changed who may open what is ours
        self.too_many = 0  # the bound of processes that it went over
        self._process: asyncio.subprocess.Process | None = None
        self._group: Group | None = None
        self._brand = 0
        self._pipe = -1
        self._words = ""  # of a child that could not become the command
        self._held = b""  # output that may be of the walls, not of the command

    async def run(self, limit: float | None) -> bool:
        """Run to the end; True when the time was over. A cancelled caller finds all ended."""
        self._brand = brand.new()
        keeping = asyncio.ensure_future(self._keep()) if self.launch.exposes else None
        try:
            return await self._run(limit)
        finally:
            brand.live.discard(self._brand)
            if keeping is not None:
                keeping.cancel()
                await settled(keeping)
                await insist(asyncio.to_thread(self._mend))

    async def _keep(self) -> None:
        """Keep what is ours alone ours, while a command runs that could open it to others."""
        while True:
            await asyncio.sleep(modes.SECONDS)
            await asyncio.to_thread(self._mend)

    def _mend(self) -> None:
        if found := modes.mend(self.launch.exposes):
            self.mended = True
            log.warning("a command changed who may open what is ours alone", paths=found)

    async def _run(self, limit: float | None) -> bool:
        for left in range(_LISTINGS - 1, -1, -1):
            again = self.launch.again if left else None
            try:
                timed_out = await self._once(limit)
            except Refused:
                if again is None or not self._words.startswith(_MOVED):
                    raise
            else:
                if again is None or timed_out or not self._never_began():
                    self._release()
                    self.progress.take(b"", final=True)
                    return timed_out
            self._held = b""
            log.info("what the sandbox had listed has changed; it is listed again", left=left)
            self.launch = again()
        raise AssertionError("the last try raises or returns")

    def _never_began(self) -> bool:
        """Whether the walls could not be put up, and so nothing of the command has run."""
        sign = self.launch.sign
        return sign is not None and self.code == 1 and bool(self._held) and not sign.ran()

    async def _once(self, limit: float | None) -> bool:
        try:
            await insist(self._start())
        except asyncio.CancelledError:
            await self._abandon()
            raise
        process = self._process
        assert process is not None
        reading = asyncio.ensure_future(self._read())
        counting = asyncio.ensure_future(self._count())
        try:
            timed_out = await self._wait(process, limit)
            await insist(self._end(process, GRACE if timed_out else _LEFTOVER_GRACE))
            await asyncio.wait({reading}, timeout=_DRAIN)
        except asyncio.CancelledError:
            await settled(asyncio.ensure_future(self._end(process, GRACE)))
            self._release()
            raise
        finally:
            for task in (reading, counting):
                task.cancel()
                await settled(task)
        code = process.returncode if process.returncode is not None else -1
        self.code = code if code >= 0 else 128 - code  # by a signal, as shells say it
        return timed_out

    async def _abandon(self) -> None:
        """Cancelled while starting: end what started meanwhile."""
        if self._process is not None:
            os.close(self._pipe)
            await settled(asyncio.ensure_future(self._end(self._process, GRACE)))

    async def _start(self) -> None:
        launch = self.launch
        # Our own pipe: a child left in the background may hold it open, and the end of the
        # command itself must be seen nevertheless.
        self._pipe, write_end = os.pipe()
        try:
            self._process = await self._begun(write_end)
            self._group = Group(self._process.pid, self.mark, self._brand)
        except (OSError, ValueError) as error:
            os.close(self._pipe)
            if isinstance(error, OSError) and error.errno == errno.E2BIG:
                size = max(len(word) for word in launch.argv)
                raise BadInput(
                    f"command: the system takes none of {size} characters",
                    "Write it to a file with write, and run that.",
                ) from error
            if isinstance(error, OSError) and error.filename == self.launch.cwd:
                raise _no_folder(error) from error
            raise BadInput(f"start: {error}") from error
        except subprocess.SubprocessError as error:
            why = f": {error}" if str(error) else ""
            os.close(self._pipe)
            raise Refused(
                f"The sandbox could not be put up around the command{why}.",
                "See `dragoman doctor`.",
            ) from error
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)
            if launch.done is not None:
                launch.done()

    async def _begun(self, write_end: int) -> asyncio.subprocess.Process:
        """The process; raises SubprocessError with its last words when it could not begin."""
        launch = self.launch
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await asyncio.create_subprocess_exec(
                    *launch.argv,
                    cwd=launch.cwd,
                    env=dict(launch.env),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=write_end,
                    start_new_session=True,
                    preexec_fn=self._before_exec(),
                    pass_fds=launch.keep,
                )
            except subprocess.SubprocessError as error:
                self._words = why = _last_words(self._pipe)
                if not left or room.SEPARATING not in why:
                    raise subprocess.SubprocessError(why) from error
        raise AssertionError("the last try raises or returns")

    async def _count(self) -> None:
        """End the command when it has too many processes, where nothing else bounds them."""
        most, group = self.launch.counted, self._group
        if not most or group is None:
            return
        usual = _population()
        while True:
            await asyncio.sleep(_LOOK)
            # The whole machine is counted first, which is quick: it seldom grows that much.
            if _population() - usual < most // 2:
                continue
            if await asyncio.to_thread(group.count) > most:
                self.too_many = most
                await group.stop()

    def _before_exec(self) -> Callable[[], None] | None:
        """What the child does first: take its brand, then whatever the sandbox wants."""
        confined = self.launch.preexec
        if not self._brand and confined is None:
            return None
        burn = brand.burn(self._brand)

        def both() -> None:
            try:
                burn()
                if confined is not None:
                    confined()
            except Exception as problem:  # all that the parent hears is that there was one
                os.write(2, str(problem).encode(errors="replace")[:_WORDS])
                raise

        return both

    async def _wait(self, process: asyncio.subprocess.Process, limit: float | None) -> bool:
        try:
            async with asyncio.timeout(limit):
                await process.wait()
        except TimeoutError:
            return True
        return False

    async def _end(self, process: asyncio.subprocess.Process, grace: float) -> None:
        group = self._group or Group(process.pid, self.mark, self._brand)
        ended = await group.end(grace, leader_lives=process.returncode is None)
        await process.wait()
        # Who puts the walls up has processes of its own, which end just now, and all others with
        # them: those of the command were counted before that.
        sign = self.launch.sign
        self.leftovers = ended if sign is None else sign.left()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_PIECE)
        file = os.fdopen(self._pipe, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
        try:
            while data := await reader.read(_PIECE):
                self._held += data
                if self.launch.sign is not None and _of_walls(self._held):
                    continue
                if self._release():
                    await insist(asyncio.to_thread(self.capture.flush))
        finally:
            transport.close()

    def _release(self) -> bool:
        """Let output through; True when the capture is to be flushed."""
        data, self._held = self._held, b""
        self.progress.take(data)
        return self.capture.take(data)


def _of_walls(said: bytes) -> bool:
    """Whether this may be all that is said, and why the walls could not be put up."""
    return len(said) < _WORDS and (said.startswith(_BWRAP) or _BWRAP.startswith(said))


def _no_folder(error: OSError) -> BadInput:
    """What is wrong with the folder that a command was to run in."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        what = f"The folder to run this in is not there: {error.filename}"
        return BadInput(what, "Make it again, or begin a session elsewhere.")
    what = f"The folder to run this in cannot be entered: {error.filename} ({error.strerror})"
    return BadInput(what, "Repair it, or begin a session elsewhere.")


def _last_words(pipe: int) -> str:
    """What a child said that ended before it became the command."""
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, _WORDS).decode(errors="replace").strip().rstrip(".")
    except BlockingIOError:
        return ""


def _population() -> int:
    """Processes of the whole machine."""
    try:
        return sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError:
        return 0  # no /proc on this system: nothing can be counted
