"""Plays talks: a client that says its lines, over any transport, to a real host.

Stage directions:

    ! set NAME=VALUE, ...    options for the dialect's starter (Python literals), before the talk
    ! only TRANSPORT ...     the transports this talk is for
    ! script [PART, ...]     what the model answers next (words of `testing.script`)
    ! as NAME                speak and listen on another connection; made on first use
    ! raw BYTES              send bytes as they are, with Python's escapes
    ! eof                    say that nothing more will come
    ! closed                 the server ends the connection, and says nothing before
    ! silence                nothing else arrives (asked by the starter's probe)
    ! wait-hang / ! release  wait until the script hangs; let it go on
    ! wait-idle              wait until no session has anything to do
    ! wait-ask               wait until somebody is asked
    ! answer VERDICT [TEXT]  another client answers the oldest open question
    ! prompt TEXT            another client prompts the newest session
    ! cancel                 another client cancels the newest session's turn
"""

import ast
import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.engine.content import Text, Usage
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.transports import memory, unix
from dragoman.wire.link import Opener

from . import script as words
from .ends import LINE_LIMIT, End, MemoryEnd, StreamEnd, pipes
from .script import Scripted
from .talk import AnyOrder, Direct, Expect, Say, Talk, TalkError

WITHIN = 5.0  # seconds for anything that is waited for
TRANSPORTS = ("memory", "unix", "stdio")
_SOMEBODY = Who("talk", "memory", "the other client", "talk")


@dataclass(slots=True)
class Setup:
    """What a talk wants before it begins."""

    script: Scripted
    options: dict[str, Any]
    folder: Path


@dataclass(slots=True)
class Stage:
    """A dialect that is ready to be talked to.

    `probe` is a request and its answer, used to ask for silence. `names` are known from the
    start. `directions` adds words of the dialect's own.
    """

    door: Door
    open: Opener
    probe: tuple[str, Any] | None = None
    names: dict[str, Any] = field(default_factory=dict)
    directions: dict[str, Callable[[str], Awaitable[None]]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None


Starter = Callable[[Setup], Awaitable[Stage]]


async def play(talk: Talk, start: Starter, transport: str, folder: Path) -> None:
    """Play one talk over one transport. Raises TalkError where it goes another way."""
    turns: list[Any] = []
    for direct in talk.directions("script"):
        turns += parts_of(direct)
    setup = Setup(Scripted(turns), _options(talk), folder)
    stage = await start(setup)
    player = _Player(talk, setup, stage, transport)
    try:
        await player.run()
    finally:
        await player.close()
        if stage.close is not None:
            await stage.close()


def parts_of(direct: Direct) -> list[Any]:
    """The turns of a `! script` line."""
    known = {name: getattr(words, name) for name in words.__all__} | {"Usage": Usage}
    found = eval(direct.rest, {"__builtins__": {}}, known)  # noqa: S307 - our own test files
    return list(found)


def _options(talk: Talk) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for direct in talk.directions("set"):
        call = ast.parse(f"_({direct.rest})", mode="eval").body
        assert isinstance(call, ast.Call)
        options |= {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    return options


class _Player:
    def __init__(self, talk: Talk, setup: Setup, stage: Stage, transport: str) -> None:
        self.talk = talk
        self.setup = setup
        self.stage = stage
        self.transport = transport
        self.names = dict(stage.names)
        self.ends: dict[str, _Heard] = {}
        self.current = ""
        self.story: deque[str] = deque(maxlen=8)
        self.listener: unix.Listener | None = None

    async def run(self) -> None:
        await self._turn_to("the client")
        for step in self.talk.steps:
            try:
                await self._take(step)
            except TalkError as trouble:
                raise TalkError(self._told(step.line, str(trouble))) from None
            except TimeoutError:
                raise TalkError(self._told(step.line, f"nothing came in {WITHIN} s")) from None
            except EOFError:
                raise TalkError(self._told(step.line, "the server ended the connection")) from None

    def _told(self, line: int, trouble: str) -> str:
        place = f"{self.talk.path}:{line} over {self.transport}"
        before = "".join(f"\n    {row}" for row in self.story)
        return f"{place}: {trouble}\n  before it:{before}" if before else f"{place}: {trouble}"

    async def _take(self, step: Say | Expect | AnyOrder | Direct) -> None:
        match step:
            case Say():
                text = step.filled(self.names)
                self.story.append(f"C> {text[:300]}")
                await self.ends[self.current].end.send(text.encode() + b"\n")
            case Expect():
                await self._expect(step)
            case AnyOrder():
                await self._expect_all(step)
            case Direct():
                self.story.append(f"! {step.word} {step.rest[:200]}")
                await self._direct(step)

    async def _next(self, within: float = WITHIN) -> bytes:
        """The next line that no pending `S?` or `S*` takes."""
        heard = self.ends[self.current]
        while True:
            line = await heard.end.receive(within)
            for at, maybe in enumerate(heard.maybe):
                if not maybe.difference(line, self.names):
                    del heard.maybe[: at if maybe.kind == "*" else at + 1]
                    self._heard(line)
                    break
            else:
                return line

    def _heard(self, line: bytes) -> None:
        self.story.append(f"S> {line[:300].decode('utf-8', 'replace')}")

    async def _expect(self, step: Expect) -> None:
        heard = self.ends[self.current]
        if step.kind in "?*":  # it is known whether it came when the next line is there
            heard.maybe.append(step)
            return
        try:
            line = await self._next()
        except TimeoutError:
            raise TalkError(f"nothing came in {WITHIN} s\n  expected: {step.text}") from None
        heard.maybe.clear()
        if trouble := step.difference(line, self.names):
            raise TalkError(f"{trouble}\n  expected: {step.text}\n  got:      {_shown(line)}")
        self._heard(line)

    async def _expect_all(self, group: AnyOrder) -> None:
        left = list(group.parts)
        while left:
            line = await self._next()
            troubles = []
            for part in left:
                trouble = part.difference(line, self.names)
                if not trouble:
                    left.remove(part)
                    self._heard(line)
                    break
                troubles.append(f"\n  not line {part.line}: {trouble}")
            else:
                raise TalkError(f"not one of the group: {_shown(line)}{''.join(troubles)}")
        self.ends[self.current].maybe.clear()

    # --- stage directions ---

    async def _direct(self, step: Direct) -> None:
        rest = step.rest
        heard = self.ends[self.current]
        match step.word:
            case "set" | "only" | "script":
                return  # taken before the talk began
            case "as":
                await self._turn_to(rest)
            case "raw":
                await heard.end.send(ast.literal_eval('b"' + rest.replace('"', '\\"') + '"'))
            case "eof":
                await heard.end.end()
            case "closed":
                await self._expect_closed()
            case "silence":
                await self._expect_silence()
            case "wait-hang":
                async with asyncio.timeout(WITHIN):
                    await self.setup.script.hanging.wait()
            case "release":
                self.setup.script.release()
            case "wait-idle":
                async with asyncio.timeout(WITHIN):
                    for info in self.stage.door.live_infos():
                        await self.stage.door.idle(info.id)
            case "wait-ask":
                await self._oldest_ask()
            case "answer":
                verdict, _, text = rest.partition(" ")
                ask = await self._oldest_ask()
                door = self.stage.door
                await door.answer(ask, verdict, _SOMEBODY, text=text, comment=text)  # type: ignore[arg-type]
            case "prompt":
                await self.stage.door.prompt(self._newest(), (Text(rest),), _SOMEBODY)
            case "cancel":
                self.stage.door.cancel(self._newest())
            case word if word in self.stage.directions:
                await self.stage.directions[word](rest)
            case word:
                raise TalkError(f"there is no direction {word!r}")

    async def _turn_to(self, name: str) -> None:
        if name not in self.ends:
            self.ends[name] = _Heard(await self._connect())
        self.current = name

    def _newest(self) -> str:
        infos = self.stage.door.live_infos()
        if not infos:
            raise TalkError("there is no session")
        return infos[-1].id

    async def _oldest_ask(self) -> str:
        """The oldest open question, waiting for one when there is none."""
        asked = asyncio.Event()
        door = self.stage.door

        class Told:
            def speak(self, events: Sequence[Any]) -> None:
                asked.set()

        watch = door.watch_all(_SOMEBODY, Told(), lambda said: None)
        try:
            async with asyncio.timeout(WITHIN):
                while not (rows := await door.asks()):
                    asked.clear()
                    await asked.wait()
            return rows[0].ask.id
        finally:
            watch.close()

    async def _expect_closed(self) -> None:
        try:
            line = await self._next()
        except EOFError:
            return
        raise TalkError(f"expected the end of the connection, got: {_shown(line)}")

    async def _expect_silence(self) -> None:
        if self.stage.probe is None:
            with suppress(TimeoutError):
                line = await self._next(0.05)
                raise TalkError(f"expected silence, got: {_shown(line)}")
            return
        request, answer = self.stage.probe
        await self.ends[self.current].end.send(request.encode() + b"\n")
        line = await self._next()
        if Expect(0, "", ">", answer).difference(line, dict(self.names)):
            raise TalkError(f"expected silence, got: {_shown(line)}")

    # --- connections ---

    async def _connect(self) -> End:
        if self.transport == "memory":
            return MemoryEnd(memory.Client(self.stage.open))
        if self.transport == "stdio":
            return await pipes(self.stage.open)
        path = str(self.setup.folder / "talk.sock")
        if self.listener is None:
            self.listener = await unix.listen(path, self.stage.open)
        return StreamEnd(*await asyncio.open_unix_connection(path, limit=LINE_LIMIT))

    async def close(self) -> None:
        for heard in self.ends.values():
            await heard.end.close()
        if self.listener is not None:
            await self.listener.close()
        await asyncio.sleep(0)  # the server's side hears of it


def _shown(line: bytes) -> str:
    return line[:2000].decode("utf-8", "replace")


@dataclass(slots=True, eq=False)
class _Heard:
    """A connection, and the lines that may come on it before the next expected one."""

    end: End
    maybe: list[Expect] = field(default_factory=list)
