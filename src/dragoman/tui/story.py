"""What a session's events amount to for somebody who reads along: pieces, in order.

No drawing here, and no I/O. Every piece is small; `dirty` is the first that has changed since
somebody looked.
"""

from typing import Any

from dragoman.engine import events as ev
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
from .piece import Piece, at_work, said_by

_OUTPUT = 200_000  # characters of one call's output that are held for the screen


class Story:
    """The pieces of one session, and the facts that the lines around them show."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.dirty: int | None = None
        self.turn = ""  # the turn that runs
        self.turn_at = 0
        self.waits = ""  # what is waited for, in words
        self.asks: dict[str, Ask] = {}
        self.model = self.mode = self.title = self.reasoning = ""
        self.cost = 0.0
        self.usage = Usage()  # of the last model call
        self.present: tuple[Who, ...] = ()
        self.lagged = 0
        self.deleted = False
        self.me = ""  # the name of our own terminal, which is not shown
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
        found = _TAKERS.get(type(body))
        if found is not None:
            found(self, body, event.at)
        if event.seq and not self._drafting:
            self._kept = len(self.pieces)

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
        self._touch(piece)

    def drop_draft(self) -> None:
        """Forget what was only streamed: it will be told again, or is lost."""
        self._fresh.clear()
        self._musings.clear()
        self._forget_step()
        self.waits = ""

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

    def touched(self, piece: Piece) -> None:
        self._touch(piece)

    # --- pieces ---

    def _add(self, piece: Piece) -> Piece:
        self._mark(len(self.pieces))
        self.pieces.append(piece)
        return piece

    def _touch(self, piece: Piece) -> None:
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

    def _opened(self, body: ev.Opened, at: int) -> None:
        self.model, self.mode, self.title = body.model, body.mode, body.title

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
        self._add(Piece("note", f"continues {body.parent[:8]} from here", at=at, name="info"))

    def _turn_began(self, body: ev.TurnBegan, at: int) -> None:
        self.turn, self.turn_at, self.waits = body.turn, at, "the model"
        self._add(said_by(body.content, self._name(body.by), at))
        self._begin_step()

    def _steered(self, body: ev.Steered, at: int) -> None:
        piece = said_by(body.content, self._name(body.by), at)
        piece.outcome = "steered"
        self._add(piece)

    def _name(self, by: Who | None) -> str:
        if by is None or (self.me and by.name == self.me):
            return ""
        return f"{by.name} ({by.dialect})" if by.name else by.dialect

    def _step_began(self, body: ev.StepBegan, at: int) -> None:
        self._forget_step()
        self.waits = "the model"

    def _muse(self, text: str) -> None:
        piece = self._thought
        if piece is None:
            piece = self._thought = self._add(Piece("thought"))
            piece.grows = self._drafting = True
        halves = piece.text[-1:].strip() and text[:1].strip()  # of one word
        piece.words += len(text.split()) - bool(halves)
        piece.text += text
        self._touch(piece)
        self.waits = "thinking"

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.outcome = "done"
            self._thought.grows = False
            self._touch(self._thought)
            self._thought = None

    def _call_drafted(self, body: ev.CallDrafted, at: int) -> None:
        self._end_thought()
        self._flush_tail()
        self.waits = f"the model to write a call of {body.name}"

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
            self._add(Piece("note", body.error, at=at, name="error"))
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
            self._touch(piece)
        self.waits = self._awaited()

    def _progress(self, body: ev.Progress, at: int) -> None:
        piece = self._calls.get(body.call_id)
        if piece is not None:
            piece.text = (piece.text + body.text)[-_OUTPUT:]
            self._touch(piece)

    def _call_ended(self, body: ev.CallEnded, at: int) -> None:
        piece = self._calls.pop(body.call_id, None)
        if piece is None:
            return
        piece.text = text_of(body.content)[:_OUTPUT]
        piece.outcome = "failed" if body.is_error and body.outcome == "done" else body.outcome
        piece.ended_at = at
        if body.detail is not None:
            piece.diffs = body.detail.diffs
        self._touch(piece)
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
            self._touch(piece)

    def _turn_ended(self, body: ev.TurnEnded, at: int) -> None:
        self._flush_tail()
        self._end_thought()
        self.turn, self.waits = "", ""
        for piece in self._calls.values():
            piece.outcome = piece.outcome if piece.outcome not in ("", "running") else "cancelled"
            self._touch(piece)
        self._calls.clear()
        if body.outcome != "completed":
            piece = self._add(Piece("ended", body.error or body.cause, at=at, name=body.outcome))
        self._begin_step()

    def _asked(self, body: ev.Asked, at: int) -> None:
        self.asks[body.ask.id] = body.ask
        self.waits = "your answer"

    def _settled(self, body: ev.Settled, at: int) -> None:
        ask = self.asks.pop(body.ask_id, None)
        self.waits = self._awaited()
        who = self._name(body.by)
        if ask is not None and (who or body.comment or body.verdict not in ("allow", "answer")):
            said = body.verdict.replace("_", " ")
            comment = f": {body.comment}" if body.comment else ""
            by = f" by {who}" if who else ""
            self._add(Piece("note", f"{said}{by}{comment}", at=at, name="info"))
        elif ask is not None and body.verdict == "answer":
            self._add(Piece("note", f"{ask.title} → {body.text}", at=at, name="info"))

    def _planned(self, body: ev.Planned, at: int) -> None:
        last = next((p for p in reversed(self.pieces) if p.kind in ("plan", "you")), None)
        if last is not None and last.kind == "plan":  # one plan per turn, kept up to date
            last.plan = body.entries
            self._touch(last)
        else:
            self._add(Piece("plan", at=at)).plan = body.entries

    def _renamed(self, body: ev.Renamed, at: int) -> None:
        self.title = body.title

    def _model_set(self, body: ev.ModelSet, at: int) -> None:
        self.model = body.model
        self._add(Piece("note", f"the model is {body.model} now", at=at, name="info"))

    def _mode_set(self, body: ev.ModeSet, at: int) -> None:
        self.mode = body.mode
        self._add(Piece("note", f"the mode is {body.mode} now", at=at, name="info"))

    def _reasoning_set(self, body: ev.ReasoningSet, at: int) -> None:
        self.reasoning = body.effort
        self._add(
            Piece("note", f"the effort is {body.effort or 'as configured'} now", at=at, name="info")
        )

    def _compacted(self, body: ev.Compacted, at: int) -> None:
        self.cost += body.cost
        self._add(Piece("note", "the history was summarised", at=at, name="info"))

    def _cleared(self, body: ev.Cleared, at: int) -> None:
        self._add(Piece("note", "the agent has forgotten what is above", at=at, name="info"))

    def _noted(self, body: ev.Noted, at: int) -> None:
        self._add(Piece("note", noted(body), at=at, name=body.level))

    def _retrying(self, body: ev.Retrying, at: int) -> None:
        self.waits = f"another try in {body.delay:.0f} s ({body.reason})"

    def _presence(self, body: ev.Presence, at: int) -> None:
        self.present = body.clients

    def _lagged(self, body: ev.Lagged, at: int) -> None:
        self.lagged += body.dropped

    def _deleted(self, body: ev.Deleted, at: int) -> None:
        self.deleted = True
        self._add(Piece("note", "this session was deleted", at=at, name="error"))


def noted(body: ev.Noted) -> str:
    """A note in words; its title is left out where the text says it, too."""
    if body.title.lower() in body.text.partition("\n")[0].lower():
        return body.text
    return f"{body.title} {body.text}".strip()


_TAKERS: dict[type, Any] = {
    ev.Opened: Story._opened,
    ev.Seeded: Story._seeded,
    ev.TurnBegan: Story._turn_began,
    ev.Steered: Story._steered,
    ev.StepBegan: Story._step_began,
    ev.CallDrafted: Story._call_drafted,
    ev.Spoke: Story._spoke,
    ev.CallStarted: Story._call_started,
    ev.Progress: Story._progress,
    ev.CallEnded: Story._call_ended,
    ev.TurnEnded: Story._turn_ended,
    ev.Asked: Story._asked,
    ev.Settled: Story._settled,
    ev.Planned: Story._planned,
    ev.Renamed: Story._renamed,
    ev.ModelSet: Story._model_set,
    ev.ModeSet: Story._mode_set,
    ev.ReasoningSet: Story._reasoning_set,
    ev.Compacted: Story._compacted,
    ev.Cleared: Story._cleared,
    ev.Noted: Story._noted,
    ev.Retrying: Story._retrying,
    ev.Presence: Story._presence,
    ev.Lagged: Story._lagged,
    ev.Deleted: Story._deleted,
}
