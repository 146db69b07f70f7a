"""What waits in a session's inbox, and how its end is told to whoever asked for it."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from .content import Prompt
from .events import Outcome, Stop, Who


class Finished(msgspec.Struct, frozen=True):
    """How a piece of work ended."""

    turn: str
    outcome: Outcome
    stop: Stop
    text: str = ""
    error: str = ""
    cause: str = ""


class Work:
    """A prompt, a compaction, or a turn to take up again.

    `kept`, `started` and `done` are futures: it may be acknowledged, it began, it ended.
    """

    __slots__ = (
        "by", "content", "done", "kept", "key", "kind", "metadata", "started", "stopped", "stored",
        "timer", "turn",
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
        self.stored = False  # it is in the store while it waits
        self.kept: asyncio.Future[str] = loop.create_future()  # it survives this process
        self.started: asyncio.Future[str] = loop.create_future()
        self.done: asyncio.Future[Finished] = loop.create_future()

    def begin(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.keep()
        if not self.started.done():
            self.started.set_result(self.turn)

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

    def on_done(self, callback: Callable[["Work"], None]) -> None:
        """Call back when it ended either way: for callers that are not coroutines."""
        self.done.add_done_callback(lambda _: callback(self))
