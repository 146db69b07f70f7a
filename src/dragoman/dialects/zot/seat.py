"""A connection's place at one session: what it watches there, and the work it has under way."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dragoman.engine.content import Prompt
from dragoman.engine.door import Door
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import Fault
from dragoman.engine.host import OpenSpec
from dragoman.engine.hub import Watch
from dragoman.engine.view import SessionView
from dragoman.engine.work import Work
from dragoman.wire.link import Blob, Link

from .faults import told
from .frames import failure, frame, success
from .speak import DONE, Speaker, Words

if TYPE_CHECKING:
    from .desk import Settings

_QUEUE = 256  # prompts and compactions that may wait in a session
_SILENCE = 15.0  # seconds in which nothing was said of work under way; then that is said
_NOBODY = "the input has ended, so nobody can approve this"


class ZotSeat:
    """Made by `take`; `freed` is called whenever something ended here."""

    def __init__(self, door: Door, link: Link, who: Who, session_id: str) -> None:
        self.door = door
        self.link = link
        self.who = who
        self.session_id = session_id
        self.works: dict[str, Work] = {}  # by turn, oldest first
        self.freed: Callable[[], None] = lambda: None
        self.deaf = False  # the client's input ended and only it could have answered questions
        self._sole = False
        self._early: list[Blob] | None = None  # what came before the client knows of the session
        self._loop = asyncio.get_running_loop()
        self._spoke = 0.0  # when something was sent last
        self._began = 0.0  # when the silence began that is being told of
        self._quiet: asyncio.TimerHandle | None = None
        self._catching = False  # what is left is said when the client has caught up
        self._seats = door.seats(link)
        self._seats.on_resume = self._resumed
        self._seat = self._seats.at(session_id)
        self._speaker: Speaker

    @classmethod
    async def take(
        cls,
        door: Door,
        link: Link,
        who: Who,
        session_id: str,
        *,
        sole: bool = False,
        quiet: bool = False,
    ) -> "ZotSeat":
        """Attach to a session and hear its events from now on. Raises UnknownSession, InUse.

        A `quiet` one says nothing of the session before `begin`.
        """
        seat = cls(door, link, who, session_id)
        seat._sole = sole
        seat._early = [] if quiet else None
        await door.load(session_id)
        state = seat.session
        seat._speaker = Speaker(state.usage, state.cost, seat.works.__contains__)
        await seat._seat.follow(who, seat._speaker, seat._deliver, exact=True)
        return seat

    @property
    def _watch(self) -> Watch:
        watch = self._seat.watch
        assert watch is not None
        return watch

    @property
    def session(self) -> SessionView:
        """Raises UnknownSession when somebody closed it."""
        return self._seat.view

    @property
    def busy(self) -> bool:
        return bool(self.works) or self.session.busy

    # --- work ---

    async def prompt(self, content: Prompt, request_id: str, doomed: Callable[[], bool]) -> None:
        """`doomed` tells whether an abort came in the same breath: it means this prompt."""
        self._seat.require()
        behind = self.busy
        work = await self._seat.prompt(content, self.who, limit=_QUEUE)
        self._speaker.waiting[work.turn] = request_id
        self.works[work.turn] = work
        work.done.add_done_callback(lambda _: self._prompt_done(work, request_id))
        if not behind and doomed():
            self.abort()
        await self._begun(work, behind)

    def _prompt_done(self, work: Work, request_id: str) -> None:
        """Its events have told everything, unless it never ran or broke."""
        self.works.pop(work.turn, None)
        error = _failure(work)
        if error and not _began(work):
            del self._speaker.waiting[work.turn]
            self._say(failure("prompt", request_id, error))
        elif error:
            self._say(frame({"message": error, "type": "error"}), DONE)
        elif self._speaker.owes_done:
            self._say(DONE)
        self._speaker.owes_done = False
        self.freed()

    async def compact(self, request_id: str) -> None:
        self._seat.require()
        behind = self.busy
        work = await self.door.compact(self.session_id, self.who, limit=_QUEUE)
        self.works[work.turn] = work
        work.started.add_done_callback(lambda _: self._compact_began(work, request_id))
        work.done.add_done_callback(lambda _: self._compact_done(work, request_id))
        await self._begun(work, behind)

    async def _begun(self, work: Work, behind: bool) -> None:
        """Work that need not wait is answered before the commands that came after it."""
        if self._quiet is None:
            self._spoke = self._loop.time()
            self._mind_silence(_SILENCE)
        if not behind:
            await asyncio.wait({work.started})

    # --- silence ---

    def _mind_silence(self, wait: float) -> None:
        self._quiet = self._loop.call_later(wait, self._is_silent)

    def _is_silent(self) -> None:
        """Say that work goes on of which nothing is heard: a model that thinks, a tool that runs.

        A question that is open is no silence, and who does not read is not told more.
        """
        self._quiet = None
        if not self.works or self.link.closed:
            return
        now = self._loop.time()
        left = self._spoke + _SILENCE - now
        if left <= 0:
            session = self.door.live(self.session_id)
            if self._watch.held is None and not (session is not None and session.asks):
                self._began = self._began or self._spoke
                self._say(frame({"seconds": round(now - self._began), "type": "waiting"}))
            self._spoke, left = now, _SILENCE
        self._mind_silence(left)

    def _compact_began(self, work: Work, request_id: str) -> None:
        if not _began(work):
            return
        if self._speaker.owes_done:
            self._speaker.owes_done = False
            self._say(DONE)
        self._say(success("compact", request_id, {"started": True}), compacting=True)

    def _compact_done(self, work: Work, request_id: str) -> None:
        self.works.pop(work.turn, None)
        error = _failure(work)
        if error and not _began(work):
            self._say(failure("compact", request_id, error))
        else:
            error = error or work.done.result().error
            ending = [frame({"message": error, "type": "error"})] if error else []
            self._say(*ending, DONE, compacting=False)
        self.freed()

    def abort(self) -> None:
        """Cancel what runs, or is about to; nothing that waits behind it."""
        self._seat.cancel()

    # --- questions ---

    def input_ended(self) -> None:
        """Nobody can answer through this connection any more."""
        if self._sole:
            self.deaf = True
            self.refuse_open()

    def refuse_open(self) -> None:
        session = self.door.live(self.session_id)
        for ask_id in tuple(session.asks) if session is not None else ():
            self.door.spawn(self._refuse(ask_id))

    async def _refuse(self, ask_id: str) -> None:
        session = self.door.live(self.session_id)
        ask = session.asks.get(ask_id) if session is not None else None
        if ask is not None:
            verdict: Any = "deny" if ask.kind == "tool" else "cancelled"
            await self.door.answer(ask_id, verdict, self.who, comment=_NOBODY)

    # --- saying ---

    def begin(self) -> None:
        """The client knows which session this is: say what came meanwhile."""
        early, self._early = self._early or (), None
        for blob in early:
            self._deliver(blob)

    def _deliver(self, blob: Blob) -> None:
        if self._early is not None:
            self._early.append(blob)
            return
        self._spoke, self._began = self._loop.time(), 0.0
        self.link.send_blob(blob)
        if self.deaf:
            self.refuse_open()

    def _say(self, *frames: bytes, compacting: bool | None = None) -> None:
        """Say something in its place: behind the events that are held for a slow reader."""
        words = Words(frames, compacting)
        self._speaker.later.append(words)
        if self._watch.held is None:
            self._say_rest()
            return
        self._watch.hold((self._event(words),))

    def _event(self, words: Any) -> Event:
        """Words of ours among the events: only this seat's speaker sees them."""
        return Event(self.session_id, 0, words)

    def _say_rest(self) -> None:
        """Say what is left: all of it when nothing is held, what was dropped when events were."""
        for words in tuple(self._speaker.later):
            if said := self._speaker.speak((self._event(words),)):
                self.link.send_blob(said)

    def _resumed(self) -> None:
        if not self._catching:
            self._catching = True
            self._seat.then(self._caught_up)

    def _caught_up(self) -> None:
        self._catching = False
        if not self.link.closed:
            self._say_rest()
            self.freed()

    # --- leaving ---

    def is_quiet(self) -> bool:
        """Whether all work is done, and all of it was said."""
        return not self.works and self._watch.held is None

    def leave(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        self._watch.close()


def _began(work: Work) -> bool:
    started = work.started
    return started.done() and not started.cancelled() and started.exception() is None


def _failure(work: Work) -> str:
    """Why the work never ran, or broke; empty when it came to an end of its own."""
    if work.done.cancelled():
        return "the host stopped"
    error = work.done.exception()
    if error is None:
        return ""
    return told(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"


def new_session(settings: "Settings", agent: str = "", cwd: str = "") -> OpenSpec:
    """What a session is opened with."""
    return OpenSpec(
        agent=agent or settings.agent,
        cwd=cwd or settings.cwd,
        model=settings.model,
        mode=settings.mode or None,  # type: ignore[arg-type]
        reasoning=settings.reasoning,
        check_cwd=not settings.sole or bool(cwd),
        traits=(settings.given,),
    )
