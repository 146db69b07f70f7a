"""Facts about a session.

*Kept* bodies get a sequence number, are stored, and folded into the session's state (`state.py`).
*Passing* bodies (`seq` 0) are streamed to whoever watches and are never stored.
"""

from typing import Any, Literal

import msgspec

from .ask import Ask as Ask
from .ask import AskKind as AskKind
from .ask import Verdict as Verdict
from .ask import Who as Who
from .content import Block, Detail, Image, Message, PlanEntry, Text, Usage
from .faults import AlreadySettled

Status = Literal[
    "idle",
    "starting",
    "running",
    "waiting_input",
    "interrupting",
    "interrupted",
    "completed",
    "failed",
]
ACTIVE: frozenset[str] = frozenset({"starting", "running", "waiting_input", "interrupting"})
Mode = Literal["readonly", "plan", "supervised", "full"]
Stop = Literal["end_turn", "tool_use", "length", "refusal", "error", "aborted", "max_steps"]
Outcome = Literal["completed", "cancelled", "failed", "interrupted"]
Level = Literal["info", "warning", "error"]
CallOutcome = Literal["done", "failed", "denied", "cancelled", "unknown"]


# --- kept ------------------------------------------------------------------------------------


class Opened(msgspec.Struct, frozen=True, tag="opened", omit_defaults=True):
    agent: str
    cwd: str
    model: str
    mode: Mode
    interactive: bool = True
    title: str = ""
    parent: str | None = None
    by: Who | None = None
    extra: dict[str, Any] | None = None


class Seeded(msgspec.Struct, frozen=True, tag="seeded"):
    """A forked or continued session begins with what was said in its parent."""

    parent: str
    messages: tuple[Message, ...]


class TurnBegan(msgspec.Struct, frozen=True, tag="turn_began", omit_defaults=True):
    turn: str
    content: tuple[Text | Image, ...]
    by: Who | None = None
    key: str = ""
    metadata: dict[str, Any] | None = None


class Queued(msgspec.Struct, frozen=True, tag="queued", omit_defaults=True):
    """Something that was acknowledged and waits: a prompt, or a word into the turn that runs.

    A prompt's `id` is the turn that it will be.
    """

    id: str
    content: tuple[Text | Image, ...]
    by: Who | None = None
    key: str = ""
    metadata: dict[str, Any] | None = None
    steers: bool = False


class Dropped(msgspec.Struct, frozen=True, tag="dropped", omit_defaults=True):
    """What was queued will not run any more."""

    id: str
    reason: str
    by: Who | None = None


class Steered(msgspec.Struct, frozen=True, tag="steered", omit_defaults=True):
    """A message put into a running turn; the model sees it at its next step."""

    turn: str
    content: tuple[Text | Image, ...]
    by: Who | None = None
    queued: str = ""  # what it was while it waited


class Spoke(msgspec.Struct, frozen=True, tag="spoke", omit_defaults=True):
    """The model finished one call. `content` is empty when nothing usable arrived."""

    turn: str
    step: int
    content: tuple[Block, ...]
    stop: Stop
    usage: Usage = Usage()
    cost: float = 0.0
    model: str = ""
    error: str = ""
    fault: str = ""  # the sort of error, one word


class CallStarted(msgspec.Struct, frozen=True, tag="call_started", omit_defaults=True):
    """Written before a tool runs, so that a crash leaves a mark."""

    turn: str
    call_id: str
    name: str
    args: dict[str, Any] | None = None  # as they are run, after hooks changed them
    rules: tuple[str, ...] = ()  # remembered answers that allowed it
    why: str = ""  # what those say


class CallRefined(msgspec.Struct, frozen=True, tag="call_refined"):
    """A hosted agent said more of a call than when it was first seen."""

    turn: str
    call_id: str
    name: str
    args: dict[str, Any]


class CallEnded(msgspec.Struct, frozen=True, tag="call_ended", omit_defaults=True):
    turn: str
    call_id: str
    name: str
    outcome: CallOutcome
    content: tuple[Text | Image, ...] = ()
    is_error: bool = False
    detail: Detail | None = None


class Delegated(msgspec.Struct, frozen=True, tag="delegated", omit_defaults=True):
    """A call gave work to a child session, which is about to begin with it."""

    turn: str
    call_id: str
    session: str
    title: str = ""
    role: str = ""  # what the child is for


class TurnEnded(msgspec.Struct, frozen=True, tag="turn_ended", omit_defaults=True):
    turn: str
    outcome: Outcome
    stop: Stop
    text: str = ""  # the text of the last assistant message of the turn
    error: str = ""
    cause: str = ""  # why it was cancelled or interrupted: client, shutdown, restart, close, ...
    fault: str = ""  # the sort of error, one word


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    ask: Ask


class Settled(msgspec.Struct, frozen=True, tag="settled", omit_defaults=True):
    ask_id: str
    verdict: Verdict
    by: Who | None = None
    comment: str = ""
    text: str = ""
    call_id: str = ""
    tool: str = ""
    digest: str = ""  # of what was asked
    rule: str = ""  # that came of it
    scope: str = ""  # what is remembered, in words


class StatusChanged(msgspec.Struct, frozen=True, tag="status", omit_defaults=True):
    old: Status
    new: Status
    reason: str = ""


class Renamed(msgspec.Struct, frozen=True, tag="renamed", omit_defaults=True):
    title: str
    by: Who | None = None


class ModelSet(msgspec.Struct, frozen=True, tag="model_set", omit_defaults=True):
    model: str
    by: Who | None = None


class ModeSet(msgspec.Struct, frozen=True, tag="mode_set", omit_defaults=True):
    mode: Mode
    by: Who | None = None


class ReasoningSet(msgspec.Struct, frozen=True, tag="reasoning_set", omit_defaults=True):
    effort: str
    by: Who | None = None


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    entries: tuple[PlanEntry, ...]


class Compacted(msgspec.Struct, frozen=True, tag="compacted", omit_defaults=True):
    """All but the last `kept` messages were replaced by a summary."""

    summary: str
    kept: int
    usage: Usage = Usage()
    cost: float = 0.0
    automatic: bool = False
    id: str = ""  # under which it was told while it was made


class Cleared(msgspec.Struct, frozen=True, tag="cleared", omit_defaults=True):
    by: Who | None = None


class Allowed(msgspec.Struct, frozen=True, tag="allowed", omit_defaults=True):
    """An answer that is remembered as a rule. Without one: from before there were rules, when it
    meant all calls of a tool; then only a refusal still counts.
    """

    tool: str
    deny: bool = False
    rule: str = ""
    scope: str = ""


class Archived(msgspec.Struct, frozen=True, tag="archived"):
    archived: bool


class ExtraSet(msgspec.Struct, frozen=True, tag="extra_set", omit_defaults=True):
    """What traits keep with a session, by their names. None removes a field, or a name."""

    values: dict[str, Any]
    by: Who | None = None


class Noted(msgspec.Struct, frozen=True, tag="noted", omit_defaults=True):
    """Something clients should know: a broken MCP server, an injected event, a trimmed history."""

    level: Level
    title: str
    text: str = ""
    data: dict[str, Any] | None = None


Kept = (
    Opened
    | Seeded
    | TurnBegan
    | Queued
    | Dropped
    | Steered
    | Spoke
    | CallStarted
    | CallRefined
    | CallEnded
    | Delegated
    | TurnEnded
    | Asked
    | Settled
    | StatusChanged
    | Renamed
    | ModelSet
    | ModeSet
    | ReasoningSet
    | Planned
    | Compacted
    | Cleared
    | Allowed
    | Archived
    | ExtraSet
    | Noted
)

# --- passing ---------------------------------------------------------------------------------


class StepBegan(msgspec.Struct, frozen=True, tag="step_began", gc=False):
    turn: str
    step: int


class StreamOpened(msgspec.Struct, frozen=True, tag="stream_opened", gc=False):
    """The provider accepted the request and will stream."""

    turn: str
    step: int


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta", omit_defaults=True, gc=False):
    turn: str
    text: str
    step: int = 0


class ThoughtDelta(msgspec.Struct, frozen=True, tag="thought_delta", omit_defaults=True, gc=False):
    turn: str
    text: str
    step: int = 0


class CallDrafted(msgspec.Struct, frozen=True, tag="call_drafted", gc=False):
    """The model began to write a tool call."""

    turn: str
    call_id: str
    name: str


class CallArgs(msgspec.Struct, frozen=True, tag="call_args", gc=False):
    turn: str
    call_id: str
    fragment: str


class CallReady(msgspec.Struct, frozen=True, tag="call_ready", gc=False):
    turn: str
    call_id: str


class Progress(msgspec.Struct, frozen=True, tag="progress", gc=False):
    """Output of a tool while it runs.

    Bytes that are no UTF-8 stand in it as lone surrogates (Python's `surrogateescape`): who wants
    the bytes finds them there, and all others send U+FFFD, as for every lone surrogate.
    """

    turn: str
    call_id: str
    text: str


class Retrying(msgspec.Struct, frozen=True, tag="retrying", gc=False):
    turn: str
    attempt: int
    delay: float
    reason: str


class Compacting(msgspec.Struct, frozen=True, tag="compacting", omit_defaults=True, gc=False):
    """A history is being made short: it began, more of its summary is there, or it came to nothing.

    `Compacted` is the good end. `text` is a piece of the summary, or why it failed.
    """

    turn: str
    id: str
    state: Literal["began", "more", "failed", "cancelled"]
    text: str = ""


class Presence(msgspec.Struct, frozen=True, tag="presence"):
    """Who is attached to the session now."""

    clients: tuple[Who, ...]


class Lagged(msgspec.Struct, frozen=True, tag="lagged", gc=False):
    """This watcher read too slowly: `dropped` passing events were lost to it, no kept ones."""

    dropped: int


class Deleted(msgspec.Struct, frozen=True, tag="deleted", gc=False):
    """The session is gone. Passing: there is no log left to keep it in."""

    by: Who | None = None


Passing = (
    StepBegan
    | StreamOpened
    | TextDelta
    | ThoughtDelta
    | CallDrafted
    | CallArgs
    | CallReady
    | Progress
    | Retrying
    | Compacting
    | Presence
    | Lagged
    | Deleted
)
Body = Kept | Passing
Delta = TextDelta | ThoughtDelta | Progress | CallArgs  # pieces of text that are streamed


class Event(msgspec.Struct, frozen=True):
    """One fact with its place. `seq` counts within the session, `gseq` over the whole store."""

    session: str
    at: int
    body: Body
    seq: int = 0
    gseq: int = 0


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Kept] | None = None


def encode_body(body: Kept) -> bytes:
    """The body as JSON; lone surrogates, which tools may say, become U+FFFD."""
    return storable(body)[1]


def storable(body: Kept) -> tuple[Kept, bytes]:
    """The body as it will be read again, and its JSON."""
    try:
        return body, _encoder.encode(body)
    except UnicodeEncodeError:
        data = _encoder.encode(_mended(msgspec.to_builtins(body)))
        return decode_body(data), data


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value


def decode_body(data: bytes) -> Kept:
    global _decoder
    if _decoder is None:  # building the decoder of a wide union costs milliseconds: on first use
        _decoder = msgspec.json.Decoder(Kept)
    return _decoder.decode(data)


def already(before: Settled) -> AlreadySettled:
    """Says that an approval was answered before, by whom, and how."""
    by = before.by or "the host over dragoman"
    return AlreadySettled(
        f"Approval {before.ask_id} was already decided: {before.verdict} (by {by}).",
        by=before.by,
        verdict=before.verdict,
        ask=before.ask_id,
    )
