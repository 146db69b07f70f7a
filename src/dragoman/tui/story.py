"""What a session's events amount to for somebody who reads along: pieces, in order.

No drawing here, and no I/O. Every piece is small; `dirty` is the first that has changed since
somebody looked.
"""

from typing import Any

from dragoman.engine import events as ev
from dragoman.engine import visible
from dragoman.engine.content import (
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    text_of,
)
from dragoman.engine.events import Ask, Event, Who

from .chunks import Chunk, Splitter, split
from .piece import SUMMARY, Piece, at_work, said_by

_OUTPUT = 200_000  # characters of one call's output that are held for the screen


class Story:
    """The pieces of one session, and the facts that the lines around them show."""

    def __init__(self, me: str = "") -> None:
        """`me`: the name of our own terminal, which is not shown."""
        self.pieces: list[Piece] = []
        self.dirty: int | None = None
        self.turn = ""  # the turn that runs
        self.turn_at = 0
        self.waits = ""  # what is waited for, in words
        self.summary_at = 0  # since when a history is summarised outside of a turn
        self.asks: dict[str, Ask] = {}
        self.queued: dict[str, ev.Queued] = {}  # what was taken in and not heard yet
        self.model = self.mode = ""
        self.cost = 0.0
        self.usage = Usage()  # of the last model call
        self.present: tuple[Who, ...] = ()
        self.me = me
        self._calls: dict[str, Piece] = {}
        self._kept = 0  # pieces before this stand for kept events
        self._splitter = Splitter()
        self._fresh: list[str] = []  # text that no piece holds yet
        self._musings: list[str] = []  # the same of a thought
        self._streamed: list[str] = []  # all text of the running step
        self._tail: Piece | None = None  # holds what the splitter has not let go of
        self._thought: Piece | None = None
        self._drafting = False  # something of the running step is shown

    # --- what happens ---

    def take(self, event: Event) -> None:
        body = event.body
        if type(body) is ev.TextDelta:
            if self._musings:
                self.gather()
            self._fresh.append(body.text)
            return
        if type(body) is ev.ThoughtDelta:
            if self._fresh:
                self.gather()
            self._musings.append(body.text)
            return
        self.gather()
        self._take(body, event.at)
        if event.seq and not self._drafting:
            self._kept = len(self.pieces)

    def _take(self, body: ev.Body, at: int) -> None:
        match body:
            case ev.Opened():
                self.model, self.mode = body.model, body.mode
            case ev.Seeded():
                self._seeded(body, at)
            case ev.TurnBegan():
                self._turn_began(body, at)
            case ev.Queued():
                self.queued[body.id] = body
            case ev.Dropped():
                self.queued.pop(body.id, None)
            case ev.Steered():
                self.queued.pop(body.queued, None)
                piece = self._add(said_by(body.content, self._name(body.by), at))
                piece.outcome = "steered"
            case ev.StepBegan():
                self._forget_step()
                self.waits = "the model"
            case ev.CallDrafted():
                self._end_thought()
                self._flush_tail()
                self.waits = f"the model to write a call of {body.name}"
            case ev.Spoke():
                self._spoke(body, at)
            case ev.CallStarted():
                self._call_started(body, at)
            case ev.Progress():
                if (running := self._calls.get(body.call_id)) is not None:
                    running.text = (running.text + body.text)[-_OUTPUT:]
                    self.touched(running)
            case ev.CallEnded():
                self._call_ended(body, at)
            case ev.TurnEnded():
                self._turn_ended(body, at)
            case ev.Asked():
                self.asks[body.ask.id] = body.ask
                self.waits = "your answer"
            case ev.Settled():
                self._settled(body, at)
            case ev.Planned():
                self._planned(body, at)
            case ev.ModelSet():
                self.model = body.model
                self.note(f"the model is {body.model} now", at)
            case ev.ModeSet():
                self.mode = body.mode
                self.note(f"the mode is {body.mode} now", at)
            case ev.ReasoningSet():
                self.note(f"the effort is {body.effort or 'as configured'} now", at)
            case ev.Compacting():
                self._summarising(body.state in ("began", "more"), at)
            case ev.Compacted():
                self._summarising(False, at)
                self.cost += body.cost
                self.usage = Usage()
                self.note("the history was summarised", at)
            case ev.Cleared():
                self.usage = Usage()
                self.note("the agent has forgotten what is above", at)
            case ev.Noted():
                self.note(noted(body), at, body.level)
            case ev.Retrying():
                self.waits = f"another try in {body.delay:.0f} s ({body.reason})"
            case ev.Presence():
                self.present = body.clients
            case ev.Deleted():
                self.note("this session was deleted", at, "error")

    def gather(self) -> None:
        """Put the text that has come since into pieces."""
        if self._musings:
            self._muse("".join(self._musings))
            self._musings.clear()
        if not self._fresh:
            return
        text = "".join(self._fresh)
        self._fresh.clear()
        self._end_thought()
        self._streamed.append(text)
        self._drafting = True
        self.waits = "writing"
        ready = self._splitter.feed(text)
        for chunk in ready:
            piece = self._tail or self._add(Piece("said"))
            self._fill(piece, chunk)
            self._tail = None
        if self._splitter.tail.strip():
            piece = self._tail or self._add(Piece("said"))
            self._fill(piece, self._splitter.last, grows=True)
            self._tail = piece

    def _fill(self, piece: Piece, chunk: Chunk, *, grows: bool = False) -> None:
        piece.text, piece.opener, piece.tight = chunk
        piece.grows = grows
        self.touched(piece)

    def drop_draft(self) -> None:
        """Forget what was only streamed: it will be told again, or is lost."""
        self._fresh.clear()
        self._musings.clear()
        self._forget_step()
        self.waits, self.summary_at = "", 0

    def put(self, piece: Piece) -> Piece:
        """Something of our own, not of the session."""
        self.gather()
        return self._add(piece)

    def prepend(self, pieces: list[Piece]) -> None:
        """What was said before all this; `dirty` is not touched."""
        self.pieces[:0] = pieces
        self._kept += len(pieces)
        if self.dirty is not None:
            self.dirty += len(pieces)

    # --- pieces ---

    def _add(self, piece: Piece) -> Piece:
        self._mark(len(self.pieces))
        self.pieces.append(piece)
        return piece

    def note(self, text: str, at: int, level: str = "info") -> None:
        self._add(Piece("note", text, at=at, name=level))

    def touched(self, piece: Piece) -> None:
        piece.stamp += 1
        for at in range(len(self.pieces) - 1, -1, -1):  # what changes is near the end
            if self.pieces[at] is piece:
                self._mark(at)
                return

    def _mark(self, at: int) -> None:
        self.dirty = at if self.dirty is None else min(self.dirty, at)

    def _begin_step(self) -> None:
        self._splitter = Splitter()
        self._streamed.clear()
        self._tail = self._thought = None
        self._drafting = False

    def _forget_step(self) -> None:
        """Take away the pieces of the step that runs."""
        keep = [p for p in self.pieces[self._kept :] if p.kind not in ("said", "thought")]
        if len(keep) != len(self.pieces) - self._kept:
            self._mark(self._kept)
            self.pieces[self._kept :] = keep
        self._begin_step()

    # --- by kind of event ---

    def _seeded(self, body: ev.Seeded, at: int) -> None:
        for message in body.messages:
            if message.role == "user":
                self._add(said_by(message.content, "", message.at or at))
            elif message.role == "assistant":
                self._blocks(message.content, message.at or at)
            else:
                for block in message.content:
                    if isinstance(block, ToolResult):
                        self._result(block)
        self.note(f"continues {body.parent[:8]} from here", at)

    def _summarising(self, still: bool, at: int) -> None:
        if self.turn:
            self.waits = SUMMARY if still else "the model"
        else:
            self.summary_at = (self.summary_at or at) if still else 0

    def _turn_began(self, body: ev.TurnBegan, at: int) -> None:
        self.queued.pop(body.turn, None)
        self.turn, self.turn_at, self.waits = body.turn, at, "the model"
        self._add(said_by(body.content, self._name(body.by), at))
        self._begin_step()

    def _name(self, by: Who | None) -> str:
        if by is None or (self.me and by.name == self.me):
            return ""
        return f"{by.name} ({by.dialect})" if by.name else by.dialect

    def _muse(self, text: str) -> None:
        piece = self._thought
        if piece is None:
            piece = self._thought = self._add(Piece("thought"))
            piece.grows = self._drafting = True
        halves = piece.text[-1:].strip() and text[:1].strip()  # of one word
        piece.words += len(text.split()) - bool(halves)
        piece.text += text
        self.touched(piece)
        self.waits = "thinking"

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.outcome = "done"
            self._thought.grows = False
            self.touched(self._thought)
            self._thought = None

    def _flush_tail(self) -> None:
        for chunk in self._splitter.end():
            self._fill(self._tail or self._add(Piece("said")), chunk)
        self._tail = None

    def _spoke(self, body: ev.Spoke, at: int) -> None:
        streamed = "".join(self._streamed)
        thought = any(isinstance(block, Thinking) and block.text for block in body.content)
        shown = any(piece.kind == "thought" for piece in self.pieces[self._kept :])
        if streamed == text_of(body.content) and thought == shown:
            self._end_thought()
            self._flush_tail()
            for block in body.content:
                if isinstance(block, ToolCall):
                    self._call(block, at)
        else:  # something was missed, or it is told from the log
            self._forget_step()
            self._blocks(body.content, at)
        self._begin_step()
        if body.error and body.stop != "aborted":
            self.note(body.error, at, "error")
        self.cost += body.cost
        self.usage = body.usage
        self.model = body.model or self.model

    def _blocks(self, content: tuple[Any, ...], at: int) -> None:
        for block in content:
            if isinstance(block, Text):
                for chunk in split(block.text):
                    piece = self._add(Piece("said", at=at))
                    piece.text, piece.opener, piece.tight = chunk
            elif isinstance(block, Thinking) and block.text:
                piece = self._add(Piece("thought", block.text, at=at))
                piece.outcome = "done"
            elif isinstance(block, ToolCall):
                self._call(block, at)

    def _call(self, block: ToolCall, at: int) -> None:
        piece = self._add(Piece("call", at=at, name=block.name))
        piece.args = block.args if block.args is not None else {"": block.raw}
        piece.call_id = block.id
        self._calls[block.id] = piece

    def _call_started(self, body: ev.CallStarted, at: int) -> None:
        piece = self._calls.get(body.call_id)
        if piece is not None:
            piece.at = at
            piece.args = body.args or piece.args
            piece.outcome = "running"
            self.touched(piece)
        self.waits = self._awaited()

    def _call_ended(self, body: ev.CallEnded, at: int) -> None:
        piece = self._calls.pop(body.call_id, None)
        if piece is None:
            return
        piece.text = text_of(body.content)[:_OUTPUT]
        piece.outcome = "failed" if body.is_error and body.outcome == "done" else body.outcome
        piece.ended_at = at
        if body.detail is not None:
            piece.diffs = body.detail.diffs
        self.touched(piece)
        self.waits = self._awaited()

    def _awaited(self) -> str:
        """What is waited for in the middle of a step: calls run side by side."""
        if self.asks:
            return "your answer"
        return at_work([one.name for one in self._calls.values() if one.outcome == "running"])

    def _result(self, block: ToolResult) -> None:
        piece = self._calls.pop(block.call_id, None)
        if piece is not None:
            piece.text = text_of(block.content)[:_OUTPUT]
            piece.outcome = "failed" if block.is_error else "done"
            piece.diffs = block.detail.diffs if block.detail is not None else ()
            self.touched(piece)

    def _turn_ended(self, body: ev.TurnEnded, at: int) -> None:
        self._flush_tail()
        self._end_thought()
        self.turn, self.waits = "", ""
        for piece in self._calls.values():
            piece.outcome = piece.outcome if piece.outcome not in ("", "running") else "cancelled"
            self.touched(piece)
        self._calls.clear()
        if body.outcome != "completed":
            piece = self._add(Piece("ended", body.error or body.cause, at=at, name=body.outcome))
        self._begin_step()

    def _settled(self, body: ev.Settled, at: int) -> None:
        ask = self.asks.pop(body.ask_id, None)
        self.waits = self._awaited()
        who = self._name(body.by)
        if ask is not None and (who or body.comment or body.verdict not in ("allow", "answer")):
            said = body.verdict.replace("_", " ")
            comment = f": {body.comment}" if body.comment else ""
            by = f" by {who}" if who else ""
            self.note(f"{said}{by}{comment}", at)
        elif ask is not None and body.verdict == "answer":
            self.note(f"{ask.title.strip().partition(chr(10))[0]} → {body.text}", at)

    def _planned(self, body: ev.Planned, at: int) -> None:
        last = next((p for p in reversed(self.pieces) if p.kind in ("plan", "you")), None)
        if last is not None and last.kind == "plan":  # one plan per turn, kept up to date
            last.plan = body.entries
            self.touched(last)
        else:
            self._add(Piece("plan", at=at)).plan = body.entries


def noted(body: ev.Noted) -> str:
    """A note in words."""
    return visible.noted(body.title, body.text)
