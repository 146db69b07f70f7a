"""The whole life of a tool call.

A call goes through: hooks (an app may change or block it), policy (allow, ask, deny), a human when
policy asks, the journal (written before the tool runs, so a crash leaves a mark), the tool, the
result. However it ends, every call gets exactly one result.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, ClassVar

from msgspec import DecodeError
from msgspec.json import decode

from dragoman.holding import Holder

from . import events as ev
from .ask import Seen
from .asks import Asks
from .content import Detail, Image, PlanEntry, Text, ToolCall, text_of
from .ending import ABORTED, NOT_RUN, STOPPED
from .faults import BadInput, Fault, Refused
from .gear import Gear
from .hooks import Block, Executed, Executing, Payload, context_of
from .keeping import Keeping, kept
from .ledger import Ledger
from .permit import Grant, No, permit
from .ports import AgentProfile, Answer, Files, Reach, Terminals, Tool
from .ports.tools import LOOKING, Outcome, Stopped
from .visible import many
from .work import Underway

# The result of the call before: those that run side by side end in their order. With whose calls
# these are: a child session begins within one of them, and its own calls wait for nobody.
BEFORE: ContextVar["tuple[Calls, asyncio.Future[None] | None] | None"] = ContextVar(
    "before", default=None
)
_DRAFT_PROGRESS = 64 * 1024  # how much of a running tool's output a late watcher is shown


class Calls(Holder):
    """The tool calls of one turn."""

    ledger: Ledger
    asks: Asks
    gear: Gear
    turn: Underway
    profile: AgentProfile
    hosted: int = 0  # calls that an agent runs by itself now
    kept: Keeping | None = None  # what is kept around those

    async def run(self, call: ToolCall) -> None:
        """Run one call to its end; its result is appended to the turn's messages."""
        if self.turn.cancelled:
            await self._end(call, "cancelled", NOT_RUN)
            return
        toolbox = self.gear.toolbox
        tool = toolbox.find(call.name) if toolbox else None
        if tool is None:
            await self._end(call, "failed", f'unknown tool "{call.name}"')
            return
        if call.args is None:
            await self._end(call, "failed", _unreadable(call.raw))
            return
        try:
            await self._permitted(call, tool)
        except asyncio.CancelledError as stop:
            journal = self.ledger.state.journal
            if call.id in journal and not self.turn.closed:
                started = journal[call.id][1]
                shown = stop.outcome if isinstance(stop, Stopped) else None
                await self._end(call, "cancelled", ABORTED if started else NOT_RUN, shown)
            raise

    async def _permitted(self, call: ToolCall, tool: Tool) -> None:
        args = dict(call.args or {})
        result = await self.announce(ToolCall(call.id, call.name, args))
        if isinstance(result, Block):
            await self._end(call, "denied", f"Blocked: {result.reason}")
            return
        # A copy of our own: nobody else holds what is asked about and then run.
        from copy import deepcopy

        call = ToolCall(call.id, call.name, deepcopy(result), call.raw)
        try:
            grant = await permit(self, call, tool)
        except No as no:
            await self._end(call, no.outcome, no.text)
            if no.stop:
                raise asyncio.CancelledError from no
            return
        await self._execute(call, tool, grant)

    async def announce(self, call: ToolCall) -> dict[str, Any] | Block:
        """Tell apps of a call that is to run; its arguments as they leave them, or their no."""
        args = call.args or {}
        data = Executing(call_id=call.id, tool=call.name, args=args)
        hooks = self.ledger.home.hooks
        if not hooks.intercepted("tool_executing"):
            hooks.tell_of("tool_executing", data, self.ledger.state, self.turn.id)
            return args
        context = context_of(self.ledger.state, self.turn.id)
        result = await hooks.run("tool_executing", data, context)
        return result if isinstance(result, Block) else dict(result.args)

    def tell(self, hook: str, data: Payload) -> None:
        self.ledger.home.hooks.tell_of(hook, data, self.ledger.state, self.turn.id)

    def env(
        self, call_id: str, reach: Sequence[Reach] = (), seen: Sequence[Seen] | None = None
    ) -> "Env":
        """What a tool sees while it runs, or looks at what it would do."""
        return Env(self, call_id, reach, seen)

    async def afford(self, *, action: bool = False) -> None:
        """Raise Refused when the agent's budget is used up. To be asked before every model call."""
        budget = self.ledger.home.budget
        if budget is not None:
            await budget.afford(self.ledger.state.agent, action=action)

    async def _execute(self, call: ToolCall, tool: Tool, grant: Grant) -> None:
        assert call.args is not None
        ledger, turn = self.ledger, self.turn
        try:
            await self.afford(action=tool.spec.kind not in LOOKING)
        except Refused as fault:
            await self._end(call, "denied", str(fault))
            raise  # the model could do nothing about it: the turn ends here
        turn.tools[call.id] = None
        started = ev.CallStarted(turn.id, call.id, call.name, call.args, grant.rules, grant.why)
        if tool.spec.repeatable:  # nothing is lost if its mark is: it may be run again
            turn.check_open()
            ledger.put(started).add_done_callback(ledger.unheard)
        else:
            await ledger.keep(turn, started)
        detail: Detail | None = None
        outcome: ev.CallOutcome = "done"
        is_error = False
        try:
            turn.tools[call.id] = asyncio.current_task()
            if call.id in turn.unwanted:
                raise asyncio.CancelledError
            env = Env(self, call.id, grant.reach, grant.seen)
            async with kept(self, tool, call.args, env):
                result = await tool.run(call.args, env)
                content, is_error, detail = result.content, result.is_error, result.detail
                if ledger.home.hooks.after is not None:
                    content += await self._after(call, content, is_error)
            if is_error:
                outcome = "failed"
        except Fault as fault:
            content, outcome, is_error = (Text(str(fault)),), "failed", True
        except (Exception, asyncio.CancelledError) as error:  # must not end the turn
            if isinstance(error, asyncio.CancelledError) and turn.was_stopped(call.id):
                content, outcome, is_error = (Text(STOPPED),), "cancelled", True
                if isinstance(error, Stopped):
                    content, detail = error.outcome.content, error.outcome.detail
            elif isinstance(error, asyncio.CancelledError) and turn.stops():
                raise
            else:
                ledger.home.trouble("tool failed", error, tool=call.name)
                content = (Text(f"{call.name} broke: {type(error).__name__}: {error}"),)
                outcome, is_error = "failed", True
        finally:
            turn.tools.pop(call.id, None)
        if call.id in turn.unwanted:
            turn.was_stopped(call.id)  # it ended by itself, before it could be
        turn.draft.progress.pop(call.id, None)
        if BEFORE.get() is not None:
            await self._in_order()
        end = ev.CallEnded(turn.id, call.id, call.name, outcome, content, is_error, detail)
        await ledger.keep(turn, end)

    async def _after(
        self, call: ToolCall, content: tuple[Text | Image, ...], is_error: bool
    ) -> tuple[Text, ...]:
        """What hooks have to say to the model about a call that was run."""
        after = self.ledger.home.hooks.after
        assert after is not None
        told = Executed(
            call_id=call.id,
            tool=call.name,
            args=call.args or {},
            is_error=is_error,
            result=text_of(content),
        )
        said = await after(told, context_of(self.ledger.state, self.turn.id))
        apart = "" if told.result.endswith("\n") else "\n"  # texts of a result are shown as one
        return (Text(apart + said),) if said else ()

    async def hosted_began(self) -> None:
        """A hosted agent runs a call: what it changes is kept from the first to the last."""
        self.hosted += 1
        if self.kept is None:
            self.kept = Keeping(self.ledger, self.turn.id, None)
            await self.kept.__aenter__()

    async def hosted_ended(self) -> None:
        self.hosted = max(0, self.hosted - 1)
        if not self.hosted and self.kept is not None:
            last, self.kept = self.kept, None
            await last.__aexit__()

    async def ended(self, call: ToolCall, end: ev.CallEnded) -> None:
        """Keep the result of a call that was run; the ledger tells apps of it."""
        if BEFORE.get() is not None:
            await self._in_order()
        await self.ledger.keep(self.turn, end)

    async def _end(
        self, call: ToolCall, outcome: ev.CallOutcome, text: str, shown: Outcome | None = None
    ) -> None:
        """The call ends without having been run to its end; `shown` is what it had until then."""
        await self._in_order()
        turn = self.turn
        turn.draft.progress.pop(call.id, None)
        bad = outcome != "done"
        content, detail = (shown.content, shown.detail) if shown else ((Text(text),), None)
        end = ev.CallEnded(turn.id, call.id, call.name, outcome, content, bad, detail)
        await self.ledger.keep(turn, end)

    async def _in_order(self) -> None:
        calls, before = BEFORE.get() or (None, None)
        if calls is self and before is not None and not before.done():
            await asyncio.wait({before})


_AROUND = 60  # characters that are shown before and after the place that is wrong


def _unreadable(raw: str) -> str:
    """What is wrong with the arguments of a call, so that the model writes them otherwise."""
    data = raw.encode("utf-8", "surrogatepass")
    try:
        made = decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = str(error).removeprefix("JSON is malformed: ")
        if "truncated" in what:
            return (
                f"invalid args: the JSON breaks off after {many(len(raw), 'character')}: "
                f"…{raw[-_AROUND:]}\nPerhaps you may write no more at once: write less in one call."
            )
        found = re.search(r"\(byte (\d+)\)", what)
        at = int(found[1]) if found else 0
        near = data[max(at - _AROUND, 0) : at + _AROUND].decode("utf-8", "ignore")
        return f"invalid args: not a JSON object: {what}, near: {near}"
    if isinstance(made, dict):
        return "invalid args: the JSON is nested too deep. Write it flatter."
    return f"invalid args: not a JSON object, but {_KINDS[type(made)]}: {raw[: 2 * _AROUND]}"


_KINDS = {str: "a text", list: "a list", bool: "a truth value", type(None): "null"}
_KINDS |= {int: "a number", float: "a number"}


def _of(path: str) -> Any:
    """Something of the turn that a call belongs to, as it is when it is looked at."""
    return property(attrgetter(f"_calls.{path}"))


class Env(Holder):
    """What a tool sees of its session (`ports.ToolEnv`)."""

    _calls: Calls
    call_id: str
    reach: Sequence[Reach]
    seen: Sequence[Seen] | None

    session: ClassVar[str] = _of("ledger.id")
    turn: ClassVar[str] = _of("turn.id")
    agent: ClassVar[str] = _of("ledger.state.agent")
    cwd: ClassVar[str] = _of("ledger.state.cwd")
    roots: ClassVar[Sequence[str]] = _of("gear.roots")
    mode: ClassVar[ev.Mode] = _of("ledger.state.mode")
    vision: ClassVar[bool] = _of("gear.vision")
    files: ClassVar[Files | None] = _of("gear.files")
    terminals: ClassVar[Terminals | None] = _of("gear.terminals")
    variables: ClassVar[Mapping[str, str]] = _of("gear.variables")

    def progress(self, text: str) -> None:
        turn = self._calls.turn
        if not text:
            return
        draft = turn.draft.progress
        draft[self.call_id] = (draft.get(self.call_id, "") + text)[-_DRAFT_PROGRESS:]
        if not turn.closed:
            self._calls.ledger.stream(ev.Progress, turn.id, text, self.call_id)

    async def ask(self, question: str, choices: Sequence[str] = ()) -> Answer:
        if not question.strip():
            raise BadInput("The question is empty.", "Give the text to ask the human.")
        calls = self._calls
        calls.turn.check_open()
        patience = calls.profile.approval_timeout
        return await calls.asks.human(calls.turn.id, self.call_id, question, choices, patience)

    async def inquire(self, question: str, choices: Sequence[str] = (), *, url: str = "") -> Answer:
        calls = self._calls
        calls.turn.check_open()
        return await calls.asks.human(
            calls.turn.id, "", question, choices, calls.profile.approval_timeout,
            url=url, of_call=self.call_id,
        )  # fmt: skip

    async def leave_plan(self, question: str) -> Answer:
        self._calls.turn.check_open()
        if self.mode != "plan":
            raise BadInput("This session is not in plan mode.", "Do what was asked.")
        from .planning import leave

        calls = self._calls
        return await leave(
            calls.ledger, calls.asks, calls.turn, calls.profile, self.call_id, question
        )

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        await self._calls.ledger.keep(self._calls.turn, ev.Planned(tuple(entries)))

    async def delegated(self, session: str, title: str, role: str) -> None:
        body = ev.Delegated(self.turn, self.call_id, session, title, role)
        await self._calls.ledger.keep(self._calls.turn, body)
