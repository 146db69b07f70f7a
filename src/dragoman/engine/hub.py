"""How events reach those who watch: shared encoding, merged deltas, bounded patience.

A `Hub` belongs to one session (or to the whole host). It hands events to *shapes*: a shape turns
events into whatever its dialect sends, once, however many watchers share it. Deltas are gathered:
the first goes out at once, those of the next two milliseconds together. A watcher whose client does
not read holds merged events up to a bound; past it the passing ones are dropped (and the client is
told), the kept ones are read again from the store. Nobody waits for a slow reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from dragoman.holding import Holder

from . import events as ev
from .deltas import (
    Run,
    beat_of,
    drafted,
    joined,
    merge,
    single,
    unread,
    weight_of,
)
from .events import Event, Who
from .ids import WallClock
from .ports import Clock

HOLD_BYTES = 4 * 1024 * 1024  # of events for one client that does not read
MOST_CHARS = 64 * 1024  # so much text is not gathered: it goes out before the beat
RETRY_SECONDS = 1.0  # until a replay that failed is tried again
# Events of one page of a replay: few at first, more where they are small. A page is in memory as a
# whole, and a single event may have pictures of megabytes in it.
_REPLAY_PAGE = 256
FIRST_PAGE = 16


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Shape(Protocol[T_co]):
    """Turns events into what a watcher's `deliver` takes; None when there is nothing to say.

    A shape may have `knows`: the dialect whose prompts it does not repeat. The text of such a turn
    may come to its watchers before the prompt is committed.
    """

    def speak(self, events: Sequence[Event]) -> "T_co | Personal[T_co] | None": ...


S = TypeVar("S", bound=Shape[Any])


class EventReader(Protocol):
    """Reads kept events again, for watchers that join late or fell behind."""

    async def __call__(self, after: int, limit: int) -> Sequence[Event]: ...


def readied(read: EventReader, ready: Callable[[Sequence[Event]], Awaitable[None]]) -> EventReader:
    """Reads pages of events, each of which is shown to `ready` before it is told."""

    async def readied_page(after: int, limit: int) -> Sequence[Event]:
        page = await read(after, limit)
        await ready(page)
        return page

    return readied_page


class Parts(list[Any]):
    """What was said of events one by one."""


class Personal(Generic[T_co]):
    """What was said of events, where it differs from one client to the next."""

    __slots__ = ()

    def for_client(self, who_id: str) -> T_co | None:
        """What the client with this id is given; None: nothing."""
        raise NotImplementedError


class Watch(Holder):
    """One client's view of a hub. Close it when the client leaves."""

    hub: "Hub"
    who: Who
    shape: Shape[Any]  # what it says is what `deliver` takes: `Hub.watch` sees to it
    deliver: Callable[[Any], None]
    is_paused: Callable[[], bool]
    read: "EventReader"  # where a replay comes from
    exact: bool
    draft: bool
    cursor: int
    floor: int = 0  # kept events up to here came by a replay and are not told again
    held: list[Event] | None = None
    weight: int = 0
    passed: int = 0  # passing events among those held, before they were merged
    dropped: int = 0
    replaying: bool = False
    again: bool = False  # more is to be read when the replay that runs is over
    behind: bool = False  # a replay stopped half-way because the client does not read
    closed: bool = False
    _after: list[Callable[[], None]] = []

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
        self.passed += sum(1 for event in events if not event.seq)
        self.weight += sum(weight_of(event) for event in events)
        if self.weight > HOLD_BYTES or len(held) > 4_096:
            held = list(merge(held))
            self.weight = sum(weight_of(event) for event in held)
            if self.weight > HOLD_BYTES or len(held) > 4_096:
                # Too much: forget it all. Kept events come back from the store.
                self.dropped += self.passed
                held = []
                self.weight = self.passed = 0
                self.behind = True
                self.again = self.again or self.replaying
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
        held, self.held, self.weight, self.passed = self.held, None, 0, 0
        self.give(held if self.exact else merge(held))
        self.caught_up()

    def give(self, events: Sequence[Event]) -> None:
        """Speak and deliver to this watcher alone."""
        if events and not self.closed:
            said = self.hub.spoken(self.shape, events)
            self.pass_on(said, events)

    def pass_on(self, said: Any | None, events: Sequence[Event] = ()) -> None:
        """Deliver what was said of events; a client that cannot be delivered to is let go."""
        for event in reversed(events):
            if event.seq:
                self.cursor = self.hub.place(event)
                break
        if said is None:
            return
        if isinstance(said, Parts):
            for part in said:
                self.pass_on(part)
            return
        if isinstance(said, Personal):
            said = said.for_client(self.who.id)
            if said is None:
                return
        try:
            self.deliver(said)
        except Exception as error:
            self.undeliverable(error)

    def undeliverable(self, error: Exception) -> None:
        self.hub.trouble("a watcher could not be delivered to", error, who=self.who.id)
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.hub.remove(self)
            self.caught_up()


class Hub:
    """Fans the events of one session (or of all) out to its watchers."""

    __slots__ = (
        "_changed", "_draft", "_first", "_late", "_pending", "_read", "_run", "_shapes", "_spawn",
        "beating", "by_gseq", "clock", "early", "flushed", "last", "place", "session", "trouble",
        "watches",
    )  # fmt: skip

    def __init__(
        self,
        session: str,
        read: EventReader,
        spawn: Callable[[Awaitable[None]], Any],
        *,
        by_gseq: bool = False,
        clock: Clock | None = None,
        trouble: Callable[..., None] = lambda what, error, **data: None,
    ) -> None:
        self.session = session  # "" for the hub of the whole host
        self.watches: list[Watch] = []
        self.by_gseq = by_gseq
        self.place: Callable[[Event], int] = attrgetter("gseq" if by_gseq else "seq")
        self.clock: Clock = clock or WallClock()
        self.last = 0  # place of the newest kept event that was emitted
        self._read = read
        self._spawn = spawn
        self._draft: Callable[[], Sequence[Event]] = lambda: ()
        self._changed: Callable[[], None] = lambda: None
        self.trouble = trouble
        self._pending: list[Event | Run] = []
        self._run: Run | None = None  # the last of what is pending, when it may still grow
        self.beating = False  # what comes now is gathered until the next beat
        self._first = False  # an answer has begun: its first delta goes out at once
        self.flushed = 0.0
        self._shapes: dict[object, Any] = {}  # of one kind for each key
        self.early = False  # a turn streams while its beginning is still being committed
        self._late: list[Watch] = []  # who came meanwhile

    def serve(
        self,
        read: EventReader,
        draft: Callable[[], Sequence[Event]],
        changed: Callable[[], None],
        last: int,
    ) -> None:
        """Take the events of this live session, whose newest kept one is `last`, from now on."""
        self._read, self._draft, self._changed = read, draft, changed
        behind, self.last = self.last < last, last
        if behind:  # somebody else wrote to it since
            for watch in self.watches:
                self.replay(watch)

    async def read(self, after: int, limit: int) -> Sequence[Event]:
        """Kept events after a place, oldest first."""
        return await self._read(after, limit)

    def shape(self, key: object, own: S) -> S:
        """The shape that all watchers with this key share: the first that was given with it."""
        shared: S = self._shapes.setdefault(key, own)
        return shared

    def watch(
        self,
        who: Who,
        shape: Shape[T],
        deliver: Callable[[T], None],
        is_paused: Callable[[], bool] = lambda: False,
        *,
        since: int | None = None,
        exact: bool = False,
        draft: bool = False,
        read: EventReader | None = None,
        begun: Callable[[int, int], None] | None = None,
    ) -> Watch:
        """Add a watcher. With `since`, kept events after that place come first, from the store.

        With `draft`, a watcher that joins in the middle of a step is first given what the step has
        streamed so far. `exact` watchers get every delta on its own. `read` is for one that wants
        few of these events: it reads those alone. `begun` is told, before all events, after which
        place they begin, and where the newest one stands now.
        """
        self.flush()  # what is pending belongs to those who were here before
        if since is not None and since >= self.last and not self.by_gseq:
            since = None  # nothing to be read again
        watch = Watch(
            self, who, shape, deliver, is_paused, read or self.read, exact, draft, self.last
        )
        if begun is not None:
            begun(self.last if since is None else min(since, self.last), self.last)
        self.watches.append(watch)
        self._changed()
        # The host's hub does not know how far the store reached before this process began.
        if since is not None:
            watch.cursor = since
            self.replay(watch)
        elif self.early:
            self._wait(watch)
        elif draft:
            watch.give(self._draft())
        return watch

    def _wait(self, watch: Watch) -> None:
        """One that joins a turn whose beginning is not told yet hears of that first."""
        watch.held = watch.held or []
        self._late.append(watch)

    def settle(self) -> None:
        """The beginning of a turn that streams already was told, or will never be."""
        self.early = False
        if self._late:
            self.flush()  # what is pending is in the draft, too
        late, self._late = self._late, []
        for watch in late:
            watch.held = drafted(watch.held or (), self._draft() if watch.draft else ())
            watch.resume()

    def waits(self, watch: Watch) -> bool:
        """Whether it is to hear of the beginning of a turn before anything else."""
        return watch in self._late

    def remove(self, watch: Watch) -> None:
        if watch in self.watches:
            self.watches.remove(watch)
            if not self.watches:
                self._shapes.clear()
            self._changed()

    def emit(self, event: Event) -> None:
        """Emit a passing event that is no delta: those go through `stream`."""
        if not self.watches:
            return
        self._pending.append(event)
        self._run = None
        kind = type(event.body)
        if kind is ev.StreamOpened:  # what follows goes out at once
            self._first = True
        elif kind is not ev.StepBegan:
            self.flush()
            return
        # Told with what follows, within a beat.
        if not self.beating:
            beat = beat_of(asyncio.get_running_loop())
            self.flushed = beat.loop.time()
            beat.add(self)

    def emit_kept(self, events: Sequence[Event]) -> None:
        """Emit what was committed together."""
        if self.by_gseq and self.watches and 0 < self.last < events[0].gseq - 1:
            self.catch_up(self.last)  # another process wrote in between
        self.last = max(self.last, self.place(events[-1]))
        if self.watches:
            self._pending += events
            self.flush()
        if self.early and any(type(event.body) is ev.TurnBegan for event in events):
            self.settle()

    def catch_up(self, newest: int) -> None:
        """Have all who watch read what was stored and never told here, before what comes now."""
        self.flush()
        self.last = max(self.last, newest)
        for watch in self.watches:
            if not watch.closed:
                self.replay(watch)

    def stream(
        self, session: str, kind: type[ev.Delta], turn: str, text: str, part: str | int
    ) -> None:
        """Emit a delta: the way of most of what a model says, so no object is made for each."""
        run = self._run
        if run is not None and run.kind is kind and run.turn == turn and run.part == part:
            run.texts.append(text)
            run.size += len(text)
            if run.size > MOST_CHARS:
                self.flush()
            return
        self._run = Run(session, self.clock.now_ms(), kind, turn, part, [text], len(text))
        self._pending.append(self._run)
        if not self.beating:
            beat = beat_of(asyncio.get_running_loop())
            if beat.is_free(self):
                self.flush()
            else:
                beat.add(self)
        elif self._first:
            self.flushed = asyncio.get_running_loop().time()
            self.flush()

    def flush(self) -> bool:
        """Hand what is pending to every watcher, one encoding per shape; False: nothing was."""
        if not self._pending:
            return False
        items = self._pending
        self._pending = []
        self._run = None
        self._first = False
        forms: dict[bool, Sequence[Event]] = {}
        spoken: dict[tuple[int, bool], Any] = {}
        shape: Shape[Any] | None = None  # of the last one: most watchers share theirs
        exact = plain = False
        said: Any = None
        kept = 0  # the place of the newest kept event among them
        for item in reversed(items):
            if type(item) is Event and item.seq:
                kept = self.place(item)
                break
        for watch in tuple(self.watches):
            if watch.closed:  # by another one's delivery just now
                continue
            if watch.floor or watch.held is not None or watch.is_paused():
                chosen = _form(items, watch.exact, forms)
                fresh = self._fresh(watch, chosen) if watch.floor else chosen
                if watch.held is not None or watch.is_paused():
                    watch.hold(fresh)
                    continue
                if len(fresh) < len(chosen):
                    watch.give(fresh)
                    continue
            if watch.shape is not shape or watch.exact is not exact:
                shape, exact = watch.shape, watch.exact
                key = (id(shape), exact)
                if key not in spoken:
                    spoken[key] = self.spoken(shape, _form(items, exact, forms))
                said = spoken[key]
                plain = not isinstance(said, Parts | Personal | None)
            if kept:
                watch.cursor = kept
            if plain:
                try:
                    watch.deliver(said)
                except Exception as error:
                    watch.undeliverable(error)
            else:
                watch.pass_on(said)
        return True

    def spoken(self, shape: Shape[Any], events: Sequence[Event]) -> Any | None:
        """What the shape makes of events; nothing when it is broken: the others see on."""
        try:
            return shape.speak(events)
        except Exception as error:
            if len(events) > 1:  # the others can be
                return Parts(self.spoken(shape, (event,)) for event in events)
            self.trouble("events could not be spoken", error, shape=type(shape).__name__)
            return None

    def _fresh(self, watch: Watch, events: Sequence[Event]) -> Sequence[Event]:
        """Without those that a replay gave before they were told here."""
        fresh = [event for event in events if not event.seq or self.place(event) > watch.floor]
        if any(event.seq for event in fresh):
            watch.floor = 0  # past it
        return fresh

    def replay(self, watch: Watch) -> None:
        watch.again = watch.replaying
        if not watch.replaying:
            watch.replaying = True
            watch.behind = False
            if watch.held is None:
                watch.held = []
            self._spawn(self._replay(watch))

    async def _replay(self, watch: Watch) -> None:
        try:
            if watch.dropped:
                watch.give((Event(self.session, 0, ev.Lagged(watch.dropped)),))
                watch.dropped = 0
            most = min(FIRST_PAGE, _REPLAY_PAGE)
            while not watch.closed:
                watch.behind = watch.is_paused()
                if watch.behind:
                    return  # goes on in `resume`
                page = await watch.read(watch.cursor, most)
                # What is stored and not told yet comes by itself, after what was said before it.
                told = page if self.by_gseq else [e for e in page if e.seq <= self.last]
                watch.give(told)
                if len(told) < most:
                    break
                most = next_page(told, _REPLAY_PAGE)
        except Exception as error:
            self.trouble("a replay failed", error, session=self.session)
            watch.behind = True
            asyncio.get_running_loop().call_later(RETRY_SECONDS, watch.resume)
            return
        finally:
            watch.replaying = False
        if watch.closed:
            return
        self.flush()
        if watch.dropped or watch.again:  # too much came meanwhile, or from elsewhere: read on
            self.replay(watch)
            return
        place, cursor = self.place, watch.cursor
        watch.held = rest = unread(watch.held or (), lambda event: place(event) <= cursor)
        if self.early:
            self._wait(watch)
            return
        watch.held, watch.weight, watch.passed = None, 0, 0
        watch.floor = watch.cursor if self.by_gseq else 0
        draft = self._draft() if watch.draft else ()
        watch.give(drafted(rest, draft) if draft else rest)
        watch.caught_up()


def next_page(told: Sequence[Event], most: int) -> int:
    """How many events to read after these: as many as are held of one client, if they are alike."""
    alike = HOLD_BYTES * len(told) // sum(map(weight_of, told))
    return max(1, min(alike, 4 * len(told), most))


def _form(
    items: Sequence[Event | Run], exact: bool, forms: dict[bool, Sequence[Event]]
) -> Sequence[Event]:
    """What is handed on, delta by delta or joined; made once for all who want it so."""
    if exact not in forms:
        forms[exact] = single(items) if exact else joined(items)
    return forms[exact]
