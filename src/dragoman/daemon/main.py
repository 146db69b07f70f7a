"""The daemon: opens every endpoint, runs until it is told to stop, leaves nothing behind."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.daemon.belongings import Belongings
from dragoman.daemon.guests import Guests
from dragoman.daemon.listening import Listening
from dragoman.daemon.notify import notify
from dragoman.dialects.descriptor import REGISTRY, Dialect
from dragoman.engine.events import Who
from dragoman.engine.faults import Fault
from dragoman.host.after_start import settle, spare_memory
from dragoman.host.compose import Composed, compose
from dragoman.host.config import LiveConfig
from dragoman.host.desks import Desks
from dragoman.host.leftovers import keep_tidy
from dragoman.observe.aloud import aloud
from dragoman.observe.feed import Feed
from dragoman.observe.log import get_log
from dragoman.settings import login
from dragoman.settings.model import Settings
from dragoman.transports.loop import run
from dragoman.wire.link import Link

if TYPE_CHECKING:
    from dragoman.daemon.apps import Supervisor
    from dragoman.daemon.taps import Taps
    from dragoman.daemon.tracing import Tracing
    from dragoman.gateway.gate import Gate

_SWEEP_SECONDS = 10.0
_TIDY_EVERY = 6  # sweeps
_TAKE_UP_SECONDS = 5.0
_FOLLOW_SECONDS = 1.0
_MOST_SPARE = 64  # sessions in memory that nobody watches; the others are in the store
_IDLE_SECONDS = 900.0
_SCHEDULES_AGAIN = 5.0
_GRACE_SECONDS = 5.0
_FAREWELL_SECONDS = 1.0
_EPHEMERAL_SECONDS = 1.0
_FILE_CHECK_SECONDS = 1.0
_AGAIN_SECONDS = 60.0  # after work of its own that broke
_FILES_BESIDE_CLIENTS = 512  # descriptors for the store, the log, tools and providers

log = get_log("daemon")
_NOBODY = Who("daemon")


class Daemon:
    """One running host."""

    def __init__(self, composed: Composed, *, ephemeral: bool, gateway: bool, native: bool) -> None:
        self.composed = composed
        self.config: LiveConfig = composed.config
        settings = composed.settings
        self.desks = Desks(composed.door, settings)
        self.ephemeral = ephemeral
        self.with_gateway = gateway and settings.gateway.enabled
        self.guests = Guests(settings.limits.max_clients, self._too_many)
        self._native = native = native or settings.listen.native
        self.listening = Listening(composed, self.desks, self.guests, native)
        self.stopped = asyncio.Event()
        self.forced = False
        self.code = 0
        self._store = Belongings(*_store_files(composed.door.facts.store_file))
        self._feed = Feed()
        self._tasks: list[asyncio.Task[Any]] = []
        self._gateway: Gate | None = None
        self._apps: dict[str, Supervisor] = {}  # by dialect
        self._tracing: Tracing | None = None
        self._schedules: asyncio.Task[Any] | None = None
        self._stamps: list[tuple[int, ...]] = []  # of the files of the configuration

    def _state_facts(self) -> None:
        """What dialects may show of the process, and cannot know by themselves."""
        places = self.composed.places
        facts = self.composed.door.facts
        facts.addresses = self.listening.main()
        facts.config_kind = "custom" if places.given else "default"
        holds = {
            "ephemeral": self.ephemeral, "no-gateway": not self.with_gateway, "native": self._native
        }  # fmt: skip
        facts.flags = [name for name, does in holds.items() if does]
        facts.logs = self._feed
        facts.taps = _LateTaps(self.guests)
        facts.explain = self._explain
        facts.check_config = self._check_config
        facts.doctor = self._examine
        facts.kept_apps = self._kept_apps
        facts.restart_app = self._restart_app
        facts.schedules = self._timetable

    async def _timetable(self) -> Any:
        """The schedules; loaded when they are first asked for, or right after the start."""
        loading = self._schedules
        if loading is None:
            loading = self._schedules = asyncio.create_task(self._load_schedules())
            self._tasks.append(loading)
        try:
            return await asyncio.shield(loading)
        except Exception:
            if self._schedules is loading:  # whoever asks next may have more luck
                self._schedules = None
                self._tasks.remove(loading)
            raise

    async def _load_schedules(self) -> object:
        from dragoman.schedules.timetable import Timetable

        node = self.composed.node
        timetable = Timetable(self.composed.door, node.desk.store.node if node else None)
        await timetable.load()
        self._go_on(timetable.keep)
        return timetable

    def _explain(self, key: str) -> Any:
        from dragoman.settings.explain import explain

        return explain(self.config.loaded, key)

    async def _examine(self) -> list[Any]:
        from dragoman.daemon.apps import findings
        from dragoman.host.doctor import examine, servers

        rows = await asyncio.to_thread(examine, self.composed.places, None, self.config.loaded)
        rows += servers(self.composed.door.facts.mcp())
        connected = self.composed.door.facts.connected_apps()
        return rows + findings(self._kept_apps(), connected)

    def _check_config(self) -> str:
        from dragoman.settings.load import load

        try:
            load(self.composed.places.config_file, flags=self.config.flags)
        except Fault as fault:
            return str(fault)
        return ""

    async def start(self) -> None:
        """Listen everywhere; all or nothing."""
        self._state_facts()
        self.listening.hold()
        raise_file_limit(self.composed.settings.limits.max_clients + _FILES_BESIDE_CLIENTS)
        if self.composed.node is not None:
            await self.composed.node.start()
        else:
            await self.composed.host.recover()
        self.config.applied.append(self._apply)
        await self.listening.open()
        if self.with_gateway:
            await self._open_gateway()
        await self._start_apps()
        if self.composed.settings.telemetry.enabled:
            await self._trace()
        tidy = partial(keep_tidy, self.composed.places.data_dir)
        for work in (self._watch_file, self._sweep, self._settle, tidy):
            self._go_on(work)
        self._go_on(self._timetable, _SCHEDULES_AGAIN)
        if self.composed.node is None:  # which looks for what dead nodes left by itself
            self._go_on(self._take_up)
            self._go_on(self._follow)
        if self.ephemeral:
            self._go_on(self._leave_when_alone)

    def _go_on(self, work: Callable[[], Awaitable[object]], again: float | None = None) -> None:
        """Do something for the daemon's whole life, or to its end, whatever breaks in it."""

        async def going_on() -> None:
            while True:
                try:
                    await work()
                    return
                except Exception as error:
                    self.composed.host.trouble("background work failed", error)
                await asyncio.sleep(_AGAIN_SECONDS if again is None else again)

        self._tasks.append(asyncio.ensure_future(going_on()))

    async def _trace(self) -> None:
        """Follow `[telemetry]`, which is loaded when it is first switched on."""
        if self._tracing is None:
            from dragoman.daemon.tracing import Tracing

            self._tracing = Tracing(self.composed.door)
        await self._tracing.follow(self.composed.settings.telemetry)

    async def _open_gateway(self) -> None:
        from dragoman.gateway import open_gateway

        self._gateway = await open_gateway(self.composed, self.desks, self.guests)
        self.composed.door.facts.gateway = self._gateway.address
        self.composed.door.facts.pairing = self._gateway.pairing
        log.info("listening", dialect="gateway", address=self._gateway.address)
        for one in REGISTRY.all():
            port = self.desks.port(one, self.config.loaded.sources, native=self._native)
            if one.rest is not None and port:
                address = await self._gateway.open_native(one.rest, port)
                log.info("listening", dialect=one.name, address=address)

    async def _start_apps(self) -> None:
        self.config.applied.append(self._apps_changed)
        for one in REGISTRY.all():
            await self._follow_apps(one)

    def _apps_changed(self, old: Settings, new: Settings) -> None:
        for one in REGISTRY.all():
            self.composed.host.spawn(self._follow_apps(one))

    async def _follow_apps(self, dialect: Dialect) -> None:
        """Start what came and stop what went of the programs that a dialect has us keep."""
        if dialect.programs is None:
            return
        wanted = self.desks.section(dialect).apps
        kept = self._apps.get(dialect.name)
        if kept is None and wanted:
            from dragoman.daemon.apps import Supervisor

            tells = partial(dialect.programs, self.listening.main()[dialect.name])
            kept = Supervisor(tells, self.composed.descendants)
            self._apps[dialect.name] = kept
            self.desks.desk(dialect.name).on_shutdown = kept.leaving
        if kept is not None:
            await kept.apply(wanted)

    def _kept_apps(self) -> list[dict[str, Any]]:
        return [row for kept in self._apps.values() for row in kept.status()]

    async def _restart_app(self, id: str) -> bool:
        for kept in self._apps.values():
            if await kept.restart(id):
                return True
        return False

    # --- while it runs ---

    def stop(self) -> None:
        """Leave; asked a second time, without waiting for turns to unwind."""
        if self.stopped.is_set():
            self.forced = True
        self.stopped.set()

    def reload(self) -> None:
        """SIGHUP: read the configuration again; a bad one changes nothing."""
        notify(f"RELOADING=1\nMONOTONIC_USEC={monotonic_ns() // 1000}")
        try:
            changes = self.config.reload()
        except Fault as fault:
            log.error("reload refused", problem=str(fault))
        else:
            log.info("reloaded", changed=len(changes))
        notify("READY=1")

    def _apply(self, old: Settings, new: Settings) -> None:
        self.desks.apply(old, new)
        self.guests.limit = new.limits.max_clients
        if self._gateway is not None and old.gateway != new.gateway:
            self._gateway.follow()
        if old.telemetry != new.telemetry:
            self.composed.host.spawn(self._trace())

    async def _watch_file(self) -> None:
        """Notice edits of the file, and who logs in or out: look, there is no portable event."""
        where = self.composed.places
        paths = where.config_file, login.path_of(where)
        self._stamps = self._stamps or [_stamp(path) for path in paths]
        while not self._lost():
            await self.listening.mend()
            await asyncio.sleep(_FILE_CHECK_SECONDS)
            now = [_stamp(path) for path in paths]
            if now != self._stamps:
                self._stamps = now
                self.reload()

    def _lost(self) -> bool:
        """Stop when our files were taken away: what we would keep from now on, nobody would find.

        Clients could not reach us either, and another daemon would begin beside us.
        """
        lost = [*self._store.lost(), *self.listening.lost()]
        if not lost:
            return False
        said = f"{lost[0]} was removed or replaced while the daemon ran: it ends."
        aloud(f"dragoman: {said}")
        log.error(said, lost=len(lost))
        self.code = 1
        self.stop()
        return True

    async def _settle(self) -> None:
        """Load what sessions need, then end what commands of a daemon that was killed left."""
        await settle()
        from dragoman.tools.orphans import end_orphans

        outputs = os.path.join(self.composed.places.data_dir, "outputs")
        if count := await end_orphans(outputs):
            log.warning("ended what a daemon that died left running", processes=count)

    async def _take_up(self) -> None:
        """Notice that a process died in the middle of a turn; nothing tells us of its death."""
        while True:
            await asyncio.sleep(_TAKE_UP_SECONDS)
            try:
                taken = await self.composed.host.recover()
            except Fault as fault:
                log.warning("sessions of dead processes were not taken up", problem=str(fault))
                continue
            if taken:
                log.info("took up sessions of processes that died", count=taken)

    async def _follow(self) -> None:
        """Tell those who watch all sessions what other processes wrote, soon after they did."""
        host = self.composed.host
        while True:
            await asyncio.sleep(_FOLLOW_SECONDS)
            if not host.hub.watches:
                continue
            try:
                if await host.store.newest_gseq() > host.hub.last:
                    await host.catch_up()
            except Fault as fault:
                log.warning("what other processes wrote was not read", problem=str(fault))

    async def _sweep(self) -> None:
        """Let go of sessions that nobody needs, often, so that few gather; tidy up now and then."""
        gone: list[str] = []
        for number in count(1):
            await asyncio.sleep(_SWEEP_SECONDS)
            gone += await self.composed.host.sweep(_IDLE_SECONDS, _MOST_SPARE)
            if number % _TIDY_EVERY:
                continue
            await asyncio.to_thread(self.composed.descendants.bury)
            if gone:
                log.info("let go of idle sessions", count=len(gone))
            if not any(session.inbox.busy for session in self.composed.host.live.values()):
                gc.collect()  # of its own accord it looks at old objects very seldom
            if gone:
                await asyncio.to_thread(_give_back)
                gone.clear()

    async def _leave_when_alone(self) -> None:
        while True:
            await self.guests.gone(_EPHEMERAL_SECONDS)
            if await self._work_done():
                log.info("last client left")
                self.stop()
                return

    async def _work_done(self) -> bool:
        """Wait for turns to end, except those that wait for a human; False when a client came."""
        host = self.composed.host
        changed = asyncio.Event()
        watch = host.hub.watch(_NOBODY, _Bell(changed), lambda said: None)
        try:
            while not self.guests.all:
                busy = [s for s in host.live.values() if s.inbox.busy and not s.state.asks]
                if not busy:
                    return True
                changed.clear()
                waits = [
                    asyncio.ensure_future(work)
                    for work in (changed.wait(), self.guests.changed(), busy[0].inbox.idle())
                ]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
            return False
        finally:
            watch.close()

    def _too_many(self, link: Link) -> None:
        log.warning("refused: too many clients", limit=self.guests.limit, peer=link.peer.label)

    # --- the end ---

    async def close(self) -> None:
        """Stop accepting, end turns within the grace period, commit, free everything.

        What fails does not spare the rest its end.
        """
        notify("STOPPING=1")
        async with AsyncExitStack() as last_to_first:
            later = last_to_first.push_async_callback
            last_to_first.callback(self.listening.release)
            later(self.composed.close)
            last_to_first.callback(self._feed.close)
            if self._tracing is not None:
                later(self._tracing.close)
            if self._gateway is not None:
                later(self._gateway.close)
            later(self._dismiss)
            later(self.desks.close)  # they say goodbye, so before the links are flushed and closed
            later(self._end_turns)
            for kept in self._apps.values():
                later(kept.stop)
            for task in self._tasks:
                task.cancel()
            await self.listening.close()

    async def _end_turns(self) -> None:
        await self.composed.host.stop(0.0 if self.forced else _GRACE_SECONDS)

    async def _dismiss(self) -> None:
        await self.guests.dismiss(0.0 if self.forced else _FAREWELL_SECONDS)


class _LateTaps:
    """`Taps` that are loaded when somebody first follows."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        self._taps: Taps | None = None

    def follow(self, own: object, told: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        if self._taps is None:
            from dragoman.daemon.taps import Taps

            self._taps = Taps(self._guests)
        return self._taps.follow(own, told)


class _Bell:
    """A shape that rings when a session's status changes."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed

    def speak(self, events: Sequence[Any]) -> None:
        if any(event.seq for event in events):
            self._changed.set()


def _give_back() -> None:
    """Hand memory that was freed back to the system, where the C library keeps it."""
    import ctypes  # only a daemon that lets sessions go needs it

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:  # glibc's; others do it by themselves
        trim(0)


def _store_files(path: str) -> tuple[str, ...]:
    """What must stay as it is while we run; nothing where sessions are not kept in a file."""
    if not path:
        return ()
    from dragoman.store.file import parts

    return parts(path)


def _stamp(path: str) -> tuple[int, ...]:
    """What tells a file from what was there before; of one that cannot be read, what leads there.

    A file that is closed to us and its way there count, too: each change may open it.
    """
    try:
        there = os.lstat(path)
    except OSError as problem:
        return (problem.errno or 0,)
    way = (there.st_mtime_ns, there.st_size, there.st_ino, there.st_mode)
    try:
        found = os.stat(path)
    except OSError as problem:
        return (*way, problem.errno or 0)
    return (*way, found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)


def raise_file_limit(wanted: int) -> None:
    """Let this process open as many files as its clients may need, where the system permits."""
    try:
        import resource
    except ImportError:
        return  # Windows has no such limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        log.warning("few files may be open", limit=most, wanted=wanted)


def _listen_to_signals(daemon: Daemon) -> None:
    if sys.platform == "win32":  # its loops know no signal handlers; Ctrl-C raises
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, daemon.stop)
    loop.add_signal_handler(signal.SIGINT, daemon.stop)
    loop.add_signal_handler(signal.SIGHUP, daemon.reload)


class DaemonFlags(Protocol):
    """What the command line says of a daemon."""

    config_dir: str | None
    ephemeral: bool
    no_gateway: bool
    native: bool


async def serve(args: DaemonFlags) -> int:
    """Run a daemon until it is told to stop; returns the exit code."""
    composed = await compose(config_dir=args.config_dir, for_daemon=True)
    for notice in composed.notices:
        aloud(f"dragoman: {notice}")
    daemon = Daemon(
        composed, ephemeral=args.ephemeral, gateway=not args.no_gateway, native=args.native
    )
    try:
        _listen_to_signals(daemon)
        composed.descendants.adopt()
        await daemon.start()
        spare_memory()
        notify("READY=1")
        aloud("ready")
        log.info("ready", version=composed.door.facts.version, pid=os.getpid())
        await daemon.stopped.wait()
        log.info("stopping")
    finally:
        await daemon.close()
    return daemon.code


def main(args: DaemonFlags) -> int:
    """Run until SIGTERM, SIGINT, or, when ephemeral, until the last client has left."""
    return run(serve(args))
