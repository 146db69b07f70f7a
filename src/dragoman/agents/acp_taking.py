"""One turn of a hosted agent: what it says becomes our turn, what it asks of us is answered."""

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import count
from typing import Any, Protocol

import msgspec

from dragoman.engine.content import Prompt, Text, Thinking, ToolCall, Usage
from dragoman.engine.events import Stop
from dragoman.engine.faults import BadInput, Fault, Refused, sort_of
from dragoman.engine.ports import TurnPort, TurnResult
from dragoman.holding import Holder
from dragoman.observe.log import get_log
from dragoman.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from . import acp_words as words
from .acp_child import Asked, Child
from .acp_words import Fields, HostedCall
from .reply import short_of

log = get_log("hosted")

_MOST_REQUESTS = 256  # requests of a child that may be under way at once
_MOST_TERMINALS = 32
_CHANGES = frozenset({"edit", "delete", "move"})
_SHOWN = 20_000  # characters of a file that a human is shown for a decision
_CANCEL_SECONDS = 3.0
_MOST_COST = 1e12  # what says that it has cost more is no amount
_GONE = "The agent process ended while this call was running; it may have taken effect."
_SILENT = "(the agent said nothing more about this call)"
_STOPS: dict[str, tuple[Stop, str]] = {
    "end_turn": ("end_turn", ""),
    "max_tokens": ("length", ""),
    "refusal": ("refusal", ""),
    "max_turn_requests": ("max_steps", "The agent reached its own limit of steps in one turn."),
    "cancelled": ("aborted", "The agent cancelled the turn by itself."),
}


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


class ChildSeat(Holder):
    """A session's child and what lives as long as it."""

    child: Child
    key: Any
    knows: bool = False  # it has been told what was said before
    cost: float = 0.0  # what it said it has cost so far
    terminals: dict[str, Terminal] = {}
    numbers: Iterator[int] = msgspec.field(default_factory=lambda: count(1))

    async def close(self) -> None:
        for terminal in self.terminals.values():
            await terminal.close()
        self.terminals.clear()
        await self.child.close()


class Taking:
    """Takes prompts of one turn."""

    def __init__(self, turn: TurnPort, seat: ChildSeat, ground: Ground) -> None:
        self.turn = turn
        self.seat = seat
        self.child = seat.child
        self.ground = ground
        self.calls: dict[str, HostedCall] = {}
        self.step = 0
        self._requests: set[asyncio.Task[None]] = set()
        self._pieces: list[tuple[str, list[str]]] = []
        self._cost = 0.0

    async def prompt(self, content: Prompt) -> TurnResult:
        """Send a prompt and follow it to its end."""
        child = self.child
        images = child.can("promptCapabilities", "image")
        params = {"sessionId": child.session, "prompt": words.prompt_blocks(content, images)}
        self._next_step()
        child.forget_waiting()
        child.listening = True
        prompt = asyncio.ensure_future(child.call("session/prompt", params))
        prompt.add_done_callback(lambda _: child.waiting.put_nowait(None))
        try:
            while True:
                asked = await child.next()
                if asked is not None:
                    await self._take(asked)
                elif prompt.done() or not child.alive:
                    break
            answer = await prompt
            await self._end_requests()
        except asyncio.CancelledError:
            await self._cancel(prompt)
            raise
        except Exception as error:
            await self._fail(prompt, error)
            raise
        finally:
            child.listening = False
            child.forget_waiting()
        stop, problem = _STOPS.get(str(answer.get("stopReason")), ("end_turn", ""))
        await self._close_calls()
        await self._speak(stop, problem)
        if not problem and (note := short_of(stop, True)) is not None:
            await self.turn.note("warning", *note)
        return TurnResult(stop, problem)

    # --- what it says ---

    async def _take(self, asked: Asked) -> None:
        method, params = asked.method, asked.params
        if method == "session/update":
            update = params.get("update")
            if isinstance(update, dict):
                await self._update(update)
        elif method == "session/request_permission":
            await self._permission(asked)
        elif method in _SERVED:
            self._spawn(asked, _SERVED[method](self, asked))
        else:
            self.child.refuse(asked, METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _update(self, update: Fields) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._piece("text", words.block_text(update.get("content")))
            case "agent_thought_chunk":
                self._piece("thought", words.block_text(update.get("content")))
            case "tool_call" | "tool_call_update":
                await self._call(update)
            case "plan":
                await self.turn.plan(words.plan_of(update))
            case "usage_update":
                match update.get("cost"):
                    case {"amount": int() | float() as cost} if self.seat.cost < cost < _MOST_COST:
                        self._cost += cost - self.seat.cost
                        self.seat.cost = float(cost)

    def _piece(self, kind: str, text: str) -> None:
        if not text:
            return
        if not self._pieces or self._pieces[-1][0] != kind:
            self._pieces.append((kind, []))
        self._pieces[-1][1].append(text)
        (self.turn.text if kind == "text" else self.turn.thought)(text)

    async def _call(self, update: Fields) -> None:
        call_id = update.get("toolCallId")
        if not isinstance(call_id, str) or not call_id:
            return
        call = self.calls.get(call_id)
        new = call is None
        if call is None:
            call = self.calls[call_id] = HostedCall(call_id)
        if call.ended:
            return
        call.take(update)
        status = str(update.get("status") or "")
        if new:
            await self._announce(call)
        else:
            await self._refine(call, status)
        await self._advance(call, status)

    async def _refine(self, call: HostedCall, status: str) -> None:
        """Keep what the agent says of a call after its first sight: the first time, and its last.

        Agents may send their input word by word; not every word is worth a fact.
        """
        made, known = call.tool_call(), call.known
        if known is None or (made.name, made.args) == (known.name, known.args):
            return
        first = not known.args or known.args.keys() == {"title"}
        if first or status in ("in_progress", "completed", "failed"):
            call.known = made
            await self.turn.hosted.refined(made)

    async def _announce(self, call: HostedCall) -> None:
        """The agent's message so far ends with this call."""
        made, turn = call.tool_call(), self.turn
        call.known = made
        turn.call_drafted(made.id, made.name)
        turn.call_args(made.id, msgspec.json.encode(made.args).decode())
        turn.call_ready(made.id)
        await self._speak("tool_use", "", made)
        self._next_step()

    async def _advance(self, call: HostedCall, status: str) -> None:
        running = status in ("in_progress", "completed", "failed")
        if running and not call.started and not call.refused:
            call.started = True
            await self.turn.hosted.began(call.tool_call(), call.kind)
        if status == "in_progress":
            text = call.text()
            if text.startswith(call.said):
                self.turn.hosted.progress(call.id, text[len(call.said) :])
            call.said = text
        elif status in ("completed", "failed"):
            await self._end(call, "done" if status == "completed" else "failed")

    async def _end(self, call: HostedCall, outcome: Any) -> None:
        if call.ended:
            return
        await self._refine(call, "completed")
        call.ended = True
        if call.refused and outcome != "done":
            outcome = "denied"
        self._show_terminals(call)
        content, detail = call.result()
        if outcome == "denied" and not call.text():
            content = (Text(call.refused),)
        await self.turn.hosted.ended(call.tool_call(), outcome, content, detail)

    def _show_terminals(self, call: HostedCall) -> None:
        if call.text():
            return
        for one in call.content:
            match one:
                case {"type": "terminal", "terminalId": str(name)} if name in self.seat.terminals:
                    call.output = self.seat.terminals[name].output()[0]

    async def _close_calls(self) -> None:
        """The turn is over; calls that were left open are closed as well as we know."""
        for call in self.calls.values():
            if not call.ended and not call.text() and not call.refused:
                call.output = _SILENT
            await self._end(call, "denied" if call.refused else "done")

    def _next_step(self) -> None:
        self.step += 1
        self.turn.step_began(self.step)
        self.turn.stream_opened(self.step)

    async def _speak(self, stop: Stop, error: str, *calls: ToolCall, fault: str = "") -> None:
        blocks: list[Any] = [
            Text("".join(texts)) if kind == "text" else Thinking("".join(texts))
            for kind, texts in self._pieces
        ]
        self._pieces = []
        cost, self._cost = self._cost, 0.0
        said = (*blocks, *calls)
        fault = fault or (stop if error else "")
        await self.turn.spoke(self.step, said, stop, Usage(), cost, error=error, fault=fault)

    # --- the end ---

    async def _cancel(self, prompt: "asyncio.Future[Fields]") -> None:
        """Tell the child, give it a moment, and keep what was said."""
        child = self.child
        child.outbound.notify("session/cancel", {"sessionId": child.session})
        await self._end_requests()
        await asyncio.wait({prompt}, timeout=_CANCEL_SECONDS)
        if not prompt.done():  # it does not listen: the next prompt gets a new one
            prompt.cancel()
            await child.close()
        elif not prompt.cancelled():
            prompt.exception()
        for call in self.calls.values():
            call.output = call.output or "aborted: the turn was cancelled"
            await self._end(call, "cancelled")
        if self._pieces:
            await self._speak("aborted", "cancelled")

    async def _fail(self, prompt: "asyncio.Future[Fields]", error: Exception) -> None:
        child = self.child
        await self._end_requests()
        if not prompt.done():
            child.outbound.notify("session/cancel", {"sessionId": child.session})
            await asyncio.wait({prompt}, timeout=_CANCEL_SECONDS)
            if not prompt.done():
                prompt.cancel()
                await child.close()
        for call in self.calls.values():
            if not call.ended:
                call.output = call.output or _GONE
                await self._end(call, "unknown" if call.started else "cancelled")
        if self._pieces:
            await self._speak("error", str(error), fault=sort_of(error))

    # --- what it asks of us ---

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
            await self._announce(call)
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


_SERVED: dict[str, Any] = {
    "fs/read_text_file": Taking._read_file,
    "fs/write_text_file": Taking._write_file,
    "terminal/create": Taking._create_terminal,
    "terminal/output": Taking._terminal_output,
    "terminal/wait_for_exit": Taking._wait_for_exit,
    "terminal/kill": Taking._kill_terminal,
    "terminal/release": Taking._release_terminal,
}
