"""An app: declare what it offers and hears, then `run` it."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from .channel import Deliver, Message
from .declare import Declared, Watcher
from .kernel import Kernel, KernelError, socket_path
from .work import intercept, outcome, report, run

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0
# The newest of an id wins, so two programs of one id put each other out until one of them sees it.
_PUT_OUT, _SOON = 5, 3.0


class App(Declared):
    """Everything an app is. The decorators come first, then `run()` or `await serve()`."""

    def __init__(
        self,
        id: str = "",
        *,
        name: str = "",
        version: str = "0.1.0",
        description: str = "",
        socket: str | None = None,
        heartbeat: float = 30.0,
        give_up: float = 60.0,
    ) -> None:
        id = id or os.environ.get("OPENCLAWOS_APP_ID", "")
        if not id:
            raise ValueError("an app needs an id, like @me/weather")
        super().__init__(id, name, version, description)
        self.ready = asyncio.Event()
        self._socket = socket
        self._heartbeat = heartbeat
        self._give_up = give_up  # seconds without a kernel after which the app ends
        self._watched: dict[str, Watcher] = {}
        self._kernel: Kernel | None = None
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._lanes: dict[str, deque[Callable[[], Awaitable[Any]]]] = {}
        self._stop = asyncio.Event()
        self._count = 0

    # --- asking ---

    async def request(self, method: str, params: Any = None, *, timeout: float = 30.0) -> Any:
        """Any method of the protocol. Raises KernelError, ConnectionError, TimeoutError."""
        if self._kernel is None:
            raise ConnectionError("the app is not connected")
        return await self._kernel.request(method, params, timeout=timeout)

    async def queue(self, key: str, text: str, metadata: dict[str, Any] | None = None) -> str:
        """Begin a run in the session of this key; returns the run's id."""
        asked = {"sessionKey": key, "text": text, "metadata": metadata or {}}
        return str((await self.request("agent.queue", asked))["runId"])

    async def dispatch(self, key: str, text: str, **metadata: Any) -> bool:
        """Send a message to a session's channel; False when no app has that channel."""
        asked = {"sessionKey": key, "content": text, "metadata": metadata}
        return bool((await self.request("message.dispatch", asked))["queued"])

    async def call(self, method: str, params: Any = None) -> Any:
        """Call a gateway method of another app."""
        return (await self.request("gateway.call", {"method": method, "params": params}))["result"]

    async def config(self, path: str = "") -> Any:
        return (await self.request("config.get", {"path": path}))["value"]

    async def session(self, key: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = (await self.request("session.get", {"key": key}))["session"]
        return found

    async def sessions(self, **filter: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.request("session.list", {"filter": filter}))[
            "sessions"
        ]
        return found

    # --- running ---

    def run(self) -> None:
        """Run until SIGTERM, SIGINT, or until there is no kernel for a minute."""
        try:
            asyncio.run(self._run_with_signals())
        except KeyboardInterrupt:
            return
        except (KernelError, ConnectionError) as problem:
            raise SystemExit(f"{self.id}: {problem}") from None

    async def _run_with_signals(self) -> None:
        import signal

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, self.stop)
        await self.serve()

    def stop(self) -> None:
        """Leave: `serve` returns soon after."""
        self._stop.set()

    async def serve(self) -> None:
        """Connect, register, serve; come back after a lost connection. Raises KernelError when
        the kernel refuses the app, ConnectionError when it stays away too long or somebody else
        takes the app's place again and again.
        """
        loop = asyncio.get_running_loop()
        wait, since = _FIRST_WAIT, loop.time()
        put_out = 0
        began: list[asyncio.Task[Any]] = []
        told = ""  # where we said that we wait
        try:
            while not self._stop.is_set():
                try:
                    await self._connect()
                except OSError as problem:
                    place = socket_path(self._socket)
                    put_out = 0  # it is the kernel that goes and comes
                    if loop.time() - since > self._give_up:
                        why = os.strerror(problem.errno) if problem.errno else str(problem)
                        hint = "Start it: dragoman daemon --background"
                        raise ConnectionError(f"no kernel at {place}: {why}. {hint}") from None
                    if place != told:
                        told = place
                        print(f"waiting for the kernel at {place}", file=sys.stderr, flush=True)
                else:
                    told = ""
                    began = began or [
                        asyncio.ensure_future(self._beside(work)) for work in self._background
                    ]
                    came = loop.time()
                    await self._serve_connection()
                    wait, since = _FIRST_WAIT, loop.time()
                    put_out = put_out + 1 if since - came < _SOON else 0
                    if put_out == _PUT_OUT and not self._stop.is_set():
                        raise ConnectionError(
                            "another program of this id takes its place again and again. "
                            "Run it once, or give each an id of its own: dragoman apps"
                        )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), wait)
                wait = min(wait * 2, _LONGEST_WAIT)
        finally:
            for task in began:
                task.cancel()
            await asyncio.gather(*began, return_exceptions=True)
            await self._leave()

    async def _beside(self, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            await work()
        except Exception as error:  # without its own work an app is of no use
            report("background work", error)
            self.stop()

    async def _connect(self) -> None:
        kernel = await Kernel.connect(socket_path(self._socket), self._event, self._chunk)
        self._kernel = kernel
        try:
            kernel.token = (await kernel.request("app.register", {"manifest": self.manifest()}))[
                "token"
            ]
            for (kind, _), offered in self._offered.items():
                await self._grant(kind, offered.config)
            for name in self._channels:
                await self._grant("channel", {"channelId": name, "id": name})
            hooks = [*self._observers, *self._interceptors]
            if self._channels:
                hooks.append("message_sending")
            if hooks:
                asked = {"events": list(dict.fromkeys(hooks))}
                denied = (await kernel.request("hook.subscribe", asked))["denied"]
                if denied:
                    raise KernelError("CAPABILITY_DENIED", f"hooks denied: {', '.join(denied)}")
            for number, (paths, function) in enumerate(self._watchers):
                self._watched[f"watch-{number}"] = function
                asked_paths = {"paths": paths}
                await kernel.request("config.watch", asked_paths, id=f"watch-{number}")
            await kernel.request("app.ready", {})
        except BaseException:
            await kernel.close()
            self._kernel = None
            raise
        self.ready.set()

    async def _grant(self, kind: str, config: dict[str, Any]) -> None:
        assert self._kernel is not None
        asked = {"type": kind, "config": config}
        granted = await self._kernel.request("capability.register", asked)
        if not granted["granted"]:
            raise KernelError("CAPABILITY_DENIED", granted.get("reason", "denied"))

    async def _serve_connection(self) -> None:
        assert self._kernel is not None
        closed, stopped = self._kernel.closed, asyncio.ensure_future(self._stop.wait())
        beats = asyncio.ensure_future(self._beat())
        try:
            await asyncio.wait({closed, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.ready.clear()
            stopped.cancel()
            beats.cancel()
            if closed.done():
                self._kernel = None
                for task in tuple(self._tasks.values()):
                    task.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            with suppress(KernelError, ConnectionError, TimeoutError):
                await self.request("app.heartbeat", {"status": {"status": "healthy"}})

    async def _leave(self) -> None:
        for task in tuple(self._tasks.values()):
            task.cancel()
        if self._kernel is not None:
            with suppress(KernelError, ConnectionError, TimeoutError):
                await self.request("app.shutdown", {"reason": "stopped"}, timeout=5.0)
            await self._kernel.close()
            self._kernel = None

    # --- events ---

    def _event(self, name: str, payload: dict[str, Any]) -> None:
        event_id = str(payload.get("eventId", ""))
        if name == "capability:invoke":
            offered = self._offered.get((payload.get("type", ""), payload.get("name", "")))
            if offered is not None:
                send = self._sender(event_id)
                self._spawn(event_id, run(offered, payload, send))
        elif name == "capability:cancel":
            task = self._tasks.get(event_id)
            if task is not None:
                task.cancel()
        elif name.startswith("hook:"):
            self._hook(name[5:], payload, event_id)

    def _hook(self, hook: str, payload: dict[str, Any], event_id: str) -> None:
        data, context = payload.get("data") or {}, payload.get("context") or {}
        channel = self._channels.get(data.get("channelId", ""))
        if hook == "message_sending" and channel is not None:
            deliver = channel.delivers
            if deliver is not None:
                message = Message(
                    channel.name,
                    str(data.get("target", "")),
                    str(data.get("content", "")),
                    data.get("metadata") or {},
                    str(context.get("sessionKey", "")),
                )
                deliver_in_turn = self._delivery(deliver, message, data, context)
                self._in_turn(f"channel {channel.name}", deliver_in_turn)
            return
        for observer in self._observers.get(hook, ()):
            self._in_turn(f"hook {hook}", lambda o=observer: outcome(o(data, context)))  # type: ignore[misc]
        if hook in self._interceptors:
            self._spawn(event_id, self._intercept(hook, data, context, event_id))

    def _delivery(
        self, deliver: Deliver, message: Message, data: dict[str, Any], context: dict[str, Any]
    ) -> Callable[[], Awaitable[None]]:
        """Sends a message out, after the app's own say: the kernel does not ask a channel's app."""

        async def send() -> None:
            said = await intercept(self._interceptors.get("message_sending", []), data, context)
            result = said.get("result") or {}
            if result.get("block") or result.get("cancel") or result.keys() == {"error"}:
                return
            final = {**data, **result}
            for observer in self._observers.get("message_sending", ()):
                await outcome(observer(final, context))
            target, text = str(final.get("target", "")), str(final.get("content", ""))
            changes = {"target": target, "text": text, "metadata": final.get("metadata") or {}}
            await deliver(msgspec.structs.replace(message, **changes))

        return send

    async def _intercept(
        self, hook: str, data: dict[str, Any], context: dict[str, Any], event_id: str
    ) -> None:
        said = await intercept(self._interceptors[hook], data, context)
        if self._kernel is not None:
            with suppress(ConnectionError):
                self._kernel.send("hook.result", {"eventId": event_id, **said})

    def _sender(self, event_id: str) -> Callable[[Any], None]:
        def send(result: Any) -> None:
            if self._kernel is None:
                return
            with suppress(ConnectionError):  # nobody is there who could hear it
                try:
                    self._kernel.send("hook.result", {"eventId": event_id, "result": result})
                except ValueError as problem:  # too large
                    failed = {"error": {"message": str(problem)}}
                    self._kernel.send("hook.result", {"eventId": event_id, "result": failed})

        return send

    def _in_turn(self, lane: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Run one after the other what must keep its order."""
        waiting = self._lanes.setdefault(lane, deque())
        waiting.append(work)
        if len(waiting) == 1:
            self._spawn(lane, self._run_lane(lane, waiting))

    async def _run_lane(self, lane: str, waiting: deque[Callable[[], Awaitable[Any]]]) -> None:
        try:
            while waiting:
                try:
                    await waiting[0]()
                except Exception as error:
                    report(lane, error)
                waiting.popleft()
        finally:
            waiting.clear()

    def _spawn(self, key: str, work: Any) -> None:
        self._count += 1
        key = key or f"work {self._count}"
        task = asyncio.ensure_future(work)
        self._tasks[key] = task

        def ended(task: asyncio.Future[Any]) -> None:
            if self._tasks.get(key) is task:  # what came next in its lane may have its place by now
                del self._tasks[key]

        task.add_done_callback(ended)

    def _chunk(self, request_id: str, chunk: Any, done: bool) -> None:
        watcher = self._watched.get(request_id)
        if watcher is not None and isinstance(chunk, dict) and not done:
            path, old, new = chunk.get("path"), chunk.get("oldValue"), chunk.get("newValue")
            self._in_turn("config", lambda: outcome(watcher(path, old, new)))  # type: ignore[arg-type]
