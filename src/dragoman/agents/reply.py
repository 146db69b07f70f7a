"""Gathers one model call's stream into a message, telling the turn as it grows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from dragoman.engine.content import Text, Thinking, ToolCall, Usage
from dragoman.engine.events import Stop
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelRetry,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
    Provider,
    TurnPort,
)
from dragoman.holding import Holder
from dragoman.wire.codec import is_deep


@asynccontextmanager
async def streaming(
    provider: Provider, request: ModelRequest
) -> AsyncIterator[AsyncIterator[ModelPart]]:
    """The model's stream, closed at once however it is left."""
    stream = provider.stream(request)
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class Reply(Holder):
    """What the model has said so far in this call."""

    turn: TurnPort
    step: int
    opened: bool = False
    stop: Stop | None = None
    usage: Usage = Usage()
    _used: set[str] | None = None  # call ids of the history, looked up when needed
    _blocks: list[list[Any]] = []  # [kind, pieces, signature] or ["call", id]
    _calls: dict[str, list[Any]] = {}  # id -> [name, pieces, complete]
    _named: dict[str, str] = {}  # the provider's id -> ours

    def take(self, part: ModelPart) -> None:
        """One part of the stream."""
        if type(part) is ModelText:  # nearly all of them
            blocks = self._blocks
            if blocks and blocks[-1][0] == "text":
                blocks[-1][1].append(part.text)
            else:
                blocks.append(["text", [part.text], ""])
            self.turn.text(part.text)
            return
        if isinstance(part, ModelThought):
            self._think(part.text)
            if part.signature:
                self._blocks[-1][2] = part.signature
            self.turn.thought(part.text)
            return
        if isinstance(part, ModelCallArgs):
            call_id = self._named[part.id]
            self._calls[call_id][1].append(part.fragment)
            self.turn.call_args(call_id, part.fragment)
            return
        match part:
            case ModelOpened():
                if not self.opened:
                    self.opened = True
                    self.turn.stream_opened(self.step)
            case ModelCallBegan(id=given, name=name):
                call_id = self._named[given] = self._unique(given)
                self._calls[call_id] = [name, [], False]
                self._blocks.append(["call", call_id, ""])
                self.turn.call_drafted(call_id, name)
            case ModelCallEnded(id=given):
                call_id = self._named[given]
                self._calls[call_id][2] = True
                self.turn.call_ready(call_id)
            case ModelUsage(usage=usage):
                self.usage = usage
            case ModelStop(reason=reason):
                self.stop = reason
            case ModelRetry(attempt=attempt, delay=delay, reason=reason):
                self._blocks, self._calls, self._named = [], {}, {}
                self.turn.retrying(attempt, delay, reason)

    def _think(self, text: str) -> None:
        blocks = self._blocks
        if not blocks or blocks[-1][0] != "thought" or blocks[-1][2]:
            blocks.append(["thought", [], ""])
        blocks[-1][1].append(text)

    def _unique(self, given: str) -> str:
        """An id that no other call of the session has: some models number them anew each time."""
        if self._used is None:
            self._used = {
                block.id
                for message in self.turn.messages
                for block in message.content
                if isinstance(block, ToolCall)
            }
        call_id, number = given or "call", 1
        while call_id in self._used or call_id in self._calls:
            number += 1
            call_id = f"{given or 'call'}-{number}"
        return call_id

    def content(self, *, calls: bool = True) -> tuple[Any, ...]:
        """The message. Without `calls`, what was written of tool calls is left out."""
        made: list[Any] = []
        for kind, value, signature in self._blocks:
            if kind == "call":
                if calls:
                    made.append(self._call(value))
            elif text := "".join(value):
                made.append(Text(text) if kind == "text" else Thinking(text, signature))
            elif signature:
                made.append(Thinking("", signature))
        return tuple(made)

    def _call(self, call_id: str) -> ToolCall:
        name, pieces, _ = self._calls[call_id]
        raw = "".join(pieces)
        try:
            args = msgspec.json.decode(raw.encode(), type=dict[str, Any]) if raw.strip() else {}
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return ToolCall(call_id, name, None, raw)
        if is_deep(raw.encode()):  # no client could be told of them
            return ToolCall(call_id, name, None, raw)
        return ToolCall(call_id, name, args)


def short_of(stop: Stop, said: bool) -> tuple[str, str] | None:
    """What to tell where an answer is not the whole one that its reader takes it for."""
    if stop == "refusal":
        return "The model refused to answer.", "Ask in other words, or take another model."
    if stop == "length":
        return "The answer is cut.", "The model may write no more at once; tell it to go on."
    return None if said else ("The model ended without a word.", "Ask it once more.")
