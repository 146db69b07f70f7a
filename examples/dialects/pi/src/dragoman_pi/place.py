"""A connection's place at its current session: what runs there, and what waits to be said."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Image, Prompt, Text, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault, NothingRunning, UnknownSession
from dragoman.engine.hub import Watch
from dragoman.engine.work import Work
from dragoman.wire.codec import safe_encode
from dragoman.wire.link import Link
from dragoman.wire.serve import Pause

from .speak import Speaker

_QUEUE = 256
_SPACE = "pi.queue"
_here: set[str] = set()  # the places that there are; what others left is whoever's comes next
BUSY = (
    "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the "
    "message."
)


class Waits(msgspec.Struct):
    """What was acknowledged and not given to the session yet, as it is stored."""

    steering: list[tuple[Text | Image, ...]]
    following: list[tuple[Text | Image, ...]]


class Place:
    """Made by `take`; given up by `leave`."""

    def __init__(self, door: Door, link: Link, who: Who, session_id: str) -> None:
        self.door = door
        self.link = link
        self.who = who
        self.id = session_id
        self.works: dict[str, Work] = {}
        self.steering: list[Prompt] = []  # given to the session, or kept for the next prompt
        self.following: list[Prompt] = []
        self.follow_all = False  # all at once instead of one by one
        self.compacting = False
        self.compacted: ev.Compacted | None = None  # the last one that somebody asked for
        self.rested: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._name = uuid4().hex
        self._watch: Watch
        self.speaker: Speaker

    @classmethod
    async def take(cls, door: Door, link: Link, who: Who, session_id: str, older: bool) -> "Place":
        """Attach to a session and hear its events from now on. Raises UnknownSession, InUse."""
        place = cls(door, link, who, session_id)
        info = await door.load(session_id)
        speaker = place.speaker = Speaker(info.model, place._has_more, older)
        speaker.told = lambda settled: settled.by is not None and settled.by.id == who.id
        speaker.delivered = place._delivered
        speaker.compacted_by_hand = place._compacted
        place._watch = await door.watch(
            session_id, who, speaker, link.send_blob, Pause(link, place._resume), exact=True
        )
        await place._adopt()
        return place

    async def _adopt(self) -> None:
        """Take up what was acknowledged here before: it goes on behind the next prompt."""
        _here.add(self._name)
        shelf = self.door.shelf
        for key, raw in sorted(await shelf.pairs(_SPACE)):
            session, _, name = key.rpartition(".")
            if session != self.id or name in _here:
                continue
            left = msgspec.json.decode(raw, type=Waits)
            self.steering += left.steering
            self.following += left.following
            await self._store()
            await shelf.put(_SPACE, key, None)
        if self.steering or self.following:
            self.tell_queue()

    async def _store(self) -> None:
        """Have the store know what waits here: then it may be acknowledged."""
        said = [] if self.busy else self.steering  # else the session has it
        raw = None
        if said or self.following:
            raw = safe_encode(Waits([*map(tuple, said)], [*map(tuple, self.following)]))
        await self.door.shelf.put(_SPACE, f"{self.id}.{self._name}", raw)

    def _resume(self) -> None:
        if not self.link.closed and not self._watch.closed:
            self._watch.resume()

    def leave(self) -> None:
        _here.discard(self._name)
        self._watch.close()

    def then(self, act: Callable[[], None]) -> None:
        """Do something once the client has been told everything so far."""
        self._watch.then(act)

    def say(self, **event: Any) -> None:
        line = safe_encode(event)
        self.then(lambda: self.link.send(line))

    @property
    def busy(self) -> bool:
        return bool(self.works) or self.speaker.running

    # --- prompts ---

    async def prompt(self, content: Prompt, behaviour: str) -> str:
        """Run, steer or queue a prompt; returns pi's disposition. Raises BadInput when busy."""
        if self.busy:
            if not behaviour:
                raise BadInput(BUSY)
            if behaviour == "followUp":
                await self.follow(content)
            else:
                await self.steer(content)
            return "queued"
        kept, self.steering = self.steering, []
        if self.following:  # left by an abort: they run behind this one
            self.tell_queue()
        await self._begin(content, kept)
        if kept:
            await self._store()
        return "started"

    async def _begin(self, content: Prompt, kept: list[Prompt], *, keep: bool = False) -> None:
        work = await self.door.prompt(self.id, content, self.who, limit=_QUEUE)
        self.works[work.turn] = work
        if kept:
            work.started.add_done_callback(lambda _: self._spawn(self._hand_over(kept)))
        work.done.add_done_callback(lambda _: self._done(work))
        if keep:
            await asyncio.shield(work.kept)

    async def _hand_over(self, kept: list[Prompt]) -> None:
        for content in kept:
            await self.steer(content)

    async def steer(self, content: Prompt) -> None:
        self.steering.append(content)
        self.tell_queue()
        try:
            if self.busy:
                await self.door.steer(self.id, content, self.who)
                return
        except NothingRunning:
            pass  # it stays for the next prompt
        await self._store()

    async def follow(self, content: Prompt) -> None:
        self.following.append(content)
        self.tell_queue()
        await self._store()

    async def clear(self) -> None:
        if not self.busy:
            self.steering.clear()
        self.following.clear()
        self.tell_queue()
        await self._store()

    def queue(self) -> dict[str, Any]:
        return {
            "steering": [text_of(one) for one in self.steering],
            "followUp": [text_of(one) for one in self.following],
        }

    def tell_queue(self) -> None:
        self.say(type="queue_update", **self.queue())

    def _delivered(self, body: ev.Steered) -> dict[str, Any] | None:
        for place, one in enumerate(self.steering):
            if text_of(one) == text_of(body.content):
                del self.steering[place]
                return self.queue()
        return None

    def _has_more(self) -> bool:
        return bool(self.following or self.steering)

    def _done(self, work: Work) -> None:
        self.works.pop(work.turn, None)
        problem = None if work.done.cancelled() else work.done.exception()
        if problem is not None:
            self.say(type="agent_end", messages=[], willRetry=False)
            self.say(type="extension_error", extensionPath="", event="prompt", error=str(problem))
            self.say(type="agent_settled", aborted=False)
        elif not work.done.cancelled() and work.done.result().outcome == "completed":
            self._go_on()
        self.rested()

    def _go_on(self) -> None:
        """Run what waited for the turn to end."""
        if self.steering:  # it came too late for the last step
            content = self.steering.pop(0)
        elif self.following:
            count = len(self.following) if self.follow_all else 1
            taken, self.following = self.following[:count], self.following[count:]
            content = tuple(block for one in taken for block in one)
        else:
            return
        self.tell_queue()
        self._spawn(self._next(content))

    async def _next(self, content: Prompt) -> None:
        await self._begin(content, [], keep=True)
        await self._store()  # the session has it now

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned)

    def _spawned(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.say(type="extension_error", extensionPath="", event="queue", error=str(problem))

    # --- stopping ---

    async def abort(self) -> None:
        """Stop what runs and wait until it has told its end; the queue stays."""
        for work in tuple(self.works.values()):
            if not work.started.done():  # given to an idle session: it is about to begin
                await asyncio.wait({work.started})
        try:
            self.door.cancel(self.id)
        except (NothingRunning, UnknownSession):
            return
        await self.door.idle(self.id)

    # --- compaction ---

    def _compacted(self, body: ev.Compacted) -> None:
        self.compacted = body

    async def compact(self) -> dict[str, Any]:
        """Raises BadInput when one runs already, or it failed."""
        if self.compacting:
            raise BadInput("Compaction is already in progress")
        self.compacting = True
        before = (await self.door.info(self.id)).last_usage.context
        try:
            await self.abort()
            self.say(type="compaction_start", reason="manual")
            work = await self.door.compact(self.id, self.who, limit=_QUEUE)
            finished = await asyncio.shield(work.done)
            error = finished.error
        except Fault as fault:
            error = str(fault)
        finally:
            self.compacting = False
        ended = {"type": "compaction_end", "reason": "manual", "willRetry": False}
        if error or self.compacted is None:
            error = error or "Nothing to compact"
            self.say(**ended, aborted=False, errorMessage=error)
            raise BadInput(error)
        result = {
            "summary": self.compacted.summary,
            "firstKeptEntryId": "m1",
            "tokensBefore": before,
            "details": {},
        }
        self.say(**ended, aborted=False, result=result)
        return result
