"""The daemon: opens every endpoint, runs until it is told to stop, leaves nothing behind."""

import asyncio
import os
import signal
import sys
from typing import Any

from dragoman.dialects.sniff import AnyHearer
from dragoman.engine.faults import BadInput, Fault
from dragoman.observe.log import get_log
from dragoman.transports import unix
from dragoman.transports.loop import run, settle_memory
from dragoman.wire.link import Link, Opener, Peer

from . import endpoints, lock
from .compose import Composed, compose
from .config import LiveConfig
from .desks import Desks
from .guests import Guests
from .notify import notify
from .peer import Doorkeeper

_SWEEP_SECONDS = 60.0
_IDLE_SECONDS = 900.0
_GRACE_SECONDS = 5.0
_EPHEMERAL_SECONDS = 1.0
_FILE_CHECK_SECONDS = 1.0

log = get_log("daemon")
audit = get_log("audit")


class Daemon:
    """One running host."""

    def __init__(self, composed: Composed, *, ephemeral: bool, gateway: bool, native: bool) -> None:
        self.composed = composed
        self.config: LiveConfig = composed.config
        self.desks = Desks(composed.door, composed.settings)
        self.ephemeral = ephemeral
        self.with_gateway = gateway and composed.settings.gateway.enabled
        self.native = native or composed.settings.listen.native
        self.guests = Guests(composed.settings.limits.max_clients, self._too_many)
        self.stopped = asyncio.Event()
        self.forced = False
        self._locks: list[lock.Lock] = []
        self._listeners: list[unix.Listener] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._gateway: Any = None
        self._apps: Any = None

    def addresses(self) -> list[tuple[str, str]]:
        """Every (dialect, path) to listen at."""
        places = self.composed.places
        chosen = endpoints.endpoints(os.environ, places)
        listen = self.composed.settings.listen
        found: list[tuple[str, str]] = []
        for name, path in chosen.items():
            found.append((name, getattr(listen, name, "") or path))
        if self.native:
            found += [pair for pair in endpoints.native(os.environ).items() if pair not in found]
        return found

    async def start(self) -> None:
        """Listen everywhere; all or nothing."""
        self.composed.door.facts["addresses"] = dict(self.addresses())
        await self.composed.host.recover()
        self.config.applied.append(self.desks.apply)
        try:
            for name, path in self.addresses():
                self._locks.append(lock.hold(path))
                opener = self.guests.counting(self._opener(name))
                keeper = Doorkeeper(self._audit)
                bound = self.composed.settings.limits.max_outbound_bytes
                listener = await unix.listen(path, opener, admit=keeper, bound=bound)
                self._listeners.append(listener)
                log.info("listening", dialect=name, path=path)
            if self.with_gateway:
                await self._open_gateway()
            await self._start_apps()
        except BaseException:
            await self._close_listeners()
            raise
        for work in (self._watch_file(), self._sweep()):
            self._tasks.append(asyncio.ensure_future(work))
        if self.ephemeral:
            self._tasks.append(asyncio.ensure_future(self._leave_when_alone()))

    def _opener(self, name: str) -> Opener:
        if name != "any":
            return self.desks.opener(name)
        openers = self.desks.openers()
        limit = self.composed.settings.limits.max_line_bytes
        return lambda link: AnyHearer(link, openers, limit, self._sniffed)

    async def _open_gateway(self) -> None:
        from dragoman.gateway import open_gateway

        self._gateway = await open_gateway(self.composed, self.desks, self.guests)
        self.composed.door.facts["gateway"] = self._gateway.address
        log.info("listening", dialect="gateway", address=self._gateway.address)

    async def _start_apps(self) -> None:
        if self.composed.settings.openclawos.apps:
            from .apps import Supervisor

            kernel = dict(self.addresses())["openclawos"]
            self._apps = Supervisor(self.composed.settings.openclawos.apps, kernel)
            await self._apps.start()
            self.composed.door.facts["apps"] = self._apps.status

    # --- while it runs ---

    def stop(self) -> None:
        if self.stopped.is_set():
            self.forced = True
        self.stopped.set()

    def reload(self) -> None:
        """SIGHUP: read the configuration again."""
        try:
            changes = self.config.reload()
        except Fault as fault:
            log.error("reload refused", problem=str(fault))
            return
        log.info("reloaded", changed=len(changes))

    async def _watch_file(self) -> None:
        """Notice edits of the file; there is no portable event for that, so look now and then."""
        path = self.composed.places.config_file
        before = _stamp(path)
        while True:
            await asyncio.sleep(_FILE_CHECK_SECONDS)
            now = _stamp(path)
            if now != before:
                before = now
                self.reload()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            gone = await self.composed.host.sweep(_IDLE_SECONDS)
            if gone:
                log.info("let go of idle sessions", count=len(gone))

    async def _leave_when_alone(self) -> None:
        while True:
            await self.guests.gone(_EPHEMERAL_SECONDS)
            for session in tuple(self.composed.host.live.values()):
                if not session.state.asks:
                    await session.idle()
            if self.guests.count == 0:
                log.info("last client left")
                self.stop()
                return

    def _audit(self, what: str, peer: Peer) -> None:
        audit.info(what, peer=peer.label, pid=peer.pid, uid=peer.uid)

    def _sniffed(self, name: str, link: Link) -> None:
        log.debug("recognised", dialect=name, peer=link.peer.label)

    def _too_many(self, link: Link) -> None:
        log.warning("refused: too many clients", limit=self.guests.limit, peer=link.peer.label)

    # --- the end ---

    async def close(self) -> None:
        """Stop accepting, end turns within the grace period, commit, free everything."""
        notify("STOPPING=1")
        await self._close_listeners()
        for task in self._tasks:
            task.cancel()
        if self._apps is not None:
            await self._apps.stop()
        await self.composed.host.stop(0.0 if self.forced else _GRACE_SECONDS)
        await self.desks.close()
        if self._gateway is not None:
            await self._gateway.close()
        await self.composed.close()
        for held in self._locks:
            held.release()

    async def _close_listeners(self) -> None:
        for listener in self._listeners:
            await listener.close()
        self._listeners.clear()


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


async def _serve(args: Any) -> int:
    composed = await compose(config_dir=args.config_dir, for_daemon=True)
    for notice in composed.notices:
        print(f"dragoman: {notice}", file=sys.stderr)
    daemon = Daemon(
        composed, ephemeral=args.ephemeral, gateway=not args.no_gateway, native=args.native
    )
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, daemon.stop)
    loop.add_signal_handler(signal.SIGINT, daemon.stop)
    loop.add_signal_handler(signal.SIGHUP, daemon.reload)
    try:
        await daemon.start()
        settle_memory()
        notify("READY=1")
        print("ready", file=sys.stderr, flush=True)
        await daemon.stopped.wait()
    finally:
        await daemon.close()
    return 0


def main(args: Any) -> int:
    """Run until SIGTERM, SIGINT, or, when ephemeral, until the last client has left."""
    if sys.platform == "win32":
        raise BadInput(
            "The daemon's named pipes have not been tried on Windows yet.",
            "Use `dragoman acp` or `dragoman rpc` there.",
        )
    return run(_serve(args))
