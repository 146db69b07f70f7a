"""One shell for the connections of every dialect: requests in, exactly one answer to each out.

A dialect gives a `Table` of verbs, once for all its connections, and for each connection a `Party`
that writes answers and failures in its own words. The shell finds the verb, reads its params, runs
it in its order, counts what is in flight, and answers whatever happens:

- `free`: a plain function is answered on the spot, a coroutine gets a task of its own.
- `pool`: so many at once, the others wait.
- `serial`: one after the other; in a `strict` table every answer keeps the order of its request.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import CoroutineType
from typing import Any, Generic

import msgspec
from msgspec import UNSET

from dragoman.holding import Holder

from .calls import Outbound
from .jsonrpc import ABSENT, Batch, BatchReply, Invalid, Request, Response, reply
from .link import Link, Party
from .verbs import (
    UNREADABLE,
    After,
    C,
    Cancelled,
    Crowded,
    Table,
    UnknownMethod,
    Verb,
    bad_params,
)

Send = Callable[[bytes], None]
Read = Callable[[list[bytes]], Sequence[Any]]
_BARE = b"{}"


class Call(Generic[C]):
    """One request that is not answered on the spot. It is answered once, whoever tries again."""

    __slots__ = ("_send", "_shell", "conn", "done", "id", "verb")

    def __init__(self, shell: "Shell", verb: Verb, id: Any, send: Send) -> None:
        self._shell = shell
        self._send = send
        self.conn: C = shell.party  # type: ignore[assignment]  # whose verb it is
        self.verb = verb
        self.id = id
        self.done = False
        shell.working += 1

    @property
    def alone(self) -> bool:
        """Whether it came by itself and not as part of a batch."""
        return self._send == self._shell.link.send

    @property
    def silent(self) -> bool:
        """It is a notification: nobody waits for an answer."""
        return self.id is UNSET

    def reply(self, value: Any) -> None:
        if not self.done:
            then = None
            if type(value) is After:
                value, then = value.result, value.then
            self._shell.reply(self.verb, self.id, value, self._send)
            self.finish()
            if then is not None:
                then()

    def fail(self, problem: BaseException) -> None:
        if not self.done:
            said = self._shell.told(self.verb, self.id, problem)
            if said is not None:
                self._send(said)
            self.finish()

    def say(self, answer: bytes) -> None:
        """Answer with a response that is written already."""
        if not self.done:
            if self.id is not UNSET:
                self._send(answer)
            self.finish()

    def is_followed_by(self, verb: Verb) -> bool:
        """Whether a request of this kind came already and waits behind it."""
        lane = self._shell.line(self.verb.order)
        return any(behind.verb is verb for behind, _ in lane.jobs)

    def finish(self) -> None:
        """It needs no answer of the shell's any more."""
        if not self.done:
            self.done = True
            shell = self._shell
            shell.working -= 1
            if not shell.working and (shell.ended or shell.stopped):
                shell.party.rested()


class Lane(Holder):
    """Requests that wait for others to end."""

    width: int
    workers: int = 0
    jobs: deque[tuple[Call[Any], Any]] = msgspec.field(default_factory=deque)


_SAID = Verb(lambda call, said: call.say(said), direct=True)  # an answer that waits for its place


class Shell:
    """Serves one connection.

    Thousands may be open and silent, so what few have is made when they do.
    """

    __slots__ = ("_lanes", "_table", "_tasks", "ended", "link", "party", "stopped", "working")

    def __init__(self, table: Table, party: Party) -> None:
        self._table = table
        self.party = party
        self.link: Link = party.link
        self.working = 0  # calls that are not answered yet
        self.ended = False  # the client will send nothing more
        self.stopped = False  # nothing more is begun
        self._tasks: dict[asyncio.Task[None], Call[Any] | None] | None = None
        self._lanes: dict[str, Lane] | None = None

    def use(self, table: Table) -> None:
        """Serve by another table from the next request on: the client chose a version."""
        self._table = table

    # --- lines ---

    def hear(self, lines: list[bytes]) -> None:
        """Take lines, as the table's `read` reads them."""
        table, party, send = self._table, self.party, self.link.send
        kind: type[Any] = table.request
        at_hand: str | None = None  # the method whose quick answer is made
        line, takes_none = b"", False
        quick: Callable[[Any], bytes | None] | None = None  # of an envelope that is not JSON-RPC's
        read = table.read
        assert read is not None
        try:
            messages = read(lines)
        except Exception:
            messages = self._read_singly(lines, read)
        for message in messages:
            if type(message) is not kind:
                at_hand = None
                self._other(message, send)
            elif quick is not None and message.method == at_hand:
                said = quick(message)
                if said is not None:
                    send(said)
                    continue
                at_hand = quick = None
                self._request(table.verbs[message.method], message, send)
            elif (
                message.method == at_hand
                and type(id := message.id) is int
                and (takes_none or message.params is ABSENT)
            ):
                send(line % id)
                continue
            else:
                at_hand = None
                table = self._table
                verb = table.verbs.get(message.method)
                if (
                    verb is not None
                    and verb.quick is not None
                    and (verb.order == "free" or not self._must_wait(verb))
                ):
                    if kind is not Request:
                        at_hand, quick = message.method, verb.quick(party)
                        said = None if quick is None else quick(message)
                        if said is not None:
                            send(said)
                            continue
                        at_hand = quick = None
                    id, params = message.id, message.params
                    bare = not params or verb.read is None or bytes(params) == _BARE
                    if type(id) is int and bare:
                        made = verb.quick(party)
                        if made is not None:
                            at_hand, line, takes_none = message.method, made, verb.read is None
                            send(line % id)
                            continue
                if verb is None or table.gated:
                    self._request(verb, message, send)
                else:
                    self.take(verb, message.id, message.params, send)
            if self.stopped:
                return

    def _read_singly(self, lines: list[bytes], read: Read) -> Sequence[Any]:
        """Read lines of which one breaks the reader: that one is answered, the others are heard."""
        found: list[Any] = []
        for line in lines:
            try:
                found += read([line])
            except Exception as problem:
                self.fail(None, None, problem, self.link.send)
        return found

    def _other(self, message: object, send: Send) -> None:
        if type(message) is Response:
            self.party.responded(message)
        elif type(message) is Batch:
            answers = BatchReply(message, send)
            for item in message.items:
                if type(item) is Request:
                    self._request(self._table.verbs.get(item.method), item, answers.sink(item))
                else:
                    self._other(item, answers.sink(item))
        else:
            self.say(self.party.invalid(message), send)

    def _request(self, verb: Verb | None, request: Any, send: Send) -> None:
        problem = self.party.refuses(verb, request) if self._table.gated else None
        if problem is not None:
            self.fail(verb, request.id, problem, send)
        elif verb is None:
            self.fail(None, request.id, UnknownMethod(request.method), send)
        else:
            self.take(verb, request.id, request.params, send)

    # --- one request, however it came ---

    def take(self, verb: Verb, id: object, raw: object, send: Send) -> None:
        """Run a verb and see to it that the request gets its answer."""
        try:
            params = None if verb.read is None else verb.read(raw or self._table.bare)
        except UNREADABLE as problem:
            self.fail(verb, id, bad_params(problem), send)
            return
        except Exception as problem:
            self.fail(verb, id, problem, send)
            return
        if verb.simple:
            try:
                value = verb.run(self.party, params)
                if type(value) is CoroutineType:  # what is at hand was not enough
                    call: Call[Any] = Call(self, verb, id, send)
                    self._task(self._await(call, value), call)
                elif id is not UNSET:
                    said = self._table.answer
                    send(reply(id, value) if said is None else said(self.party, verb, id, value))
            except Exception as problem:
                self.fail(verb, id, problem, send)
        elif verb.order != "free" and (verb.waits or self._must_wait(verb)):
            self._enqueue(Call(self, verb, id, send), params, verb.order)
        elif verb.waits and self.working >= self._table.at_once:
            self.fail(verb, id, Crowded(self._table.at_once), send)
        elif not (verb.direct or verb.waits):
            try:
                self.reply(verb, id, verb.run(self.party, params), send)
            except Exception as problem:
                self.fail(verb, id, problem, send)
        else:
            call = Call(self, verb, id, send)
            try:
                value = verb.run(call if verb.direct else self.party, params)
            except Exception as problem:
                call.fail(problem)
                return
            if type(value) is CoroutineType:
                self._task(self._await(call, value), call)
            elif value is not None or not verb.direct:
                call.reply(value)

    def _task(self, work: Coroutine[Any, Any, None], call: Call[Any] | None) -> None:
        task = asyncio.get_running_loop().create_task(work)
        if self._tasks is None:
            self._tasks = {}
        self._tasks[task] = call
        task.add_done_callback(self._done)

    async def _await(self, call: Call[Any], work: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await work
        except Exception as problem:
            call.fail(problem)
        except BaseException:
            call.fail(Cancelled())
            raise
        else:
            if value is not None or not call.verb.direct:
                call.reply(value)

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._tasks is not None:
            self._tasks.pop(task, None)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.party.trouble(None, problem)

    # --- requests that wait for others ---

    def line(self, order: str) -> Lane:
        if self._lanes is None:
            self._lanes = {}
        lane = self._lanes.get(order)
        if lane is None:
            lane = self._lanes[order] = Lane(self._table.pool if order == "pool" else 1)
        return lane

    def _must_wait(self, verb: Verb) -> bool:
        """Whether a verb that need not wait has to: something is before it, or not ready."""
        if verb.order == "free":
            return False
        if self._lanes and verb.order == "serial" and self.line("serial").workers:
            return True
        return self._table.prepares and not self.party.is_ready()

    def _enqueue(self, call: Call[Any], params: object, order: str) -> None:
        lane = self.line(order)
        if lane.workers < lane.width:
            lane.workers += 1
            self._task(self._work(lane, call, params), None)
        elif len(lane.jobs) < self._table.waiting:
            lane.jobs.append((call, params))
        elif self._table.strict and not self._table.may_overtake:  # there is no way on
            self.link.send(self.party.failure(None, None, Crowded(self._table.waiting)))
            self.stop()
            self.link.close()
        else:
            call.fail(Crowded(self._table.waiting))

    async def _work(self, lane: Lane, call: Call[Any], params: object) -> None:
        try:
            while not self.stopped:
                await self._await(call, self._prepared(call, params))
                if not lane.jobs:
                    return
                call, params = lane.jobs.popleft()
            call.finish()
        finally:
            lane.workers -= 1

    async def _prepared(self, call: Call[Any], params: object) -> object:
        if self._table.prepares:
            await self.party.prepare()
            if self.stopped:  # nobody is there any more
                raise Cancelled
        value = call.verb.run(call if call.verb.direct else self.party, params)
        return await value if type(value) is CoroutineType else value

    # --- answers ---

    def reply(self, verb: Verb, id: Any, value: Any, send: Send) -> None:
        """Send a result."""
        if id is UNSET:
            return
        try:
            answer = self._table.answer
            said = reply(id, value) if answer is None else answer(self.party, verb, id, value)
        except Exception as problem:
            self.fail(verb, id, problem, send)
        else:
            send(said)

    def fail(self, verb: Verb | None, id: object, problem: BaseException, send: Send) -> None:
        """Send what went wrong."""
        said = self.told(verb, id, problem)
        if said is not None:
            self.say(said, send, id)

    def told(self, verb: Verb | None, id: Any, problem: BaseException) -> bytes | None:
        """The response for what went wrong; it is reported when nobody meant it to."""
        if not isinstance(problem, self._table.expected):
            self.party.trouble(verb, problem)
        if id is UNSET:
            return None  # a notification never gets an answer
        try:
            return self.party.failure(verb, id, problem)
        except Exception as again:  # it cannot be told as it is
            self.party.trouble(verb, again)
            return self.party.failure(verb, id, RuntimeError(type(problem).__name__))

    def say(self, answer: bytes, send: Send, id: object = None) -> None:
        """Send an answer that is written already, in its place when the order is strict."""
        if self._table.strict and self._lanes and self.line("serial").workers:
            self._enqueue(Call(self, _SAID, id, send), answer, "serial")
        else:
            send(answer)

    # --- stopping ---

    @property
    def tasks(self) -> Mapping[asyncio.Task[None], Call[Any] | None]:
        """What runs for this connection now, and what it answers."""
        return self._tasks or {}

    def tasks_of(self, id: object) -> list[asyncio.Task[None]]:
        """What works on the request with this id."""
        return [
            task for task, call in self.tasks.items() if call is not None and is_same(call.id, id)
        ]

    def cancel(self, id: object) -> None:
        """Stop what answers a request; it is still answered."""
        for task in self.tasks_of(id):
            # Not at once: a task that has not begun yet would never answer.
            asyncio.get_running_loop().call_soon(task.cancel)

    def end(self) -> None:
        """The client will send nothing more: tell the party when it has its answers."""
        self.ended = True
        if not self.working:
            self.party.rested()

    def stop(self) -> None:
        """Begin nothing more; what waits is dropped."""
        self.stopped = True
        for lane in (self._lanes or {}).values():
            jobs, lane.jobs = lane.jobs, deque()
            for call, _ in jobs:
                call.done = True
            self.working -= len(jobs)

    def lose(self, *, cancel: bool = False) -> None:
        """The connection is gone; what runs goes on, unless it is to be cancelled."""
        self.ended = True
        self.stop()
        if cancel:
            for task in tuple(self.tasks):
                task.cancel()


class Served(Party):
    """A party with a shell, made with its first line: thousands may be open and silent."""

    __slots__ = ("_shell",)
    table: Table

    def __init__(self) -> None:
        self._shell: Shell | None = None

    @property
    def shell(self) -> Shell:
        if self._shell is None:
            self._shell = Shell(self.table, self)
        return self._shell

    def hear(self, lines: list[bytes]) -> None:
        (self._shell or self.shell).hear(lines)


class Conversing(Served):
    """A party of JSON-RPC that asks its client, too."""

    __slots__ = ("_deaf", "_outbound")

    def __init__(self) -> None:
        super().__init__()
        self._outbound: Outbound | None = None
        self._deaf = False  # it will answer nothing more

    @property
    def outbound(self) -> Outbound:
        """Our own requests to this client."""
        if self._outbound is None:
            self._outbound = Outbound(self.link.send)
            if self._deaf:
                self._outbound.lose()
        return self._outbound

    def unheard(self) -> None:
        """The client answers nothing more."""
        self._deaf = True
        if self._outbound is not None:
            self._outbound.lose()

    def responded(self, response: Response) -> None:
        self.outbound.settle(response)

    def invalid(self, message: Invalid) -> bytes:
        return message.reply()


class Pause:
    """Whether a client reads too slowly. Asks its link once to be told when that ends."""

    __slots__ = ("_armed", "_link", "_resumed")

    def __init__(self, link: Link, resumed: Callable[[], None]) -> None:
        self._link = link
        self._resumed = resumed
        self._armed = False

    def __call__(self) -> bool:
        if not self._link.paused:
            return False
        self.ask()
        return True

    def ask(self) -> None:
        """Be told when the client reads again, once."""
        if not self._armed:
            self._armed = True
            self._link.on_resume(self._resume)

    def _resume(self) -> None:
        self._armed = False
        self._resumed()


def is_same(id: object, other: object) -> bool:
    """Whether two ids are one; 1, "1" and 1.0 are three."""
    return type(id) is type(other) and bool(id == other)
