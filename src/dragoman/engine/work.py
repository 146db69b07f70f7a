"""What a session is to do: work on its way through the inbox, and the turn that is under way.

Work tells its end to whoever asked for it. A turn under way has a draft: what its step streamed.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dragoman.holding import Holder

from . import events as ev
from .content import Prompt
from .events import Event, Outcome, Stop, Who


class Finished(msgspec.Struct, frozen=True):
    """How a piece of work ended."""

    turn: str
    outcome: Outcome
    stop: Stop
    text: str = ""
    error: str = ""
    cause: str = ""


def _future() -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().create_future()


class Work(Holder):
    """A prompt, a compaction, or a turn to take up again.

    `kept`, `started` and `done` are futures: it may be acknowledged, it began, it ended.
    """

    kind: Literal["prompt", "compact", "resume"]
    turn: str
    content: Prompt = ()
    by: Who | None = None
    key: str = ""
    metadata: dict[str, Any] | None = None
    stopped: tuple[str, bool] | None = None  # cancelled before it began: cause, interrupt
    timer: asyncio.TimerHandle | None = None
    stored: bool = False  # it is in the store while it waits
    kept: asyncio.Future[str] = msgspec.field(default_factory=_future)  # it survives this process
    started: asyncio.Future[str] = msgspec.field(default_factory=_future)
    done: asyncio.Future[Finished] = msgspec.field(default_factory=_future)

    def begin(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for future in (self.kept, self.started):
            if not future.done():
                future.set_result(self.turn)

    def keep(self) -> None:
        if not self.kept.done():
            self.kept.set_result(self.turn)

    def finish(self, finished: Finished) -> None:
        self.begin()
        if not self.done.done():
            self.done.set_result(finished)

    def fail(self, error: BaseException) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for future in (self.kept, self.started, self.done):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody has to wait for either: no warning if it stays unread


class Draft(Holder):
    """What the running step has streamed so far, for watchers that join in the middle."""

    step: int = 0
    opened: bool = False
    texts: list[tuple[bool, list[str]]] = []  # (is thought, pieces), in order
    calls: dict[str, str] = {}
    args: dict[str, list[str]] = {}
    ready: set[str] = set()
    progress: dict[str, str] = {}

    def add(self, thought: bool, delta: str) -> None:
        texts = self.texts
        if texts and texts[-1][0] is thought:
            texts[-1][1].append(delta)
        else:
            texts.append((thought, [delta]))

    def said(self) -> None:
        """The model's message is kept now: only what runs after it is still a draft."""
        self.texts, self.calls, self.args, self.ready = [], {}, {}, set()
        self.opened = False

    def events(self, session: str, turn: str, at: int) -> list[Event]:
        bodies: list[ev.Passing] = []
        if self.opened:
            bodies.append(ev.StepBegan(turn, self.step))
            bodies.append(ev.StreamOpened(turn, self.step))
        for thought, pieces in self.texts:
            kind = ev.ThoughtDelta if thought else ev.TextDelta
            bodies.append(kind(turn, "".join(pieces), self.step))
        for call_id, name in self.calls.items():
            bodies.append(ev.CallDrafted(turn, call_id, name))
            bodies.append(ev.CallArgs(turn, call_id, "".join(self.args.get(call_id, ()))))
            if call_id in self.ready:
                bodies.append(ev.CallReady(turn, call_id))
        for call_id, text in self.progress.items():
            bodies.append(ev.Progress(turn, call_id, text))
        return [Event(session, at, body) for body in bodies]


class Underway(Holder):
    """The record of a running turn, which all that have to do with it share."""

    id: str
    metadata: dict[str, Any] | None = None
    by: Who | None = None
    draft: Draft = msgspec.field(default_factory=Draft)
    steer: list[ev.Steered] = []
    tail: list[ev.Kept] = []  # facts that are kept together with the turn's next ones
    spoken: bool = False  # the message of this step is kept, or on its way
    # Whether this message's text is kept back until apps had their say; None: not decided.
    held: bool | None = None
    cancelled: bool = False
    interrupted: bool = False
    cause: str = ""
    closed: bool = False  # nothing more is kept or told of it
    task: asyncio.Task[Any] | None = None
    left: asyncio.Future[None] | None = None  # done: the task is waited for no longer
    # Calls that run, with the task of each; None: it is just about to.
    tools: dict[str, asyncio.Task[Any] | None] = {}
    unwanted: set[str] = set()  # calls that somebody stopped, and not the turn

    def stop_call(self, call_id: str) -> bool:
        """Stop one call that runs; the turn goes on. False: it does not run."""
        if self.cancelled or self.closed or call_id not in self.tools:
            return False
        task = self.tools[call_id]
        if call_id not in self.unwanted:
            self.unwanted.add(call_id)
            if task is not None:
                task.cancel()
        return True

    def was_stopped(self, call_id: str) -> bool:
        """Whether a call was to be stopped, and the turn was not; its task goes on."""
        if call_id not in self.unwanted:
            return False
        self.unwanted.discard(call_id)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            task.uncancel()
        return not self.stops()

    def stops(self) -> bool:
        """Whether a cancellation is meant for this turn, and not one from inside a tool."""
        task = asyncio.current_task()
        return self.cancelled or self.closed or (task is not None and task.cancelling() > 0)

    def check_open(self) -> None:
        if self.closed:
            raise asyncio.CancelledError("this turn is over")


class Losses:
    """Sessions that this host lost while it had them, until its node has freed them.

    Only a fleet loses sessions to others. There a turn that was under way goes on on another node,
    and what was acknowledged runs there; the rest is refused.
    """

    __slots__ = ("await_turn", "epochs")

    def __init__(self) -> None:
        # Set by a fleet: tells work how its turn ends elsewhere, read after a place in the log.
        self.await_turn: Callable[[str, int, Work], None] | None = None
        self.epochs: dict[str, int] = {}  # by session: nobody may have taken it

    def add(self, session: str, epoch: int) -> None:
        if self.await_turn is not None:
            self.epochs[session] = epoch

    def follow(self, session: str, seen: int, work: Work) -> bool:
        """Have work told how its turn ends elsewhere; False: it does not go on there."""
        taken = work.stored or work.started.done() and work.started.exception() is None
        if self.await_turn is None or work.kind != "prompt" or not taken:
            return False
        self.await_turn(session, seen, work)
        return True
