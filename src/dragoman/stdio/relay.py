"""Carries an editor's lines on stdio to a host and back, and outlives the host.

Lines pass unchanged. The relay reads just enough of them to know which requests are open, so that
it can wait for their answers at the end of input, and pick everything up again when the host went
away and came back: it introduces itself again, resumes the sessions, and repeats what was not
answered. A prompt is repeated under the same connection name, so the host answers with the turn it
runs already instead of running it twice.

A relay may have a spare way: a host of its own process. It goes there when the first one stays
away, and hands its sessions over as soon as the first one is there and nothing runs.
"""

import asyncio
import os
import sys
from collections import deque
from time import monotonic
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET

from dragoman.engine.faults import Fault
from dragoman.stdio.places import Head, Open, Places, ResumePoint, place_of, read
from dragoman.transports import stdio
from dragoman.wire.lines import READ_ON, UNSEEN, Ends
from dragoman.wire.link import Blob, Deaf, Link, Opener

MAX_LINE = 16 * 1024 * 1024  # what every transport of the protocol takes
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_LOOK_EVERY = 1.0  # seconds between two looks for the first way, while on the spare one
_DOUBT = 1.0  # seconds before a loss is noticed in which lines may have been lost
_MOST_RECENT = 64
_MOST_WAITING = 64 * 1024 * 1024
_LAST_WORDS = 5.0
_OWN = "dragoman-relay-"
_PLACES = ("session/new", "session/load", "session/resume", "session/fork")
_WITH_FOLDER = (*_PLACES, "session/list")
_FAILED, _TOO_LONG = -32603, -32600


class NotThere(Fault):
    """Nobody listens there now; somebody may later."""


class Taken(Fault):
    """Another host has a session of ours: the first one, which came back just now."""


class Way:
    """One way to a host."""

    label = ""  # how it is called in messages: "the daemon"
    half_closes = False  # the host ends the connection by itself when the client says nothing more

    async def connect(self, open: Opener, name: str) -> Link:
        """A connection, under a name that the client keeps. Raises NotThere, Fault."""
        raise NotImplementedError

    def busy(self) -> bool:
        """Something runs there that cannot be handed over now."""
        return False

    async def close(self) -> None:
        """Leave it for good."""


def _is_taken(answer: Head) -> bool:
    """Whether a session was refused because another process has it."""
    return answer.error is not UNSET and b'"SESSION_IN_USE"' in bytes(answer.error)


def _with_whole_path(line: bytes, head: Head) -> bytes:
    """A relative `cwd` is the editor's, which is ours: the daemon's folder is another one."""
    cwd = place_of(head.params).cwd
    if not cwd or os.path.isabs(cwd):
        return line
    # All else stays as it is written: JSON has numbers that none of ours can hold.
    message = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    params = msgspec.json.decode(message["params"], type=dict[str, msgspec.Raw])
    params["cwd"] = msgspec.Raw(msgspec.json.encode(os.path.abspath(os.path.expanduser(cwd))))
    message["params"] = msgspec.Raw(msgspec.json.encode(params))
    return msgspec.json.encode(message)


class Relay:
    """One editor's connection through to a host."""

    def __init__(
        self, program: str, way: Way, *, spare: Way | None = None, patience: float
    ) -> None:
        """`patience`: seconds that a host which was there may be away."""
        self._program = program
        self._way = self._first = way
        self._met = way  # the way that was connected last
        self._spare = spare
        self._patience = patience
        self._name = uuid4().hex
        self.editor: Link | None = None
        self._early: list[bytes] = []  # what the host said before the editor's side was there
        self._line: stdio.Stdio | None = None
        self._host: Link | None = None
        self.ear: Hostward | None = None  # hears the host that counts now
        self._ready = False  # the host knows us and our sessions: lines may pass
        self._waiting: list[bytes] = []  # lines that no host has taken yet
        self._size = 0
        # Sent just now: a connection that is dead but not yet known to be would have lost them.
        self._recent: deque[tuple[float, bytes]] = deque(maxlen=_MOST_RECENT)
        self._open: dict[Any, Open] = {}
        self._asked: dict[Any, str] = {}  # requests of the host without an answer
        self._hello: bytes | None = None  # the editor's initialize, once it was answered
        self._sessions: dict[str, ResumePoint] = {}
        self._places = Places()
        self._own: dict[str, asyncio.Future[Head]] = {}
        self._doubted = False  # the spare way was left once since the first one was there
        self._ended = False
        self._numbers = 0
        self._returning: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self.over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    # --- the beginning ---

    async def start(self, wire: int, link: Link | None = None, rest: bytes = b"") -> None:
        """Reach the host, then the editor: a missing host is told before the editor says a word.

        `rest` is what was read of the editor's input before.
        """
        self._host = link or await self._way.connect(self.hostward, self._name)
        self._met = self._way
        self._name_it()
        self._ready = True
        self._line = await stdio.serve(lambda link: Editor(self, link), stdout=wire, first=rest)
        self._look()

    def begin_with(self, way: Way) -> None:
        """Use another way first than the one that is wanted."""
        self._way = way

    def adopt(self, heard: list[bytes], told: list[bytes]) -> None:
        """Take over a conversation that began without us."""
        for line in heard:
            head = read(line)
            if head is not None and head.id is not UNSET and head.method is not UNSET:
                self._open[head.id] = Open(line, head, monotonic())
        for line in told:
            head = read(line)
            if head is not None and head.id is not UNSET and head.method is UNSET:
                self._answered(head)

    def hostward(self, link: Link) -> "Hostward":
        self.ear = Hostward(self, link)
        return self.ear

    async def flushed(self) -> None:
        """Wait until the editor has taken what was said last, if it does."""
        if self._line is not None:
            try:
                async with asyncio.timeout(_LAST_WORDS):
                    await self._line.gone.wait()
            except TimeoutError:
                return

    # --- from the editor ---

    def joined(self, link: Link) -> None:
        self.editor = link
        early, self._early = self._early, []
        for message in early:
            link.send(message)

    def heard(self, lines: list[bytes]) -> None:
        for line in lines:
            head = read(line)
            if head is not None and head.method in _WITH_FOLDER:
                line = _with_whole_path(line, head)
                head = read(line)  # as it is resumed later
            asks = head is not None and head.id is not UNSET and head.method is not UNSET
            if head is not None and head.id is not UNSET:
                if asks:
                    self._open[head.id] = Open(line, head)
                else:
                    self._asked.pop(head.id, None)
            if self._ready and self._host is not None and not self._host.closed:
                if asks:
                    assert head is not None
                    self._repeat(self._open[head.id])
                else:
                    self._host.send(line)
                    self._recent.append((monotonic(), line))
            elif not asks:  # requests are repeated from `_open`; everything else waits here
                self._wait(line)

    def _repeat(self, one: Open) -> None:
        assert self._host is not None
        one.sent = monotonic()
        if one.since < 0:
            one.since = self._places.since(one)
        self._host.send(one.line)

    def _wait(self, line: bytes) -> None:
        self._size += len(line)
        if self._size > _MOST_WAITING:
            self._fail("too much waits for the host")
            return
        self._waiting.append(line)

    def overlong(self, size: int, ends: Ends = UNSEEN) -> None:
        from dragoman.wire.overlong import id_of  # seldom needed

        text = f"The line is longer than {MAX_LINE} bytes. Send less in one message."
        self._refuse(id_of(ends), text, _TOO_LONG)

    def ended(self) -> None:
        """The editor has said everything: answers that are open still come."""
        self._ended = True
        if self._way.half_closes and self._ready and self._host is not None:
            self._host.eof()
            return
        for id, method in tuple(self._asked.items()):
            self._decline(id, method)
        self._leave_when_done()

    def _decline(self, id: Any, method: str) -> None:
        """Nobody is left to answer the host's questions."""
        self._asked.pop(id, None)
        if method == "session/request_permission":
            answer: dict[str, Any] = {"result": {"outcome": {"outcome": "cancelled"}}}
        else:
            answer = {"error": {"code": _FAILED, "message": "The client has gone."}}
        if self._host is not None:
            self._host.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, **answer}))

    def leave(self) -> None:
        self._finish(0)

    # --- from the host ---

    def told(self, messages: list[bytes]) -> None:
        for message in messages:
            if self._places.note(message):
                continue
            head = read(message)
            if head is not None and head.id is not UNSET:
                if head.method is not UNSET:
                    if self._ended and not self._way.half_closes:
                        self._decline(head.id, head.method)
                        continue
                    self._asked[head.id] = head.method
                elif isinstance(head.id, str) and head.id in self._own:
                    done = self._own.pop(head.id)
                    if not done.done():
                        done.set_result(head)
                    continue
                else:
                    self._answered(head)
            self._say_on(message)
        self._leave_when_done()

    def _say_on(self, message: bytes) -> None:
        if self.editor is not None:
            self.editor.send(message)
        else:
            self._early.append(message)

    def told_all(self, blob: Blob) -> None:
        """Updates for everybody who watches: there is no answer among them."""
        if self.editor is None:
            return
        ours = [self._places.note(message) for message in blob.messages]
        if not any(ours):
            self.editor.send_blob(blob)
            return
        for message, own in zip(blob.messages, ours, strict=True):
            if not own:
                self.editor.send(message)

    def _answered(self, head: Head) -> None:
        asked = self._open.pop(head.id, None)
        if asked is None and head.id is None:
            self._unnamed()
        if asked is None or head.result is UNSET:
            return
        method, params = asked.head.method, asked.head.params
        if method == "initialize":
            self._hello = asked.line
        elif method in _PLACES:
            place = place_of(params)
            place.sessionId = place_of(head.result).sessionId or (
                place.sessionId or place.session_id
            )
            if place.sessionId:
                self._sessions[place.sessionId] = place
        elif method in ("session/close", "session/stop", "session/delete"):
            place = place_of(params)
            self._sessions.pop(place.sessionId or place.session_id, None)
            self._places.forget(place.sessionId or place.session_id)

    def _unnamed(self) -> None:
        """An answer to nobody: version 2 gives it to a request whose id is a fraction."""
        for id in self._open:
            if isinstance(id, float) and not id.is_integer():
                del self._open[id]
                return

    def host_gone(self) -> None:
        self._host = None
        self._ready = False
        self._asked.clear()
        now = monotonic()
        self._waiting[:0] = [line for at, line in self._recent if now - at < _DOUBT]
        self._recent.clear()
        for done in self._own.values():
            done.cancel()
        self._own.clear()
        for id, one in tuple(self._open.items()):
            if one.lost(now) and self._places.since(one) == one.since:  # else it has begun
                del self._open[id]
                self._refuse(id, f"{self._way.label} ended the connection each time it got this.")
        if self._ended and self._way.half_closes and not self._open:
            self._finish(0)
        elif not self.over.done() and self._returning is None:
            self._returning = asyncio.ensure_future(self._return())
            self._returning.add_done_callback(self._returned)

    # --- again ---

    async def _return(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        wait = _FIRST_WAIT
        if self._way is self._met:
            self._say(f"{self._way.label} is away, waiting for it")
        while True:
            try:
                await self._introduced(self._way)
                break
            except (NotThere, asyncio.CancelledError) as problem:
                if isinstance(problem, asyncio.CancelledError) and self._host is not None:
                    raise
                if loop.time() + wait > until:
                    if self._spare is None or self._way is self._spare:
                        self._fail(f"{self._way.label} did not come back")
                        return
                    self._way, until = self._spare, loop.time() + self._patience
                    self._say(f"{self._first.label} stays away: going on with {self._way.label}")
                    continue
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
            except Taken:
                self._doubted = True
                self._host = self.ear = None
                self._asked.clear()
                await self._way.close()
                self._way, until, wait = self._first, loop.time() + self._patience, _FIRST_WAIT
            except Fault as fault:
                self._fail(str(fault))
                return
        if self._way is self._first:
            self._doubted = False
        back = self._way is self._met
        self._met = self._way
        self._say(f"{self._way.label} is back" if back else f"connected with {self._way.label}")
        self._look()

    def _returned(self, task: "asyncio.Task[None]") -> None:
        self._returning = None
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._fail(f"{type(problem).__name__}: {problem}")
        elif not self.over.done() and (self._host is None or not self._ready):
            self.host_gone()  # it went away again while we came back

    async def _introduced(self, way: Way) -> None:
        """Say again who we are and which sessions we have, then repeat what is open."""
        self._host = await way.connect(self.hostward, self._name)
        self._name_it()
        if self._hello is not None:
            hello = msgspec.json.decode(self._hello, type=dict[str, msgspec.Raw])
            await self._ask("initialize", hello.get("params"))
            for id, place in tuple(self._sessions.items()):
                had = {"join": True, **self._places.of(id)}  # joined also where there is no store
                params: dict[str, Any] = {"sessionId": id, "mcpServers": place.mcpServers or []}
                if place.cwd:
                    params["cwd"] = place.cwd
                again = await self._ask("session/resume", {**params, "_meta": {"dragoman": had}})
                if way is self._spare and not self._doubted and _is_taken(again):
                    raise Taken(f"Session {id} is in use.")
        for one in tuple(self._open.values()):
            self._repeat(one)
        waiting, self._waiting, self._size = self._waiting, [], 0
        for line in waiting:
            self._host.send(line)
        self._ready = True
        if self._ended and way.half_closes:
            self._host.eof()
        self._leave_when_done()

    def _name_it(self) -> None:
        """Tell the host under which name we come again, and that we want to know places."""
        if self._host is not None:
            params = {"name": self._name, "places": True}
            row = {"jsonrpc": "2.0", "method": "_dragoman/connection", "params": params}
            self._host.send(msgspec.json.encode(row))

    async def _ask(self, method: str, params: Any) -> Head:
        assert self._host is not None
        self._numbers += 1
        id = f"{_OWN}{self._numbers}"
        done: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self._own[id] = done
        row = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self._host.send(msgspec.json.encode(row))
        return await done

    # --- from the spare way to the first one ---

    def _look(self) -> None:
        ours = self._way is self._spare and self._way is not self._first
        if ours and self._looking is None and not self.over.done():
            self._looking = asyncio.ensure_future(self._hand_over())

    async def _hand_over(self) -> None:
        """Move to the first way once it is there and nothing runs on the spare one."""
        spare = self._way
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self.over.done() or self._way is not spare or self._ended:
                break
            if not self._ready or spare.busy():
                continue
            try:
                trial = await self._first.connect(_Deaf, "")
            except Fault:
                continue
            trial.close()
            if spare.busy():
                continue
            await self._move(spare)
            break
        self._looking = None

    async def _move(self, spare: Way) -> None:
        self._ready = False
        self._way, self._host, self.ear = self._first, None, None
        self._asked.clear()
        await spare.close()  # its sessions are free now; what waits for an answer waits on
        self._say(f"{self._first.label} is there: handing the sessions over")
        self.host_gone()

    # --- the end ---

    def _leave_when_done(self) -> None:
        if self._ended and not self._way.half_closes and not self._open and not self._waiting:
            self._finish(0)

    def _refuse(self, id: Any, text: str, code: int = _FAILED) -> None:
        row = {"jsonrpc": "2.0", "error": {"code": code, "message": text}, "id": id}
        if self.editor is not None:
            self.editor.send(msgspec.json.encode(row))

    def _say(self, text: str) -> None:
        print(f"{self._program}: {text}", file=sys.stderr, flush=True)

    def _fail(self, why: str) -> None:
        self._say(why)
        for id in tuple(self._open):
            self._refuse(id, f"The connection to the host is lost: {why}")
        self._open.clear()
        self._finish(1)

    def fail(self) -> None:
        """The host of this process could not be made; it has said why."""
        self._finish(1)

    def _finish(self, code: int) -> None:
        if not self.over.done():
            self.over.set_result(code)
            if self._looking is not None:
                self._looking.cancel()
            if self._host is not None:
                self._host.close()
            if self.editor is not None:
                self.editor.close()


class Editor:
    """The relay's hearer on stdio."""

    max_line = MAX_LINE
    limit_counts_newline = False
    max_pending = READ_ON * MAX_LINE
    wants_ends = True

    def __init__(self, relay: Relay, link: Link) -> None:
        relay.joined(link)
        self.hear = relay.heard
        self.overlong = relay.overlong
        self.ended = relay.ended
        self.lost = relay.leave


class _Deaf(Deaf):
    """Looks whether somebody listens, and says nothing."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def ended(self) -> None:
        self._link.close()


class Hostward(_Deaf):
    """The relay's hearer towards the host. A connection that was left says nothing any more.

    Frames have a limit of their own, which ends the connection.
    """

    max_line = 4 * MAX_LINE

    def __init__(self, relay: Relay, link: Link) -> None:
        super().__init__(link)
        self._relay = relay

    def hear(self, lines: list[bytes]) -> None:
        if self._relay.ear is self:
            self._relay.told(lines)

    def lost(self) -> None:
        if self._relay.ear is self:
            self._relay.host_gone()
