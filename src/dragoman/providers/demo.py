"""Provider `demo`: no language model, but every part of a turn, without a key or a network."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import msgspec

from dragoman.engine.content import Image, Message, Text, ToolCall, ToolResult, text_of
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import (
    ModelCallArgs,
    ModelCallBegan,
    ModelCallEnded,
    ModelInfo,
    ModelOpened,
    ModelPart,
    ModelRequest,
    ModelStop,
    ModelText,
    ModelThought,
    ModelUsage,
)
from dragoman.engine.visible import many
from dragoman.holding import Holder

from . import leaflet
from .estimate import request_chars, rough_usage
from .phrases import Command, parse
from .scripted import pieces

MODEL = ModelInfo(
    provider="demo",
    id="demo",
    name="Demo (not a language model)",
    context_window=128_000,
    max_output=65_536,
    reasoning=True,
    price_input=0.0,
    price_output=0.0,
    price_cache_read=0.0,
    price_cache_write=0.0,
)
_ALIASES = {"bash": ("bash", "shell")}
_SLOW = 1 / 8  # seconds between the numbers of "count slowly", unless there is a pace
_BREATH = 64
_QUOTE_LINES = 12
_QUOTE_CHARS = 900


class Demo(Holder):
    """Reads the last request, plays its next step, and closes with what the tools said.

    `pace` is the pause in seconds before each word, and between numbers that are counted slowly.
    """

    name = "demo"

    pace: float = 0.0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        said = thought = 0
        stop: ModelStop | None = None
        yield ModelOpened()
        async for part in self._answer(request):
            if isinstance(part, ModelText):
                said += len(part.text)
            elif isinstance(part, ModelCallArgs):
                said += len(part.fragment)
                stop = ModelStop("tool_use")
            elif isinstance(part, ModelThought):
                thought += len(part.text)
            yield part
        yield ModelUsage(rough_usage(request_chars(request), said, thought))
        yield stop or ModelStop("end_turn")

    async def close(self) -> None:
        """Nothing is held."""

    async def _answer(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        asked, since = _last_request(request.messages)
        text = text_of(asked.content).strip() if asked else ""
        reply = ""
        if not request.tools and text.startswith("<conversation>"):
            reply = _digest(text)
        elif not (steps := parse(text)):
            reply = leaflet.answer(text) or leaflet.ABILITIES
            if asked and any(isinstance(block, Image) for block in asked.content):
                reply = "I got your picture, but I cannot look at it.\n\n" + reply
            if not _told_how(request.messages):
                reply = f"{reply}\n\n{leaflet.CONNECT}"
        async for part in self._words(reply) if reply else self._play(steps, since, request):
            yield part

    async def _play(
        self, steps: list[list[Command]], since: Sequence[Message], request: ModelRequest
    ) -> AsyncIterator[ModelPart]:
        results = [block for m in since for block in m.content if isinstance(block, ToolResult)]
        names = {b.id: b.name for m in since for b in m.content if isinstance(b, ToolCall)}
        rounds = sum(1 for m in since if any(isinstance(block, ToolCall) for block in m.content))
        stuck = bool(results) and results[-1].is_error
        offered = {spec.name for spec in request.tools}
        lacking: list[str] = []
        rest = _after(steps, rounds, offered)
        spoken = False
        if not stuck:
            for step in rest:
                calls: list[Command] = []
                for command in step:
                    if not command.tool:
                        if spoken:
                            yield ModelText("\n\n")
                        spoken = True
                        async for part in self._plain(command):
                            yield part
                    elif tool := _offered(command.tool, offered):
                        calls.append(msgspec.structs.replace(command, tool=tool))
                    else:
                        lacking.append(command.tool)
                if calls:
                    if spoken:
                        yield ModelText("\n\n")
                    async for part in self._calls(calls, request):
                        yield part
                    return
        lines = [
            _told(result, result.name or names.get(result.call_id, "tool")) for result in results
        ]
        lines += [f"This session offers no `{tool}` tool, so I left that out." for tool in lacking]
        if stuck and rest:
            lines.append("I stopped there and left out what was to follow.")
        only_long = all(command.verb == "long" for step in steps for command in step)
        if not only_long and not _told_how(request.messages):
            lines.append(leaflet.CONNECT)
        if lines:
            if spoken:
                yield ModelText("\n\n")
            async for part in self._words("\n\n".join(lines)):
                yield part

    async def _plain(self, command: Command) -> AsyncIterator[ModelPart]:
        if command.verb == "fail":
            raise ProviderFailed("the demo model failed because you asked it to", command.text)
        words = ""
        if command.verb == "think":
            musing = (
                f"You asked me to think about {command.text}. I have no thoughts of my own: "
                "these words show how a model's reasoning is streamed."
            )
            for piece in pieces(musing):
                await asyncio.sleep(self.pace)
                yield ModelThought(piece)
            words = f"I have thought about {command.text}, as far as a demo can."
        elif command.verb.startswith("count"):
            pause = self.pace or (_SLOW if command.verb == "count slowly" else 0.0)
            for number in range(1, command.number + 1):
                await asyncio.sleep(pause)
                yield ModelText(f"{number} " if number < command.number else str(number))
        elif command.verb == "long":
            for number in range(command.number):
                if number % _BREATH == 0:
                    await asyncio.sleep(0)
                yield ModelText("word ")
        elif command.verb == "say":
            words = command.text
        else:
            words = f'I do not know how to do "{command.text[:200]}".'
        async for part in self._words(words):
            yield part

    async def _calls(self, calls: list[Command], request: ModelRequest) -> AsyncIterator[ModelPart]:
        lead = " and ".join(_LEADS.get(command.verb, command.verb) for command in calls)
        async for part in self._words(f"I will {lead}.\n"):
            yield part
        number = sum(
            1 for m in request.messages for block in m.content if isinstance(block, ToolCall)
        )
        for command in calls:
            number += 1
            call_id = f"demo_{len(request.messages)}_{number}"
            yield ModelCallBegan(call_id, command.tool)
            raw = msgspec.json.encode(command.args).decode()
            for fragment in pieces(raw, min(4 + len(raw) // 200, 64)):
                await asyncio.sleep(self.pace)
                yield ModelCallArgs(call_id, fragment)
            yield ModelCallEnded(call_id)

    async def _words(self, text: str) -> AsyncIterator[ModelPart]:
        for piece in pieces(text):
            await asyncio.sleep(self.pace)
            yield ModelText(piece)


_LEADS = {
    "run": "run the command",
    "list": "list the directory",
    "read": "read the file",
    "write": "write the file",
    "edit": "edit the file",
    "search": "search",
    "find": "look for files",
    "plan": "write down a plan",
    "ask": "ask you",
}


def _last_request(messages: Sequence[Message]) -> tuple[Message | None, Sequence[Message]]:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return messages[index], messages[index + 1 :]
    return None, ()


def _told_how(messages: Sequence[Message]) -> bool:
    """Whether this session was already told how to connect a real model."""
    return any(
        message.role == "assistant" and leaflet.CONNECT in text_of(message.content)
        for message in messages
    )


def _after(steps: list[list[Command]], rounds: int, offered: set[str]) -> list[list[Command]]:
    """The steps that follow the first `rounds` steps with tool calls."""
    for index, step in enumerate(steps):
        if rounds == 0:
            return steps[index:]
        if any(command.tool and _offered(command.tool, offered) for command in step):
            rounds -= 1
    return []


def _offered(tool: str, offered: set[str]) -> str | None:
    return next((name for name in _ALIASES.get(tool, (tool,)) if name in offered), None)


def _told(result: ToolResult, name: str) -> str:
    """A tool's result in a few lines."""
    body = "".join(part.text for part in result.content if isinstance(part, Text)).strip()
    pictures = sum(1 for part in result.content if isinstance(part, Image))
    lines = body.splitlines()
    short = "\n".join(lines[:_QUOTE_LINES])[:_QUOTE_CHARS]
    if pictures:
        short = f"{short}\n({many(pictures, 'picture')})".strip()
    if len(short) < len(body) and not pictures:
        short += f"\n… ({many(len(lines), 'line')} in all)"
    if result.is_error:
        return f"`{name}` did not work: {short or 'it gave no reason.'}"
    if name == "ask_user":
        return f"You answered: {short}"
    return f"`{name}` said:\n{short}" if short else f"`{name}` is done."


def _digest(text: str) -> str:
    """A summary that claims no understanding: how much there was, and its first and last words."""
    body = text.removeprefix("<conversation>").split("</conversation>")[0].strip()
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    asked = [then for line, then in pairwise(lines) if line == "--- user ---"]
    shown = asked[:3] + asked[-3:] if len(asked) > 6 else asked
    digest = [
        f"Digest by the demo model, which does not understand text: {many(len(lines), 'line')}, "
        f"{many(len(body), 'character')}, {many(len(asked), 'request')} of the user."
    ]
    digest += [f"- asked: {line[:200]}" for line in shown]
    if not asked and lines:
        digest += [f"- begins: {lines[0][:200]}", f"- ends: {lines[-1][:200]}"]
    return "\n".join(digest)
