"""What a hosted agent asks of us during its turn: permission, files, terminals."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from itertools import count
from typing import Any, Protocol

from dragoman.engine.content import ToolCall
from dragoman.engine.faults import BadInput, Fault, Refused
from dragoman.engine.ports import TurnPort
from dragoman.observe.log import get_log
from dragoman.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS

from . import acp_words as words
from .acp_child import Asked, Child
from .acp_words import Fields, HostedCall

log = get_log("hosted")

_MOST_REQUESTS = 256  # requests of a child that may be under way at once
_MOST_TERMINALS = 32
_CHANGES = frozenset({"edit", "delete", "move"})
_SHOWN = 20_000  # characters of a file that a human is shown for a decision


class Terminal(Protocol):
    """A command that runs for the child."""

    def output(self) -> tuple[str, bool]: ...

    def exit_status(self) -> Fields | None:
        """None while it runs."""
        ...

    async def wait(self) -> Fields: ...

    def kill(self) -> None: ...

    async def close(self) -> None: ...


class Ground(Protocol):
    """What a hosted agent may use of this machine through us, inside the session's boundary."""

    async def read(self, turn: TurnPort, path: str) -> str: ...

    async def write(self, turn: TurnPort, path: str, text: str) -> None: ...

    async def run(self, turn: TurnPort, params: Fields) -> Terminal: ...


class ChildSeat:
    """A session's child and what lives as long as it."""

    def __init__(self, child: Child, key: Any) -> None:
        self.child = child
        self.key = key
        self.knows = False  # it has been told what was said before
        self.cost = 0.0  # what it said it has cost so far
        self.terminals: dict[str, Terminal] = {}
        self.numbers = count(1)

    async def close(self) -> None:
        for terminal in self.terminals.values():
            await terminal.close()
        self.terminals.clear()
        await self.child.close()


class Serving(ABC):
    """Answers the child's requests. Base of `Taking`."""

    def __init__(self, turn: TurnPort, seat: ChildSeat, ground: Ground) -> None:
        self.turn = turn
        self.seat = seat
        self.child = seat.child
        self.ground = ground
        self.calls: dict[str, HostedCall] = {}
        self._requests: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def announce(self, call: HostedCall) -> None:
        """Show a call that was not heard of before."""

    async def _end_requests(self) -> None:
        for task in self._requests:
            task.cancel()
        if self._requests:
            await asyncio.wait(set(self._requests))

    def _spawn(self, asked: Asked, work: Coroutine[Any, Any, Any]) -> None:
        if len(self._requests) >= _MOST_REQUESTS:
            work.close()
            self.child.refuse(asked, INTERNAL_ERROR, "Too many requests are under way.")
            return
        task = asyncio.ensure_future(self._answer(asked, work))
        self._requests.add(task)
        task.add_done_callback(lambda done: self._answered(asked, work, done))

    def _answered(
        self, asked: Asked, work: Coroutine[Any, Any, Any], task: "asyncio.Task[None]"
    ) -> None:
        self._requests.discard(task)
        if task.cancelled():  # before it began
            work.close()
            self._withdraw(asked)

    def _withdraw(self, asked: Asked) -> None:
        if asked.method == "session/request_permission":
            self.child.answer(asked, words.chosen((), "cancelled"))
        else:
            self.child.refuse(asked, INTERNAL_ERROR, "The turn was cancelled.")

    async def _answer(self, asked: Asked, work: Coroutine[Any, Any, Any]) -> None:
        try:
            self.child.answer(asked, await work)
        except asyncio.CancelledError:
            self._withdraw(asked)
        except Fault as fault:
            code = INVALID_PARAMS if isinstance(fault, BadInput) else INTERNAL_ERROR
            self.child.refuse(asked, code, str(fault))
        except Exception as problem:  # a child that is not answered would wait for ever
            log.warning("request failed", method=asked.method, problem=repr(problem))
            self.child.refuse(asked, INTERNAL_ERROR, f"Internal error: {problem}")

    async def _permission(self, asked: Asked) -> None:
        params = asked.params
        options = words.options_of(params)
        given = params.get("toolCall")
        given = given if isinstance(given, dict) else {}
        if words.is_question(options):
            self._spawn(asked, self._question(str(given.get("title") or "?"), options))
            return
        call_id = _asked_about(params, given, self.calls)
        call = self.calls.get(call_id)
        if call is None or call.ended:
            call = self.calls[call_id] = HostedCall(call_id)
            call.take(given)
            await self.announce(call)
        else:
            call.take({key: value for key, value in given.items() if key in ("title", "content")})
        self._spawn(asked, self._ask(call, options))

    async def _question(self, title: str, options: list[Fields]) -> Fields:
        names = [str(one.get("name")) for one in options]
        number = next(self.seat.numbers)
        answer = await self.turn.hosted.question(f"{self.turn.id}-q{number}", title, names)
        return words.picked(options, answer.text if answer.answered else "")

    async def _ask(self, call: HostedCall, options: list[Fields]) -> Fields:
        settled = await self.turn.hosted.ask(
            call.tool_call(), call.kind, call.summary, call.changes
        )
        if settled.verdict in ("allow", "allow_always"):
            call.granted = True
        else:
            call.refused = settled.comment or settled.text or f"Denied ({settled.verdict})."
        return words.chosen(options, settled.verdict)

    def _granted(self, kinds: frozenset[str]) -> bool:
        """Whether a call of such a kind is under way that was permitted."""
        return any(c.granted and not c.ended and c.kind in kinds for c in self.calls.values())

    async def _permit(self, name: str, kind: str, args: Fields, summary: str) -> None:
        """A child cannot do through us what it was not permitted. Raises Refused."""
        call = ToolCall(f"{self.turn.id}-r{next(self.seat.numbers)}", name, args)
        settled = await self.turn.hosted.ask(call, kind, summary)
        if settled.verdict not in ("allow", "allow_always"):
            raise Refused(f"Not permitted: {summary}.", settled.comment)

    # --- files and terminals ---

    async def _read_file(self, asked: Asked) -> Fields:
        path = _text(asked, "path")
        text = await self.ground.read(self.turn, path)
        line, limit = _number(asked, "line"), _number(asked, "limit")
        if line is not None or limit is not None:
            first = max(0, (line or 1) - 1)
            last = None if limit is None else first + limit
            text = "".join(_lines(text)[first:last])
        return {"content": text}

    async def _write_file(self, asked: Asked) -> Fields:
        path, text = _text(asked, "path"), _text(asked, "content", empty=True)
        if not self._granted(_CHANGES):
            args = {"path": path, "content": text[:_SHOWN]}
            size = f"{len(text)} character{'' if len(text) == 1 else 's'}"
            await self._permit("write", "edit", args, f"Write {path} ({size})")
        await self.ground.write(self.turn, path, text)
        return {}

    async def _create_terminal(self, asked: Asked) -> Fields:
        import shlex

        if len(self.seat.terminals) >= _MOST_TERMINALS:
            raise BadInput(f"{_MOST_TERMINALS} terminals are open already.", "Release one first.")
        given = asked.params.get("args")
        args = [str(one) for one in given] if isinstance(given, list) else []
        command = _text(asked, "command")
        line = shlex.join([command, *args]) if args else command
        if not self._granted(frozenset({"execute"})):
            await self._permit("execute", "execute", {"command": line}, f"$ {line}"[:500])
        terminal = await self.ground.run(self.turn, asked.params)
        name = f"term-{next(self.seat.numbers)}"
        self.seat.terminals[name] = terminal
        return {"terminalId": name}

    def _terminal(self, asked: Asked) -> Terminal:
        found = self.seat.terminals.get(_text(asked, "terminalId"))
        if found is None:
            raise BadInput("There is no such terminal.")
        return found

    async def _terminal_output(self, asked: Asked) -> Fields:
        terminal = self._terminal(asked)
        output, truncated = terminal.output()
        said: Fields = {"output": output, "truncated": truncated}
        if (status := terminal.exit_status()) is not None:
            said["exitStatus"] = status
        return said

    async def _wait_for_exit(self, asked: Asked) -> Fields:
        return await self._terminal(asked).wait()

    async def _kill_terminal(self, asked: Asked) -> Fields:
        self._terminal(asked).kill()
        return {}

    async def _release_terminal(self, asked: Asked) -> Fields:
        terminal = self._terminal(asked)
        del self.seat.terminals[_text(asked, "terminalId")]
        await terminal.close()
        return {}


def _asked_about(params: Fields, given: Fields, calls: dict[str, HostedCall]) -> str:
    """The id of the call that a permission is about; some agents tell it beside."""
    meta = params.get("_meta")
    for table in meta.values() if isinstance(meta, dict) else ():
        told = table.get("toolCallId") if isinstance(table, dict) else None
        if isinstance(told, str) and told in calls:
            return told
    return str(given.get("toolCallId") or "call")


def _lines(text: str) -> list[str]:
    """Lines with their ends; only LF ends one, as editors count."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _number(asked: Asked, name: str) -> int | None:
    value = asked.params.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise BadInput(f"{asked.method}: {name} must be a whole number")
    return value


def _text(asked: Asked, name: str, *, empty: bool = False) -> str:
    value = asked.params.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise BadInput(f"{asked.method}: {name} is required")
    return value


SERVED: dict[str, Any] = {
    "fs/read_text_file": Serving._read_file,
    "fs/write_text_file": Serving._write_file,
    "terminal/create": Serving._create_terminal,
    "terminal/output": Serving._terminal_output,
    "terminal/wait_for_exit": Serving._wait_for_exit,
    "terminal/kill": Serving._kill_terminal,
    "terminal/release": Serving._release_terminal,
}
