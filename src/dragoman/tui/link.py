"""The terminal's connection to the daemon: found or started, and made again when it is lost."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoman.client.address import socket_path
from dragoman.client.host import HostClient, connect
from dragoman.client.keys import only_here
from dragoman.client.launch import launch, log_path, said_before, unsaid, words_since
from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.engine.events import Event
from dragoman.engine.faults import Fault

T = TypeVar("T")
_DEMO = "demo/demo"
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_PATIENCE = 3.0  # seconds in which somebody else may bring a daemon back that went away
_AGAIN = 10.0  # seconds until a daemon that did not start is tried once more
_START = 15.0  # seconds in which a daemon that was started must answer
_LATE = 5.0  # seconds after which an answer is missed


class ScreenLink:
    """One connection that asks.

    `tell` hears of its states: up, down, stopped, starting, trouble, late, answers.
    """

    def __init__(self, config_dir: str | None, tell: Callable[[str, str], None]) -> None:
        self.path = socket_path(config_dir)
        self.name = _own_name()
        self._config_dir = config_dir
        self._tell = tell
        self._up = asyncio.Event()
        self._wanted = False
        self._host: HostClient | None = None
        self._losses = 0
        self._looked_for_keys = False

    @property
    def host(self) -> HostClient:
        """The connection. Raises ConnectionGone while there is none."""
        if self._host is None:
            raise ConnectionGone("There is no connection to the daemon.", "It is tried again.")
        return self._host

    async def ready(self) -> HostClient:
        """Wait for a connection."""
        while self._host is None:
            await self._up.wait()
        return self._host

    async def unused_keys(self, model: str) -> str:
        """What to say, once, where the demo answers though this shell has a key for a model."""
        if model != _DEMO or self._looked_for_keys:
            return ""
        self._looked_for_keys = True
        host = await self.ready()
        return only_here(await host.key_variables(), os.environ, self._config_dir)

    def want(self) -> None:
        """Somebody has work for a daemon: one that was stopped is started again."""
        self._wanted = True

    async def keep(self) -> None:
        """Hold a connection for ever: find or start a daemon, and again when it goes away."""
        while True:
            host = await self._reach()
            self._host = host
            self._up.set()
            self._tell("up", "" if not self._losses else "connected again")
            try:
                async for _ in host.notices():
                    pass
            finally:
                self._host = None
                self._up.clear()
                await host.__aexit__(None, None, None)
            self._losses += 1
            self._wanted = False
            self._tell("down", "the daemon went away; waiting for it")

    async def answered(self, work: Awaitable[T]) -> T:
        """Wait for an answer; say so when it is late, and when it has come after all."""
        late = False

        def miss() -> None:
            nonlocal late
            late = True
            self._tell(
                "late", "no answer from the daemon yet, it may be suspended or busy; waiting"
            )

        timer = asyncio.get_running_loop().call_later(_LATE, miss)
        try:
            return await work
        except ConnectionGone:
            late = False  # that is told as what it is
            raise
        finally:
            timer.cancel()
            if late and self._host is not None:
                self._tell("answers", "the daemon answers again")

    async def _reach(self) -> HostClient:
        patience = _PATIENCE if self._losses else 0.0
        began = time.monotonic()
        pause = _FIRST_PAUSE
        log = log_path(self._config_dir)
        begins = 0
        started: subprocess.Popen[bytes] | None = None
        stopped = False
        while True:
            try:
                return await self.answered(connect(self.path, name=self.name).__aenter__())
            except NotRunning:
                pass  # the reason for this loop
            except Fault as fault:
                self._tell("trouble", str(fault))
            waited = time.monotonic() - began
            if started is None and waited >= patience and self._was_stopped():
                if not stopped:
                    self._tell("stopped", "the daemon was stopped; a prompt starts it again")
                stopped, pause = True, _FIRST_PAUSE
            elif started is None and waited >= patience:
                self._tell("starting", "starting the daemon")
                begins = said_before(log)
                began, pause = time.monotonic(), _FIRST_PAUSE / 5
                try:
                    started = launch(self._config_dir)
                except OSError as problem:
                    why = f"{problem.filename or 'it'}: {problem.strerror}. See: dragoman doctor"
                    self._tell("trouble", f"the daemon does not start: {why}")
                    patience, pause = _AGAIN, _FIRST_PAUSE
            elif started is not None and started.poll() is not None:
                said = words_since(log, begins).rpartition("\n")[2].strip()
                why = said.removeprefix("dragoman: ") or unsaid("dragoman daemon", log)
                self._tell("trouble", f"the daemon does not start: {why}")
                started, began, patience = None, time.monotonic(), _AGAIN
            elif started is not None and waited > _START:
                self._tell("trouble", "the daemon does not answer; see: dragoman logs")
            await asyncio.sleep(pause)  # nobody tells when a socket appears
            pause = min(pause * 1.5, _LONGEST_PAUSE if started is None else 0.1)

    def _was_stopped(self) -> bool:
        """Whether it went of its own accord, taking its socket along, and nobody needs it yet."""
        return bool(self._losses) and not self._wanted and not os.path.lexists(self.path)

    async def follow(
        self,
        session_id: str,
        since: int,
        take: Callable[[Event], None],
        begin: Callable[[], None],
    ) -> None:
        """Give every event of a session after `since`, over any number of connections.

        `begin` is called before each of them: what was only streamed is told again. Raises the
        host's Fault when the session cannot be followed any more.
        """
        place = since
        while True:
            host = await self.ready()
            stream = host.attach(session_id, since=place)
            try:
                async with stream:
                    begin()
                    async for event in stream:
                        take(event)
                        if event.seq:
                            place = event.seq
            except (NotRunning, ConnectionGone):
                pass  # made again below
            await asyncio.sleep(_FIRST_PAUSE)

    async def follow_all(
        self, take: Callable[[Event], None], begin: Callable[[], Awaitable[None]]
    ) -> None:
        """Give the kept events of all sessions from now on."""
        while True:
            host = await self.ready()
            stream = host.watch(passing=False)
            try:
                async with stream:
                    await begin()
                    async for event in stream:
                        take(event)
            except (NotRunning, ConnectionGone):
                pass  # made again below
            await asyncio.sleep(_FIRST_PAUSE)


def _own_name() -> str:
    """How other clients see this terminal."""
    try:
        return f"terminal {os.ttyname(0).removeprefix('/dev/')}"
    except OSError:
        return "terminal"
