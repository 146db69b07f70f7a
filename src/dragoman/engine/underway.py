"""A turn under way: what its step has streamed so far, and whether it is being stopped."""

import asyncio
from typing import Any

from . import events as ev
from .events import Event, Who


class Draft:
    """What the running step has streamed so far, for watchers that join in the middle."""

    __slots__ = ("args", "calls", "opened", "order", "progress", "ready", "step", "texts")

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, step: int) -> None:
        self.step = step
        self.opened = False
        self.texts: list[tuple[bool, list[str]]] = []  # (is thought, pieces), in order
        self.calls: dict[str, str] = {}
        self.args: dict[str, list[str]] = {}
        self.ready: set[str] = set()
        self.progress: dict[str, str] = {}

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


class Underway:
    """The record of a running turn, which all that have to do with it share."""

    __slots__ = (
        "by", "cancelled", "cause", "closed", "draft", "held", "id", "interrupted", "left",
        "metadata", "spoken", "steer", "tail", "task",
    )  # fmt: skip

    def __init__(
        self, turn_id: str, metadata: dict[str, Any] | None = None, by: Who | None = None
    ) -> None:
        self.id = turn_id
        self.by = by
        self.metadata = metadata
        self.draft = Draft()
        self.steer: list[ev.Steered] = []
        self.tail: list[ev.Kept] = []  # facts that are kept together with the turn's next ones
        self.spoken = False  # the message of this step is kept, or on its way
        # Whether this message's text is kept back until apps had their say; None: not decided.
        self.held: bool | None = None
        self.cancelled = False
        self.interrupted = False
        self.cause = ""
        self.closed = False  # nothing more is kept or told of it
        self.task: asyncio.Task[Any] | None = None
        self.left: asyncio.Future[None] | None = None  # done: the task is waited for no longer

    def stops(self) -> bool:
        """Whether a cancellation is meant for this turn, and not one from inside a tool."""
        task = asyncio.current_task()
        return self.cancelled or self.closed or (task is not None and task.cancelling() > 0)

    def check_open(self) -> None:
        if self.closed:
            raise asyncio.CancelledError("this turn is over")
