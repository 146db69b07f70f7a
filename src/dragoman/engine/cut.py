"""Words that were shown and whose message never came to its end: they are kept, marked as cut.

A turn that ends in the middle of a message leaves its draft, which becomes a message. For the case
that the whole process ends, the draft of a long message is noted in the store now and then: not as
an event, but in a place beside that the next note overwrites. Whoever takes the session up finds
it there.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from . import events as ev
from .content import Text, Thinking
from .faults import Fault
from .ports import Store
from .state import State
from .underway import Draft, Underway

if TYPE_CHECKING:
    from .ledger import Ledger

SPACE = "drafts"
NOTE_SECONDS = 1.0  # between two notes; longer for long ones, which cost more
_CHARS_A_SECOND = 64 * 1024
_MOST_CHARS = 4 * 1024 * 1024


class Note(msgspec.Struct, frozen=True):
    """A draft as it was when it was noted. It is void once a further message was kept."""

    turn: str
    step: int
    steps: int  # messages of the session that were kept before
    content: tuple[Text | Thinking, ...]


def words(draft: Draft) -> tuple[Text | Thinking, ...]:
    """What a draft has shown, without the calls that were being written."""
    return tuple(
        Thinking(text) if thought else Text(text)
        for thought, pieces in draft.texts
        if (text := "".join(pieces))
    )


def left(turn: Underway, model: str) -> list[ev.Kept]:
    """The message that a turn which ends now has shown and not kept."""
    content = () if turn.spoken else words(turn.draft)
    if not content:
        return []
    return [ev.Spoke(turn.id, turn.draft.step, content, "aborted", model=model, error="cut off")]


class Noting:
    """Notes the draft of one turn while it grows."""

    __slots__ = ("_ledger", "_noted", "_timer", "_turn", "_writing")

    def __init__(self, ledger: "Ledger", turn: Underway) -> None:
        self._ledger = ledger
        self._turn = turn
        self._noted = (0, 0)  # step and characters
        self._writing: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = loop.call_later(NOTE_SECONDS, self._look)

    def _look(self) -> None:
        ledger, turn = self._ledger, self._turn
        self._timer = None
        if turn.closed or ledger.parked or ledger.turn is not turn:
            return
        draft = turn.draft
        size = 0 if turn.spoken else sum(len(p) for _, pieces in draft.texts for p in pieces)
        if size and size <= _MOST_CHARS and (draft.step, size) != self._noted:
            if self._writing is None or self._writing.done():
                self._noted = (draft.step, size)
                note = Note(turn.id, draft.step, ledger.state.steps, words(draft))
                self._writing = ledger.home.spawn(_write(ledger, note))
        pause = NOTE_SECONDS + size / _CHARS_A_SECOND
        self._timer = asyncio.get_running_loop().call_later(pause, self._look)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None and not self._ledger.parked:
            self._ledger.home.spawn(self._clear(self._writing))

    async def _clear(self, writing: "asyncio.Task[None]") -> None:
        await asyncio.wait({writing})
        await _write(self._ledger, None)


async def _write(ledger: "Ledger", note: Note | None) -> None:
    value = None if note is None else _encoded(note)
    try:
        await ledger.home.store.put(SPACE, ledger.id, value)
    except Fault as problem:  # only a crash now would lose words
        ledger.home.trouble("a draft was not noted", problem, session=ledger.id)


def _encoded(note: Note) -> bytes:
    try:
        return msgspec.json.encode(note)
    except UnicodeEncodeError:  # half a character at the end

        def whole(text: str) -> str:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

        content = tuple(type(block)(whole(block.text)) for block in note.content)
        return msgspec.json.encode(msgspec.structs.replace(note, content=content))


async def found(store: Store, state: State) -> Sequence[ev.Kept]:
    """The message that a process which ended had shown of the session's open turn."""
    if not state.turn:
        return ()
    raw = await store.get(SPACE, state.id)
    if raw is None:
        return ()
    try:
        note = msgspec.json.decode(raw, type=Note)
    except msgspec.DecodeError:
        return ()  # of another version
    if note.turn != state.turn or note.steps != state.steps:
        return ()
    return [
        ev.Spoke(note.turn, note.step, note.content, "aborted", model=state.model, error="cut off")
    ]
