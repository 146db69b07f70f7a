"""How turns end: what is kept of a cancelled, failed or cut-off one, and how the session rests.

A turn that ends in the middle of a message leaves its draft, which becomes a message marked as cut.
For the case that the whole process ends, the draft of a long message is noted in the store now and
then: not as an event, but in a place beside that the next note overwrites. Whoever takes the
session up finds it there.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from . import events as ev
from .content import Text, Thinking, text_of
from .faults import Fault, sort_of
from .ports import Store, TurnResult, row_of
from .state import State
from .work import Draft, Underway

if TYPE_CHECKING:
    from .ledger import Ledger

ABORTED = "aborted: the turn was cancelled before this call finished"
STOPPED = "stopped: the user stopped this call; the turn goes on"
NOT_RUN = "aborted: the turn was cancelled before this call was run"
RESTARTED = "The host stopped while a turn ran."
UNKNOWN = (
    "unknown: the host stopped while this call was running. It may or may not have taken effect; "
    "check before you run it again."
)
NOT_RUN_RESTART = "not run: the host stopped before this call was started"


def verdict(turn: Underway, result: TurnResult | BaseException) -> tuple[ev.Outcome, ev.Stop, str]:
    """Outcome, stop and error of a turn whose agent came back with this."""
    if isinstance(result, TurnResult):
        outcome: ev.Outcome = "failed" if result.error else "completed"
        return outcome, result.stop, result.error
    if isinstance(result, asyncio.CancelledError) and not turn.cancelled:
        return "failed", "error", "The turn was broken off from inside."
    if isinstance(result, asyncio.CancelledError):
        stopped = turn.interrupted or turn.cause == "shutdown"
        return "interrupted" if stopped else "cancelled", "aborted", ""
    text = str(result) if isinstance(result, Fault) else f"{type(result).__name__}: {result}"
    return "failed", "error", text


def sort(result: TurnResult | BaseException) -> str:
    """The sort of failure that this was, in one word."""
    return result.stop if isinstance(result, TurnResult) else sort_of(result)


def unfinished(state: State, turn_id: str) -> list[ev.Kept]:
    """Results for the calls of a turn that ends before they were run, or without their end."""
    words: list[ev.Kept] = []
    for call in state.unanswered():
        text = ABORTED if state.journal[call.id][1] else NOT_RUN
        words.append(ev.CallEnded(turn_id, call.id, call.name, "cancelled", (Text(text),), True))
    return words


def cut_off(
    state: State,
    withdrawn: Sequence[ev.Kept],
    cause: str,
    outcome: ev.Outcome = "interrupted",
    said: Sequence[ev.Kept] = (),
) -> list[ev.Kept]:
    """The facts that end a turn whose task is gone (restart, takeover)."""
    words: list[ev.Kept] = [*withdrawn]  # first, as in a turn that lives: then its call ends
    for call in state.unanswered():
        started = state.journal[call.id][1]
        text = UNKNOWN if started else NOT_RUN_RESTART
        end: ev.CallOutcome = "unknown" if started else "cancelled"
        words.append(ev.CallEnded(state.turn, call.id, call.name, end, (Text(text),), True))
    words += unsaid(state, state.turn)
    error = RESTARTED if cause == "restart" else ""
    words.append(ev.TurnEnded(state.turn, outcome, "aborted", last_text(state, said), error, cause))
    return words


def unsaid(state: State, turn_id: str) -> list[ev.Steered]:
    """What was said into a turn and acknowledged, and is not in the history yet."""
    return [
        ev.Steered(turn_id, one.content, one.by, one.id)
        for one in state.queued.values()
        if one.steers
    ]


def rests(state: State, status: ev.Status, why: str) -> list[ev.Kept]:
    """The changes to how the session rests; with prompts in the store it is about to start again.

    So a host that comes after a crash finds it among the active ones.
    """
    words: list[ev.Kept] = []
    if status != state.status:
        words.append(ev.StatusChanged(state.status, status, why))
    if status not in ev.ACTIVE and any(not one.steers for one in state.queued.values()):
        words.append(ev.StatusChanged(status, "starting"))
    return words


def rest(state: State, outcome: ev.Outcome, kind: str) -> ev.Status:
    """What the session is after a turn: open for more, or done."""
    if outcome == "interrupted":
        return "interrupted"
    if state.interactive or kind == "compact":
        return "idle"
    if outcome == "completed" or outcome == "failed":
        return outcome
    return "interrupted"


def last_text(state: State, tail: Sequence[ev.Kept] = ()) -> str:
    """What the model said last in this turn; `tail` is not folded yet."""
    for body in reversed(tail):
        if isinstance(body, ev.Spoke) and (text := text_of(body.content)):
            return text
    for message in reversed(state.messages):
        if message.role == "user":
            return ""
        if message.role == "assistant" and (text := text_of(message.content)):
            return text
    return ""


DRAFTS = "drafts"
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

    __slots__ = ("_due", "_ledger", "_noted", "_rounds", "_turn", "_writing")

    def __init__(self, ledger: "Ledger", turn: Underway) -> None:
        self._ledger = ledger
        self._turn = turn
        self._noted = (0, 0)  # step and characters
        self._writing: asyncio.Task[None] | None = None
        global _rounds
        loop = asyncio.get_running_loop()
        if _rounds is None or _rounds.loop is not loop:
            _rounds = _Rounds(loop)
        self._rounds = _rounds
        self._due = 0.0
        self._rounds.add(self)

    def look(self, now: float) -> None:
        """Note what is new, when it is time to."""
        ledger, turn = self._ledger, self._turn
        if now < self._due or turn.closed or ledger.parked or ledger.turn is not turn:
            return
        draft = turn.draft
        size = 0 if turn.spoken else sum(len(p) for _, pieces in draft.texts for p in pieces)
        if size and size <= _MOST_CHARS and (draft.step, size) != self._noted:
            if self._writing is None or self._writing.done():
                self._noted = (draft.step, size)
                note = Note(turn.id, draft.step, ledger.state.steps, words(draft))
                self._writing = ledger.home.spawn(_write(ledger, note))
        self._due = now + size / _CHARS_A_SECOND

    def end(self) -> None:
        self._rounds.turns.discard(self)
        if self._writing is not None and not self._ledger.parked:
            self._ledger.home.spawn(self._clear(self._writing))

    async def _clear(self, writing: "asyncio.Task[None]") -> None:
        await asyncio.wait({writing})
        await _write(self._ledger, None)


class _Rounds:
    """Looks at all turns of a loop now and then: a turn that is over soon costs no timer."""

    __slots__ = ("_timer", "loop", "turns")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.turns: set[Noting] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, one: Noting) -> None:
        self.turns.add(one)
        if self._timer is None:
            self._timer = self.loop.call_later(NOTE_SECONDS, self._go)

    def _go(self) -> None:
        self._timer = None
        if self.turns:  # none: the next turn begins them again
            self._timer = self.loop.call_later(NOTE_SECONDS, self._go)
        for one in tuple(self.turns):
            one.look(self.loop.time())


_rounds: _Rounds | None = None


async def _write(ledger: "Ledger", note: Note | None) -> None:
    value = None if note is None else _encoded(note)
    try:
        await ledger.home.store.put(DRAFTS, ledger.id, value)
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
    note = row_of(await store.get(DRAFTS, state.id), Note)
    if note is None or note.turn != state.turn or note.steps != state.steps:
        return ()
    return [
        ev.Spoke(note.turn, note.step, note.content, "aborted", model=state.model, error="cut off")
    ]
