"""One session as one connection sees it: what was sent of it, what runs, what is asked."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Prompt, Text, Usage
from dragoman.engine.faults import NothingRunning, UnknownSession
from dragoman.engine.ports.commands import Commands
from dragoman.engine.seat import Seat
from dragoman.engine.work import Work
from dragoman.holding import Holder
from dragoman.wire.link import Blob

from .calls import text_content
from .client_side import ClientFiles, ClientTerminals
from .commands import IN_TURNS
from .permissions import Questions
from .speak import Said

if TYPE_CHECKING:
    from .children import Child
    from .hear import AcpHearer

_PROGRESS_SECONDS = 0.25
_PROGRESS_TAIL = 16 * 1024
_PAGE = 512
_NOTES = 16
_ANY = ("", -1)  # a step that may be any: the one which was streamed before this connection


def _future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


class Running(Holder):
    """A prompt of this connection: from the moment it is heard until it is answered."""

    request: object  # the id of what is to be answered
    work: Work | None = None
    cancelled: bool = False
    taken: bool = False  # it was taken back before it began
    told: asyncio.Future[None] = msgspec.field(default_factory=_future)

    def is_cancelled(self) -> bool:
        return self.cancelled

    def tell(self) -> None:
        """The last update of the turn is on its way: it may be answered."""
        if not self.told.done():
            self.told.set_result(None)


class Attachment:
    """A session that is active on a connection."""

    __slots__ = (
        "_again", "_left", "_link", "_progress", "_shown_at", "_step", "_texts", "_thoughts",
        "_reset", "asks_as", "barred", "born", "call_id", "catching_up", "children", "commands",
        "connection", "entering", "files", "held", "id", "last_used", "notes", "place", "places",
        "questions", "replaying", "running", "seat", "speaker", "spent", "stopping", "terminals",
    )  # fmt: skip

    def __init__(self, connection: "AcpHearer", session_id: str) -> None:
        self.connection = connection
        self._link = connection.link
        self.id = session_id
        self.asks_as = session_id  # in whose name questions are put
        self.seat: Seat[Any] = connection.door.seat(session_id, connection.link)
        self.speaker: Any = connection.new_speaker(session_id, self.parent)  # or a Speaker2
        self.held: dict[str, Running] = {}  # prompts of version 2 that were not begun, by key
        self.spent = Usage()  # by the model in this turn
        self.questions = Questions(connection, self)
        self.running: Running | None = None
        self.stopping = False
        self.barred = False  # it could not be entered
        self._left: asyncio.Future[None] | None = None  # of those who wait for its end
        self.replaying = False
        self.entering = False  # the client waits for the answer to its load or resume
        self.children: dict[str, Child] = {}  # that work for it now
        self.born: dict[str, ev.Delegated] = {}  # those that were not announced yet
        self.places: dict[str, int] = {}  # up to which those were told
        self.catching_up = False  # with what happened while the client was away
        self.place = 0  # up to which it was told
        self.commands: Commands | None = None
        self.notes: list[str] = []  # troubles to show with the next turn
        self.call_id = ""  # the tool call that runs now
        self.last_used = monotonic()
        self._texts = 0  # characters of the model's current message that were streamed
        self._thoughts = 0
        self._step: tuple[str, int] = ("", 0)  # turn and step that were streamed last
        self._again: list[int] | None = None  # characters of text, thoughts that come once more
        self._reset = False  # what is streamed first may be told a second time
        self._progress: dict[str, str] = {}
        self._shown_at = 0.0
        can = connection.client
        self.files = ClientFiles(self) if can.read_files or can.write_files else None
        self.terminals = ClientTerminals(self) if can.terminals else None
        self.lend()

    # --- what a child has of its own ---

    @property
    def parent(self) -> str:
        """The session that this one works for; empty: none."""
        return ""

    @property
    def shape_key(self) -> object:
        """Who has the same one is told the same words."""
        return self.connection.shape_key

    # --- watching ---

    async def follow(self, since: int | None = None) -> None:
        """Watch the session from now on, or from what came after `since`."""
        connection = self.connection
        self.speaker = await self.seat.follow(
            connection.who, self.speaker, self.deliver, key=self.shape_key, since=since,
            begun=lambda place, newest: self._reached(place),
        )  # fmt: skip

    def _reached(self, place: int) -> None:
        """The client has everything up to this place."""
        self.place = place
        if self.connection.places:
            self.send([self.speaker.place(place, self._texts, self._thoughts)])

    def lend(self) -> None:
        """Let the session use the client's files and terminals."""
        self.seat.lend(self.files, self.terminals)

    @property
    def was_left(self) -> bool:
        """The client leaves it, so that what it asked for just before is cancelled."""
        return self.stopping and not self.barred

    async def renew(self) -> None:
        """Watch again when the session was closed by somebody else and is back."""
        async with self.seat.in_order():
            if self.stopping:
                raise UnknownSession(self.id)
            if not await self.seat.renew():
                await self.follow()

    async def left(self) -> None:
        """Wait until this connection has left the session."""
        if not self.seat.gone:
            self._left = self._left or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._left)

    def leave(self) -> None:
        """Stop watching; the session goes on without this connection."""
        self.seat.leave()
        if self._left is not None and not self._left.done():
            self._left.set_result(None)
        if self.terminals is not None:
            self.terminals.release_all()
        if self.running is not None:
            self.running.tell()
        self.questions.withdraw_all()
        for child in tuple(self.children.values()):
            self.part_from(child)

    def part_from(self, child: "Child") -> None:
        """A child is done, or this connection goes."""
        if self.children.get(child.id) is child:
            del self.children[child.id]
        child.leave()

    async def pages(self, start: int, tell: Callable[[Sequence[ev.Event]], None]) -> int:
        """Tell kept events after a place as fast as the client reads; returns the last place."""
        place = start
        while events := await self.seat.read(place, _PAGE):
            tell(events)
            place = events[-1].seq
            if len(events) < _PAGE:
                break
            await self.connection.drained()
        return place

    def _speak(self, events: Sequence[ev.Event]) -> None:
        said = self.speaker.speak(events)
        if said is not None:
            self.deliver(said)

    async def replay(self) -> int:
        """Send the whole conversation as it was; returns the place up to which it was sent."""
        start = await self._beginning()
        self.replaying = True
        try:
            place = await self.pages(start, self._speak)
        finally:
            self.replaying = False
            self._texts = self._thoughts = 0
        await self._tell_usage()
        return place

    async def replay_second(self) -> int:
        """The same in version 2: each thing once, as it is now."""
        place = await self.tell_past(await self._beginning())
        await self._tell_usage()
        self._reset = True
        return place

    async def tell_past(self, start: int) -> int:
        """Tell what came after a place in version 2; returns the last place."""
        from .speak2 import Replay

        past = Replay(self.speaker)

        def tell(events: Sequence[ev.Event]) -> None:
            self.send(past.lines(events))
            self.born |= {
                e.body.session: e.body for e in events if isinstance(e.body, ev.Delegated)
            }

        place = await self.pages(start, tell)
        self.send(past.rest())
        return place

    async def _tell_usage(self) -> None:
        state = await self.connection.door.look(self.id)
        if state.last_usage.context:
            self.send(self.speaker.usage_of(state))

    async def catch_up(self, since: int, texts: int, thoughts: int) -> int:
        """Send what happened while the client was away; returns the place up to which.

        `texts` and `thoughts` are the characters that it has of a message which was not kept yet.
        """
        self._texts, self._thoughts, self._step = texts, thoughts, _ANY
        self.catching_up = True
        try:
            return await self.pages(since, self._speak)
        finally:
            self.catching_up = False

    async def _beginning(self) -> int:
        """Where the conversation begins: behind the last time that it was cleared."""
        place, start = 0, 0
        while True:
            events = await self.seat.read(place, _PAGE)
            for event in events:
                if isinstance(event.body, ev.Cleared):
                    start = event.seq
            if len(events) < _PAGE:
                break
            place = events[-1].seq
        return start

    # --- sending ---

    def send(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._link.send_blob(Blob(lines))

    def deliver(self, said: list[Said]) -> None:
        """Send what a speaker said, in this connection's way."""
        link = self._link
        for one in said:
            body = one.body
            if body is None:
                if self._again is not None:
                    self._send_rest(one, self._again)
                    continue
                if self._reset:
                    self._reset = False
                    for kind in ("agent_thought", "agent_message"):
                        self.send([self.speaker.whole(kind, one.id, ())])
                self._texts += one.text_size
                self._thoughts += one.thought_size
                if one.blob is not None:
                    link.send_blob(one.blob)
                continue
            act = _ACTS.get(type(body))
            done = act is not None and act(self, body)
            if one.blob is not None and not done and self._wants(body):
                link.send_blob(one.blob)
            if one.live is not None and not self.replaying:
                link.send_blob(one.live)
            if one.seq and not self.replaying:
                self.place = one.seq
                if self.connection.places:
                    self._reached(one.seq)

    def _send_rest(self, said: Said, again: list[int]) -> None:
        """Of words that are told again, send only those that are new."""
        place = 0 if said.text_size else 1
        words = said.words
        known = min(again[place], len(words))
        again[place] -= known
        rest = words[known:]
        if rest and place == 0:
            self._texts += len(rest)
            self.send([self.speaker.text(rest, said.id)])
        elif rest:
            self._thoughts += len(rest)
            self.send([self.speaker.thought(rest, said.id)])

    def _on_step(self, body: ev.StepBegan) -> None:
        """A step that is told a second time (to a reader that fell behind) begins anew."""
        step = (body.turn, body.step)
        same = self._step in (step, _ANY)
        self._again = [self._texts, self._thoughts] if same else None
        self._step = step

    def _wants(self, body: object) -> bool:
        if not isinstance(body, ev.TurnBegan) or self.replaying or self.connection.second:
            return True
        # Who typed a prompt has it on the screen already.
        steady = self.connection.steady
        if steady and body.key.startswith(f"{steady}:"):
            return False
        return body.by is None or body.by.id != self.connection.who.id

    def _on_began(self, body: ev.TurnBegan) -> None:
        self._texts = self._thoughts = 0
        self._reset = False
        self.spent = Usage()
        self.last_used = monotonic()
        if self.notes and not self.replaying:
            notes, self.notes = self.notes, []
            self.send([self.speaker.thought(note + "\n", f"{body.turn}.0") for note in notes])

    def _on_spoke(self, body: ev.Spoke) -> None:
        """Send what the message has beyond what was streamed of it."""
        self.spent += body.usage
        self._reset = False
        texts, thoughts, self._texts, self._thoughts = self._texts, self._thoughts, 0, 0
        self._again, self._step = None, ("", 0)
        self.send(self.speaker.rest(body, texts, thoughts))

    def _on_retry(self, body: ev.Retrying) -> None:
        self._texts = self._thoughts = 0
        self._again, self._step = None, ("", 0)
        self._reached(self.place)

    def _on_call(self, body: ev.CallStarted) -> None:
        self.call_id = body.call_id

    def _on_result(self, body: ev.CallEnded) -> bool:
        """The end of a call that ran in this client's terminal shows it, then lets it go."""
        self.call_id = ""
        self._progress.pop(body.call_id, None)
        if self.questions.gone_to:
            self.questions.over(body.call_id)
        name = body.detail.terminal_id if body.detail is not None else None
        if self.replaying or self.terminals is None or not self.terminals.has(name):
            return False
        self.send([self.speaker.result(body, terminal=True)])
        self.terminals.release(name)
        return True

    def _on_progress(self, body: ev.Progress) -> None:
        """Show a running tool's output now and then; its result brings the rest."""
        if self.connection.second:
            return  # the speaker tells it
        text = (self._progress.get(body.call_id, "") + body.text)[-_PROGRESS_TAIL:]
        self._progress[body.call_id] = text
        now = monotonic()
        if now - self._shown_at >= _PROGRESS_SECONDS:
            self._shown_at = now
            self.show(body.call_id, [text_content(text)])

    def say(self, text: str) -> None:
        """Say something as the agent, to this client alone."""
        self.send([self.speaker.text(text, f"own.{uuid4().hex[:12]}")])

    def show(self, call_id: str, content: list[dict[str, Any]]) -> None:
        """Replace what a running tool call shows."""
        update = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call_id,
            "status": "in_progress",
            "content": content,
        }
        self.send([self.speaker.line(update)])

    def _on_asked(self, body: ev.Asked) -> None:
        if not (self.replaying or self.catching_up):  # else those that are open come at the end
            self.questions.put(body.ask)

    def _on_settled(self, body: ev.Settled) -> None:
        if not (self.replaying or self.catching_up):
            self.questions.settled(body)

    def _on_ended(self, body: ev.TurnEnded) -> None:
        if self.terminals is not None and not self.replaying:
            self.terminals.release_all()
        if self.questions.gone_to:
            self.questions.over()
        running = self.running
        if running is not None and running.work is not None and running.work.turn == body.turn:
            running.tell()

    def _on_noted(self, body: ev.Noted) -> None:
        if self.replaying or self.connection.manner.notices or body.level == "info":
            return  # nothing, or the speaker tells it
        self.notes.append(f"{body.title}: {body.text}" if body.text else body.title)
        del self.notes[:-_NOTES]

    def _on_delegated(self, body: ev.Delegated) -> None:
        from .children import born

        born(self, body)

    def entered(self) -> None:
        """The load or resume was answered: children that work are told of now."""
        from .children import adopt

        self.entering = False
        adopt(self)

    def _on_deleted(self, body: ev.Deleted) -> None:
        self.connection.forget(self)

    async def all_told(self) -> None:
        """Wait until the client was given what happened so far."""
        if self.seat.watch is not None and not self._link.closed:
            told = asyncio.Event()
            self.seat.then(told.set)
            await told.wait()

    # --- prompts ---

    def command_in(self, content: Prompt) -> tuple[tuple[str, str] | None, Prompt]:
        """The command of ours that a prompt is, and its words; a command of a file is filled in."""
        first = content[0]
        found = None
        if isinstance(first, Text) and self.commands is not None:
            found = self.commands.match(first.text.strip())
        if found is None:
            return None, content
        command, words = found
        if command.body is not None:
            return None, (Text(command.filled(words)), *content[1:])
        return None if command.name in IN_TURNS else (command.name, words), content

    # --- stopping ---

    def cancel(self, cause: str = "client") -> None:
        """Stop the turn that runs, or the prompt that is about to begin one; else do nothing.

        Prompts of version 2 that wait behind it are taken back, whoever gave them: they are the
        session's.
        """
        self.connection.desk.take_back(self.id)
        if self.running is not None:
            self.running.cancelled = True
            if self.running.work is None:
                return  # it is stopped as soon as there is something to stop
        self.seat.cancel(cause)

    def take_back(self, key: str) -> bool:
        """Take a prompt back that waits for its turn; False: it has begun, or there is none."""
        running = self.held.get(key)
        if running is None:
            return False
        running.cancelled = True
        if running.work is None:
            return True  # it is taken back as soon as it waits
        session = self.connection.door.live(self.id)
        if session is None or running.work.turn in (session.turn, session.works_on):
            return False
        try:
            self.connection.door.retract(self.id, key)
        except NothingRunning:
            return False  # it begins this very moment
        running.taken = True
        return True


_ACTS: dict[type, Any] = {
    ev.TurnBegan: Attachment._on_began,
    ev.Spoke: Attachment._on_spoke,
    ev.StepBegan: Attachment._on_step,
    ev.Retrying: Attachment._on_retry,
    ev.CallStarted: Attachment._on_call,
    ev.CallEnded: Attachment._on_result,
    ev.Progress: Attachment._on_progress,
    ev.Asked: Attachment._on_asked,
    ev.Settled: Attachment._on_settled,
    ev.TurnEnded: Attachment._on_ended,
    ev.Delegated: Attachment._on_delegated,
    ev.Noted: Attachment._on_noted,
    ev.Deleted: Attachment._on_deleted,
}
