"""What waits in a session's inbox, and how its end is told to whoever asked for it."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from .content import Prompt
from .events import Outcome, Stop, Who
from .faults import NothingRunning


class Finished(msgspec.Struct, frozen=True):
    """How a piece of work ended."""

    turn: str
    outcome: Outcome
    stop: Stop
    text: str = ""
    error: str = ""
    cause: str = ""


class Work:
    """A prompt, a compaction, or a turn to take up again. `started` and `done` are futures."""

    __slots__ = (
        "by", "content", "done", "key", "kind", "metadata", "started", "stopped", "timer", "turn",
    )  # fmt: skip

    def __init__(
        self,
        kind: Literal["prompt", "compact", "resume"],
        turn: str,
        content: Prompt = (),
        by: Who | None = None,
        key: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.kind = kind
        self.turn = turn
        self.content = content
        self.by = by
        self.key = key
        self.metadata = metadata
        self.stopped: tuple[str, bool] | None = None  # cancelled before it began: cause, interrupt
        self.timer: asyncio.TimerHandle | None = None
        self.started: asyncio.Future[str] = loop.create_future()
        self.done: asyncio.Future[Finished] = loop.create_future()

    def begin(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if not self.started.done():
            self.started.set_result(self.turn)

    def finish(self, finished: Finished) -> None:
        self.begin()
        if not self.done.done():
            self.done.set_result(finished)

    def fail(self, error: BaseException) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for future in (self.started, self.done):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody has to wait for either: no warning if it stays unread

    def on_done(self, callback: Callable[["Work"], None]) -> None:
        """Call back when it ended either way: for callers that are not coroutines."""
        self.done.add_done_callback(lambda _: callback(self))


def take_back(inbox: list[Work], key: str) -> str:
    """Remove the prompt of this key from what waits; returns its turn. Raises NothingRunning."""
    for work in inbox:
        if key and work.key == key:
            inbox.remove(work)
            work.finish(Finished(work.turn, "cancelled", "aborted", cause="client"))
            return work.turn
    raise NothingRunning("That prompt neither waits nor runs.")
