"""One client's view of a session: what it is told, and what waits while it does not read."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .deltas import merge, weight_of
from .events import Event, Who

if TYPE_CHECKING:
    from .hub import Hub

HOLD_BYTES = 4 * 1024 * 1024


class Shape(Protocol):
    """Turns events into what a watcher's `deliver` takes; None when there is nothing to say.

    A shape may have `knows`: the dialect whose prompts it does not repeat. The text of such a turn
    may come to its watchers before the prompt is committed.
    """

    def speak(self, events: Sequence[Event]) -> Any | None: ...


class Reader(Protocol):
    """Reads kept events again, for watchers that join late or fell behind."""

    async def __call__(self, after: int, limit: int) -> Sequence[Event]: ...


class Parts(list[Any]):
    """What was said of events one by one."""


class Watch:
    """One client's view of a hub. Close it when the client leaves."""

    __slots__ = (
        "_after", "behind", "closed", "cursor", "deliver", "draft", "dropped", "exact", "floor",
        "held", "hub", "is_paused", "replaying", "shape", "weight", "who",
    )  # fmt: skip

    def __init__(
        self,
        hub: "Hub",
        who: Who,
        shape: Shape,
        deliver: Callable[[Any], None],
        is_paused: Callable[[], bool],
        *,
        exact: bool,
        draft: bool,
        cursor: int,
    ) -> None:
        self.hub = hub
        self.who = who
        self.shape = shape
        self.deliver = deliver
        self.is_paused = is_paused
        self.exact = exact
        self.draft = draft
        self.cursor = cursor
        self.floor = 0  # kept events up to here came by a replay and are not told again
        self.held: list[Event] | None = None
        self.weight = 0
        self.dropped = 0
        self.replaying = False
        self.behind = False  # a replay stopped half-way because the client does not read
        self.closed = False
        self._after: list[Callable[[], None]] = []

    def then(self, callback: Callable[[], None]) -> None:
        """Call back once this watcher has been given everything so far; at once when it has.

        What a client is to get after the events, such as the answer to its prompt, goes through
        here, so that it does not overtake events that are held for a slow reader.
        """
        self._after.append(callback)
        if self.held is None or self.closed:
            self.caught_up()

    def caught_up(self) -> None:
        after, self._after = self._after, []
        for callback in after:
            try:
                callback()
            except Exception as error:  # whoever it was for; the others get theirs
                self.hub.trouble("what follows the events broke", error, who=self.who.id)

    def hold(self, events: Sequence[Event]) -> None:
        """Keep events for a client that does not read, merged and bounded."""
        held = self.held if self.held is not None else []
        held.extend(events)
        self.weight += sum(weight_of(event) for event in events)
        if self.weight > HOLD_BYTES or len(held) > 4_096:
            held = list(merge(held))
            self.weight = sum(weight_of(event) for event in held)
            if self.weight > HOLD_BYTES or len(held) > 4_096:
                # Too much: forget it all. Kept events come back from the store.
                self.dropped += sum(1 for event in held if not event.seq)
                held = []
                self.weight = 0
                self.dropped = max(self.dropped, 1)
        self.held = held

    def resume(self) -> None:
        """The client reads again: give it what was held, or what it missed from the store."""
        if self.closed or self.replaying or self.held is None or self.is_paused():
            return
        if self.hub.waits(self):  # goes on when that is over
            return
        if self.dropped or self.behind:
            self.hub.replay(self)
            return
        held, self.held, self.weight = self.held, None, 0
        self.give(held if self.exact else merge(held))
        self.caught_up()

    def give(self, events: Sequence[Event]) -> None:
        """Speak and deliver to this watcher alone."""
        if events and not self.closed:
            said = self.hub.spoken(self.shape, events)
            self.advance(events)
            self.pass_on(said)

    def pass_on(self, said: Any | None) -> None:
        """Deliver; a client that cannot be delivered to is let go."""
        if said is None:
            return
        if type(said) is Parts:
            for part in said:
                self.pass_on(part)
            return
        try:
            self.deliver(said)
        except Exception as error:
            self.hub.trouble("a watcher could not be delivered to", error, who=self.who.id)
            self.close()

    def advance(self, events: Sequence[Event]) -> None:
        for event in reversed(events):
            if event.seq:
                self.cursor = self.hub.place(event)
                return

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.hub.remove(self)
            self.caught_up()
