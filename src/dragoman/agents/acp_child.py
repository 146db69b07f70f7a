"""A child process that is an ACP agent, and the conversation with it.

What it sends is heard in order: updates and requests wait in one queue for whoever takes the turn,
so that a request for permission never overtakes the call that it is about.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.engine.faults import ProviderFailed, in_words
from dragoman.engine.reading import counted
from dragoman.kernel import exited, let_go
from dragoman.observe.log import get_log
from dragoman.wire.calls import CallFailed, LinkLost, Outbound
from dragoman.wire.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Batch,
    Invalid,
    Reader,
    Request,
    Response,
    Rules,
    error,
    reply,
)
from dragoman.wire.lines import Lines

log = get_log("hosted")

LONGEST_LINE = 64 * 1024 * 1024
_MOST_WAITING = 4_096  # updates that may wait before the child is made to wait
_START_SECONDS = 60.0
_GRACE_SECONDS = 2.0
_DRAIN_SECONDS = 0.5  # for what an agent that has ended still has in its pipe
_LAST_WORDS = 4_096  # bytes of its standard error that a fault may quote
_PIECE = 1 << 16
_DEPTH = "ACP_HOST_DEPTH"  # how many hosts are above: an agent must not host itself for ever
_UNHEARD = "Does it speak ACP on stdin and stdout? Some need an argument for that: see `args`."
_DEEPEST = 3

_AGAIN = "The next prompt starts it again."
# What programs say that miss their key.
_KEY = re.compile(r"api[ _-]?key|[A-Z]+_API_KEY|_TOKEN\b|not logged in|unauthori[sz]ed", re.I)

Params = dict[str, Any]
Variables = Mapping[str, str]
Wrap = Callable[[Sequence[str], str, Variables], tuple[Sequence[str], Variables]]
_decode = msgspec.json.Decoder().decode


class Asked(msgspec.Struct, frozen=True):
    """A request or notification of the child."""

    method: str
    params: Params
    id: Any = msgspec.UNSET


def _sign_in(program: str) -> str:
    return (
        f"Sign in with {program} itself first; or name the variable of its key in `pass_env` of "
        "its entry: it gets no key of the daemon's environment otherwise."
    )


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # those for programs' own use have no names
        return f"signal {number}"


def _depth() -> int:
    return counted(os.environ.get(_DEPTH, "")) or 0


class Child:
    """One agent process. Made by `Child.start`; `close` ends it and all it started."""

    def __init__(self, command: Sequence[str], process: asyncio.subprocess.Process) -> None:
        self.command = tuple(command)
        self.pid = process.pid
        self.capabilities: Params = {}
        self.session = ""  # the child's own name of our session
        self.waiting: asyncio.Queue[Asked | None] = asyncio.Queue()
        self.listening = False  # somebody takes a turn and wants what it says
        self.ended: Callable[[int], None] = lambda pid: None
        self._process = process
        self._ending: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._words = bytearray()
        self._reader = Reader(Rules(any_version=True, null_params=True, batches=False))
        self.outbound = Outbound(self._send, prefix="host-")
        works = (self._read(), self._read_errors(), self._watch())
        self._tasks = [asyncio.ensure_future(work) for work in works]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        *,
        capabilities: Params,
        wrap: Wrap = lambda command, cwd, env: (command, env),
        began: Callable[[int], None] = lambda pid: None,
        ended: Callable[[int], None] = lambda pid: None,
    ) -> "Child":
        """Start the program and shake hands; `wrap` says what is started in its place.

        Raises ProviderFailed.
        """
        name = command[0]
        if _depth() >= _DEEPEST:
            raise ProviderFailed(
                f"{name} was not started: agents host each other {_DEEPEST} levels deep already.",
                "bad_request",
                hint='Give the innermost one an agent with backend = "builtin".',
            )
        try:
            words, variables = wrap(command, cwd, {**env, _DEPTH: str(_depth() + 1)})
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=cwd,
                env=variables,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_PIECE * 4,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            raise ProviderFailed(
                f"The agent {name} could not be started: {in_words(problem)}.",
                "bad_request",
                hint="Install it, or name its whole path as `command` of the agent.",
            ) from problem
        child = cls(command, process)
        child.ended = ended
        began(child.pid)
        try:
            await child._shake_hands(capabilities)
        except BaseException:
            await asyncio.shield(child.close())
            raise
        return child

    async def _shake_hands(self, capabilities: Params) -> None:
        params = {
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
        }
        answer = await self.call("initialize", params, within=_START_SECONDS)
        version = answer.get("protocolVersion")
        if version != 1:
            raise ProviderFailed(
                f"{self.command[0]} speaks version {version} of ACP, we speak version 1.",
                "bad_request",
            )
        found = answer.get("agentCapabilities")
        self.capabilities = found if isinstance(found, dict) else {}

    def can(self, *path: str) -> bool:
        """Whether the child said that it has this capability."""
        value: Any = self.capabilities
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._tasks[0].done()

    # --- talking ---

    async def call(self, method: str, params: Params, *, within: float | None = None) -> Params:
        """A request of ours, answered. Raises ProviderFailed."""
        try:
            raw = await self.outbound.call(method, params, within=within)
        except CallFailed as failure:
            raise self.refusal(method, failure) from failure
        except LinkLost as lost:
            raise await self.death() from lost
        except TimeoutError as late:
            silent = f"{self.command[0]} did not answer {method} in {within:g} seconds."
            raise ProviderFailed(
                silent, "network", hint=_UNHEARD if method == "initialize" else ""
            ) from late
        try:
            value = _decode(raw) if raw else None
        except msgspec.DecodeError as problem:
            raise ProviderFailed(
                f"{self.command[0]} answered {method} with what cannot be read: {problem}."
            ) from problem
        return value if isinstance(value, dict) else {}

    def refusal(self, method: str, failure: CallFailed) -> ProviderFailed:
        """The child's error as ours."""
        detail, value = "", None
        if failure.data is not None:
            with contextlib.suppress(msgspec.DecodeError):  # its message is enough
                value = _decode(failure.data)
            if isinstance(value, dict):
                value = value.get("details") or value.get("message") or value
            detail = f" ({value})"[:500] if value not in (None, "", {}) else ""
        sign_in = failure.code == -32000 and "auth" in f"{failure.message}{detail}".lower()
        return ProviderFailed(
            f"{self.command[0]} refused {method}: {failure.message}{detail}",
            "auth" if sign_in else "server",
            hint=_sign_in(self.command[0]) if sign_in else "",
        )

    async def death(self) -> ProviderFailed:
        """Why the process is gone, in one sentence."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await exited(self._process)
                await asyncio.wait({self._tasks[1]})
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with code {code}"
        if code is not None and code < 0:
            how = f"was ended by {_named(-code)}"
        words = self._words.decode("utf-8", "replace").strip()
        said = f" It said: {words[-600:]}" if words else ""
        return ProviderFailed(
            f"The agent process {self.command[0]} {how}.{said}",
            "server",
            hint=_sign_in(self.command[0]) if _KEY.search(words) else _AGAIN,
        )

    def answer(self, asked: Asked, value: Any) -> None:
        if asked.id is not msgspec.UNSET:
            self._send(reply(asked.id, value))

    def refuse(self, asked: Asked, code: int, message: str) -> None:
        if asked.id is not msgspec.UNSET:
            self._send(error(asked.id, code, message))

    def _send(self, message: bytes) -> None:
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(message + b"\n")

    # --- hearing ---

    async def _read(self) -> None:
        lines = Lines(LONGEST_LINE)
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while data := await stdout.read(_PIECE):
                for message in self._reader.read(lines.feed(data)):
                    self._hear(message)
                if lines.overlong:
                    log.warning("over-long line skipped", agent=self.command[0])
                while self.waiting.qsize() > _MOST_WAITING:
                    self._room.clear()
                    await self._room.wait()
        except OSError as problem:
            log.warning("reading failed", agent=self.command[0], problem=str(problem))
        finally:
            self.outbound.lose()
            self.waiting.put_nowait(None)
            self.ended(self.pid)

    async def _watch(self) -> None:
        """Stop reading when the process has ended, also where what it left holds its output."""
        await exited(self._process)
        await asyncio.wait({self._tasks[0]}, timeout=_DRAIN_SECONDS)
        self._tasks[0].cancel()

    def _hear(self, message: Any) -> None:
        match message:
            case Response():
                self.outbound.settle(message)
            case Request(method=method, params=params):
                try:  # JSON has numbers that no number of ours can hold
                    given = _decode(params) if params else {}
                except msgspec.DecodeError as problem:
                    log.warning("params cannot be read", agent=self.command[0], method=method)
                    self.refuse(Asked(method, {}, message.id), INVALID_PARAMS, str(problem))
                    return
                asked = Asked(method, given if isinstance(given, dict) else {}, message.id)
                if self.listening:
                    self.waiting.put_nowait(asked)
                elif not message.is_notification:
                    self.refuse(asked, METHOD_NOT_FOUND, "No turn is running.")
            case Invalid() | Batch():
                log.warning("a line of the agent was no message", agent=self.command[0])
                if isinstance(message, Invalid) and message.id is not None:
                    self._send(message.reply())  # it was meant as a request

    async def next(self) -> Asked | None:
        """What the child said next; None when it is gone."""
        asked = await self.waiting.get()
        self._room.set()
        return asked

    def forget_waiting(self) -> None:
        """Drop what was said to nobody."""
        while not self.waiting.empty():
            asked = self.waiting.get_nowait()
            if asked is None:
                self.waiting.put_nowait(None)
                break
            self.refuse(asked, METHOD_NOT_FOUND, "No turn is running.")
        self._room.set()

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while data := await stderr.read(_PIECE):
            self._words += data
            del self._words[:-_LAST_WORDS]

    # --- the end ---

    async def close(self) -> None:
        """Close its input, then insist; it goes to its end, also when nobody waits for that."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        """What it started goes with it."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await exited(process)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)  # children of its own that did not go, too
            if process.returncode is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE_SECONDS):
                        await exited(process)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        let_go(process)
