"""`dragoman acp-bridge`: lines of an editor on stdio become frames of the gateway and back.

Lines pass unchanged. The bridge reads just enough of them to know which requests are open, so that
it can wait for their answers at the end of input, and to pick everything up again when the gateway
went away and came back: it introduces itself again, resumes the sessions, and repeats what was not
answered. A prompt is repeated under the same connection name, so the host answers with the turn it
runs already instead of running it twice.
"""

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.engine.faults import Fault
from dragoman.host import tokens
from dragoman.stdio import dial
from dragoman.transports import stdio
from dragoman.transports.loop import run
from dragoman.wire.link import Link

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 2.0
_PATIENCE = 60.0  # seconds that a gateway which was there may be away
_DOUBT = 1.0  # seconds before a loss is noticed in which lines may have been lost
_MOST_RECENT = 64
_MOST_WAITING = 64 * 1024 * 1024
_MAX_LINE = 64 * 1024 * 1024
_LAST_WORDS = 5.0
_OWN = "dragoman-bridge-"
_JOIN = {"dragoman": {"join": True}}  # the host may have no store, and the sessions still
_GONE = -32603


class Head(msgspec.Struct):
    """What the bridge reads of a message."""

    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


class Place(msgspec.Struct):
    """What is needed to resume a session."""

    sessionId: str = ""
    session_id: str = ""
    cwd: str = ""
    mcpServers: Any = None


_head = msgspec.json.Decoder(Head)
_place = msgspec.json.Decoder(Place)


def read(line: bytes) -> Head | None:
    try:
        return _head.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Bridge:
    """One editor's connection through to the gateway."""

    def __init__(self, find: Callable[[], str], token: str, context: Any, agent: str = "") -> None:
        self._find = find  # where the gateway listens: a host that comes back may have moved
        self._token = token
        self._context = context
        self._query = {"agent": agent, "connection": uuid4().hex}
        self._stdio: Link | None = None
        self._line: stdio.Stdio | None = None
        self._ws: Any = None
        self._ready = False  # the gateway knows us and our sessions: lines may pass
        self._waiting: list[bytes] = []  # lines that no gateway has taken yet
        self._size = 0
        # Sent just now: a connection that is dead but not yet known to be would have lost them.
        self._recent: deque[tuple[float, bytes]] = deque(maxlen=_MOST_RECENT)
        self._open: dict[Any, tuple[bytes, Head]] = {}  # requests of the editor without an answer
        self._asked: dict[Any, str] = {}  # requests of the host without an answer
        self._hello: bytes | None = None  # the editor's initialize, once it was answered
        self._sessions: dict[str, Place] = {}
        self._own: dict[str, asyncio.Future[None]] = {}
        self._ended = False
        self._numbers = 0
        self._reconnecting: asyncio.Task[None] | None = None
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def start(self, wire: int) -> None:
        """Connect first, so that a missing daemon is told before the editor says anything."""
        await self._connect()
        self._ready = True
        self._line = await stdio.serve(lambda link: Editor(self, link), stdout=wire)

    async def flushed(self) -> None:
        """Wait until the editor has taken what was said last, if it does."""
        if self._line is not None:
            try:
                async with asyncio.timeout(_LAST_WORDS):
                    await self._line.gone.wait()
            except TimeoutError:
                return

    async def _connect(self) -> None:
        self._ws = await dial.connect(
            self._find(),
            self._token,
            lambda link: Gateway(self, link),
            context=self._context,
            query=self._query,
        )

    # --- from the editor ---

    def joined(self, link: Link) -> None:
        self._stdio = link

    def heard(self, lines: list[bytes]) -> None:
        for line in lines:
            head = read(line)
            if head is not None and head.id is not UNSET:
                if head.method is not UNSET:
                    self._open[head.id] = (line, head)
                else:
                    self._asked.pop(head.id, None)
            repeated = head is not None and head.id is not UNSET and head.method is not UNSET
            if self._ready and self._ws is not None and not self._ws.closed:
                self._ws.send(line)
                if not repeated:
                    self._recent.append((monotonic(), line))
            elif not repeated:  # requests are repeated from `_open`; everything else waits here
                self._wait(line)

    def _wait(self, line: bytes) -> None:
        self._size += len(line)
        if self._size > _MOST_WAITING:
            self._fail("too much waits for the gateway")
            return
        self._waiting.append(line)

    def ended(self) -> None:
        """The editor has said everything: answers that are open still come."""
        self._ended = True
        for id, method in tuple(self._asked.items()):
            self._decline(id, method)
        self._leave_when_done()

    def _decline(self, id: Any, method: str) -> None:
        """Nobody is left to answer the host's questions."""
        self._asked.pop(id, None)
        if method == "session/request_permission":
            answer: dict[str, Any] = {"result": {"outcome": {"outcome": "cancelled"}}}
        else:
            answer = {"error": {"code": _GONE, "message": "The client has gone."}}
        if self._ws is not None:
            self._ws.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, **answer}))

    def editor_gone(self) -> None:
        self._finish(0)

    # --- from the gateway ---

    def told(self, messages: list[bytes]) -> None:
        for message in messages:
            head = read(message)
            if head is not None and head.id is not UNSET:
                if head.method is not UNSET:
                    if self._ended:
                        self._decline(head.id, head.method)
                        continue
                    self._asked[head.id] = head.method
                elif isinstance(head.id, str) and head.id in self._own:
                    done = self._own.pop(head.id)
                    if not done.done():
                        done.set_result(None)
                    continue
                else:
                    self._answered(head)
            if self._stdio is not None:
                self._stdio.send(message)
        self._leave_when_done()

    def _answered(self, head: Head) -> None:
        asked = self._open.pop(head.id, None)
        if asked is None or head.result is UNSET:
            return
        line, request = asked
        if request.method == "initialize":
            self._hello = line
        elif request.method in ("session/new", "session/load", "session/resume"):
            place = _place.decode(request.params) if request.params is not UNSET else Place()
            made = _place.decode(head.result) if head.result != b"null" else Place()
            id = made.sessionId or place.sessionId or place.session_id
            if id:
                place.sessionId = id
                self._sessions[id] = place
        elif request.method in ("session/close", "session/stop", "session/delete"):
            if request.params is not UNSET:
                place = _place.decode(request.params)
                self._sessions.pop(place.sessionId or place.session_id, None)

    def gateway_gone(self) -> None:
        self._ws = None
        self._ready = False
        self._asked.clear()
        now = monotonic()
        self._waiting[:0] = [line for at, line in self._recent if now - at < _DOUBT]
        self._recent.clear()
        for done in self._own.values():
            done.cancel()
        self._own.clear()
        if not self.over.done() and self._reconnecting is None:
            self._reconnecting = asyncio.ensure_future(self._reconnect())
            self._reconnecting.add_done_callback(self._reconnected)

    # --- again ---

    async def _reconnect(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        wait = _FIRST_WAIT
        print("dragoman acp-bridge: the gateway is away, waiting for it", file=sys.stderr)
        while True:
            try:
                await self._connect()
                await self._introduce()
                break
            except (dial.NotThere, asyncio.CancelledError) as problem:
                if isinstance(problem, asyncio.CancelledError) and self._ws is not None:
                    raise
                if loop.time() + wait > until:
                    self._fail("the gateway did not come back")
                    return
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
            except Fault as fault:
                self._fail(str(fault))
                return
        print("dragoman acp-bridge: the gateway is back", file=sys.stderr)

    def _reconnected(self, task: "asyncio.Task[None]") -> None:
        self._reconnecting = None
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._fail(f"{type(problem).__name__}: {problem}")
        elif not self.over.done() and (self._ws is None or not self._ready):
            self.gateway_gone()  # it went away again while we came back

    async def _introduce(self) -> None:
        """Say again who we are and which sessions we have, then repeat what is open."""
        if self._hello is not None:
            hello = msgspec.json.decode(self._hello)
            await self._ask("initialize", hello.get("params"))
            for id, place in tuple(self._sessions.items()):
                servers = place.mcpServers or []
                await self._ask(
                    "session/resume",
                    {"sessionId": id, "cwd": place.cwd, "mcpServers": servers, "_meta": _JOIN},
                )
        for line, _ in tuple(self._open.values()):
            self._ws.send(line)
        waiting, self._waiting, self._size = self._waiting, [], 0
        for line in waiting:
            self._ws.send(line)
        self._ready = True
        self._leave_when_done()

    async def _ask(self, method: str, params: Any) -> None:
        self._numbers += 1
        id = f"{_OWN}{self._numbers}"
        done = self._own[id] = asyncio.get_running_loop().create_future()
        row = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self._ws.send(msgspec.json.encode(row))
        await done

    # --- the end ---

    def _leave_when_done(self) -> None:
        if self._ended and not self._open and not self._waiting:
            self._finish(0)

    def _fail(self, why: str) -> None:
        print(f"dragoman acp-bridge: {why}", file=sys.stderr)
        for id in tuple(self._open):
            error = {"code": _GONE, "message": f"The connection to the host is lost: {why}"}
            row = {"jsonrpc": "2.0", "id": id, "error": error}
            if self._stdio is not None:
                self._stdio.send(msgspec.json.encode(row))
        self._open.clear()
        self._finish(1)

    def _finish(self, code: int) -> None:
        if not self.over.done():
            self.over.set_result(code)
            if self._ws is not None:
                self._ws.close()
            if self._stdio is not None:
                self._stdio.close()


class Editor:
    """The bridge's hearer on stdio."""

    max_line = _MAX_LINE
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, bridge: Bridge, link: Link) -> None:
        self._bridge = bridge
        bridge.joined(link)
        self.hear = bridge.heard
        self.ended = bridge.ended
        self.lost = bridge.editor_gone

    def overlong(self, size: int) -> None:
        print(f"dragoman acp-bridge: a line of over {size} bytes was skipped", file=sys.stderr)


class Gateway:
    """The bridge's hearer on the WebSocket."""

    max_line = _MAX_LINE
    limit_counts_newline = False
    max_pending = 0

    def __init__(self, bridge: Bridge, link: Link) -> None:
        self.hear = bridge.told
        self.lost = bridge.gateway_gone

    def overlong(self, size: int) -> None:
        return None  # frames have a limit of their own, which ends the connection

    def ended(self) -> None:
        return None


def main(args: Any) -> int:
    """Run until the editor has left and has all its answers."""
    wire = stdio.claim_stdout()
    try:
        where, loaded = tokens.read(args.config_dir)
        for warning in loaded.warnings:
            print(f"dragoman acp-bridge: {warning}", file=sys.stderr)
        settings = loaded.settings
        dial.check_there(tokens.address(where, settings))  # before a token is made for nobody
        token = dial.find_token(where, settings, args.pair_code or "")
        context = dial.tls(tokens.address(where, settings), settings)
        return run(
            _serve(
                wire,
                lambda: tokens.address(where, settings),
                token,
                context,
                args.agent or "",
            )
        )
    except Fault as fault:
        print(f"dragoman acp-bridge: {fault}", file=sys.stderr)
        return 1


async def _serve(wire: int, find: Callable[[], str], token: str, context: Any, agent: str) -> int:
    bridge = Bridge(find, token, context, agent)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, bridge.editor_gone)
    await bridge.start(wire)
    code = await bridge.over
    await bridge.flushed()
    return code
