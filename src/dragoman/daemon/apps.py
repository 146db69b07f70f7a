"""Starts the apps of the configuration and watches over them.

An app that fails is started again after a delay that doubles; when it fails too often within a
while, it is left alone. One that ends by itself with 0 has finished. Each app is the leader of its
own process group and sees a small clean environment.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from dragoman.engine.faults import in_words
from dragoman.engine.ports.rows import DoctorRow as Row
from dragoman.engine.visible import many
from dragoman.host.descendants import Descendants
from dragoman.kernel import exited, let_go
from dragoman.observe.log import get_log
from dragoman.settings.protocols import App
from dragoman.tools.environ import staying

log = get_log("apps")

Tells = Callable[[str], Mapping[str, str]]  # of an app's id, what its environment says of us

WINDOW = 300.0  # seconds within which failures are counted
LONGEST_DELAY = 60.0
_LINE = 4_096
_KILLED_SECONDS = 5.0


class Keeper:
    """One app: its process, or the wait for the next one."""

    def __init__(
        self, id: str, app: App, tells: Tells, descendants: Descendants | None = None
    ) -> None:
        self.id = id
        self.app = app
        self.state = "starting"  # then running, waiting, stopped or crashed
        self.pid: int | None = None
        self.restarts = 0
        self.exit_code: int | None = None
        self.problem = ""
        self.since = 0
        self._tells = tells
        self._descendants = descendants or Descendants()
        self._failures: deque[float] = deque()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._kill: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._keep())

    async def _keep(self) -> None:
        while not self._stopping.is_set():
            failed = await self._once()
            if self._stopping.is_set() or not failed:
                break
            now = time.monotonic()
            self._failures.append(now)
            while self._failures and now - self._failures[0] > WINDOW:
                self._failures.popleft()
            count = len(self._failures)
            if count > self.app.max_restarts:
                log.error("gave up", app=self.id, failures=count, problem=self.problem)
                self._become("crashed")
                return
            delay = min(self.app.restart_delay_secs * 2 ** min(count - 1, 30), LONGEST_DELAY)
            log.warning("failed", app=self.id, problem=self.problem, again_in=delay)
            self._become("waiting")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            self.restarts += 1
        self._become("stopped")

    async def _once(self) -> bool:
        """Run it to its end; True when that was a failure."""
        try:
            process = await asyncio.create_subprocess_exec(
                _at_home(self.app.command),
                *self.app.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=_at_home(self.app.cwd) or None,
                env=environment(self.id, self.app, self._tells),
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            self.problem = f"{self.app.command} cannot be started: {in_words(problem)}"
            return True
        self._process, self.pid = process, process.pid
        # Children of ours are kept from our sockets, but not apps.
        self._descendants.trust(process.pid)
        self._become("running")
        log.info("started", app=self.id, pid=process.pid)
        try:
            if self._stopping.is_set():  # asked to stop while it was starting
                self._signal(signal.SIGTERM)
            await self._log_output(process)
            code = await exited(process)
        finally:
            self._signal(signal.SIGKILL)  # what it left behind
            self._descendants.forget(process.pid)
            let_go(process)
            self._process, self.pid = None, None
            if self._kill is not None:
                self._kill.cancel()
                self._kill = None
        self.exit_code = code
        self.problem = f"ended with {code}" if code >= 0 else f"ended by signal {-code}"
        log.info("ended", app=self.id, code=code)
        return code != 0

    async def _log_output(self, process: asyncio.subprocess.Process) -> None:
        """Put what it prints into our log, until its output or the process itself ends."""
        reader = process.stdout
        assert reader is not None
        ended = asyncio.ensure_future(exited(process))
        rest = b""
        try:
            while not ended.done():
                reading = asyncio.ensure_future(reader.read(_LINE))
                await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():  # a child of the app may hold the pipe open
                    await asyncio.wait({reading}, timeout=0.05)
                if not reading.done():
                    reading.cancel()
                    break
                data = reading.result()
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._log_line(line)
                if len(rest) > _LINE:
                    self._log_line(rest)
                    rest = b""
        finally:
            ended.cancel()
            if rest:
                self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            log.info("says", app=self.id, text=text)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the whole group; the leader's id is the group's."""
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _become(self, state: str) -> None:
        self.state = state
        self.since = time.time_ns() // 1_000_000

    def leaving(self, timeout_ms: float | None) -> None:
        """The app said that it shuts down: kill it when it does not keep its own time."""
        if timeout_ms is not None and self._process is not None and self._kill is None:
            loop = asyncio.get_running_loop()
            self._kill = loop.call_later(max(timeout_ms, 0) / 1000, self._signal, signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL when that does not help in time."""
        self._stopping.set()
        if self._task is None:
            return
        self._signal(signal.SIGTERM)
        done, _ = await asyncio.wait({self._task}, timeout=self.app.stop_timeout_secs)
        if not done:
            log.warning("killed", app=self.id)
            self._signal(signal.SIGKILL)
            await asyncio.wait({self._task}, timeout=_KILLED_SECONDS)

    def status(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "pid": self.pid,
            "restarts": self.restarts,
            "exit_code": self.exit_code,
            "problem": self.problem if self.state in ("waiting", "crashed") else "",
            "since": self.since,
        }


class Supervisor:
    """All apps of the configuration."""

    def __init__(self, tells: Tells, descendants: Descendants | None = None) -> None:
        self._tells = tells
        self._descendants = descendants
        self._applying = asyncio.Lock()
        self.keepers: dict[str, Keeper] = {}

    def _start(self, id: str, app: App) -> None:
        self.keepers[id] = Keeper(id, app, self._tells, self._descendants)
        self.keepers[id].start()

    def status(self) -> list[dict[str, Any]]:
        """Every app: id, state, pid, restarts, exit_code, problem, since."""
        return [keeper.status() for keeper in self.keepers.values()]

    def leaving(self, id: str, timeout_ms: float | None) -> None:
        keeper = self.keepers.get(id)
        if keeper is not None:
            keeper.leaving(timeout_ms)

    async def apply(self, apps: Mapping[str, App]) -> None:
        """Follow a changed configuration: stop what went or changed, start what came."""
        async with self._applying:
            # One without a command is started elsewhere: its entry tells and permits only.
            wanted = {id: app for id, app in apps.items() if app.enabled and app.command}
            gone = [k for k in self.keepers.values() if wanted.get(k.id) != k.app]
            await asyncio.gather(*(keeper.stop() for keeper in gone))
            for keeper in gone:
                del self.keepers[keeper.id]
            for id, app in wanted.items():
                if id not in self.keepers:
                    self._start(id, app)

    async def restart(self, id: str) -> bool:
        """Stop an app and start it anew, crashed or not; False when there is none of this name."""
        async with self._applying:
            keeper = self.keepers.get(id)
            if keeper is None:
                return False
            await keeper.stop()
            self._start(id, keeper.app)
            return True

    async def stop(self) -> None:
        await asyncio.gather(*(keeper.stop() for keeper in self.keepers.values()))


def environment(
    id: str, app: App, tells: Tells, source: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What an app sees: harmless names of ours, what its settings give it, and where we are."""
    return {**staying(app.pass_env, app.env, source), **tells(id)}


def findings(kept: list[dict[str, Any]], connected: list[dict[str, Any]]) -> list[Row]:
    """What `doctor` says of apps: those we keep, and those that are connected."""
    rows: list[Row] = []
    for app in kept:
        if app["state"] in ("waiting", "crashed"):
            severity: Literal["warn", "error"] = "warn" if app["state"] == "waiting" else "error"
            said = f"{app['id']} {app['problem']} ({many(app['restarts'], 'restart')})"
            fix = f"What it said: dragoman apps logs {app['id']}"
            rows.append(Row(severity, "apps", said, fix))
    for app in connected:
        if app["stale"]:
            said = f"{app['id']} has sent no heartbeat for a while"
            rows.append(Row("warn", "apps", said, "Restart it."))
        elif app["passed_over"]:
            said = f"{app['id']} is passed over: it did not answer its hooks twice in a row"
            rows.append(Row("warn", "apps", said, "Restart it, or have it answer hook.result."))
        else:
            rows.append(Row("ok", "apps", f"{app['id']} is {app['state']}"))
    return rows


def _at_home(path: str) -> str:
    return os.path.expanduser(path)
