"""How turns end: what is kept of a cancelled, failed or cut-off one, and how the session rests."""

import asyncio
from collections.abc import Sequence

from . import events as ev
from .content import Text, text_of
from .faults import Fault
from .ports import TurnResult
from .state import State
from .underway import Underway

ABORTED = "aborted: the turn was cancelled before this call finished"
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
    words: list[ev.Kept] = []
    for call in state.unanswered():
        started = state.journal[call.id][1]
        text = UNKNOWN if started else NOT_RUN_RESTART
        end: ev.CallOutcome = "unknown" if started else "cancelled"
        words.append(ev.CallEnded(state.turn, call.id, call.name, end, (Text(text),), True))
    words += withdrawn
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
