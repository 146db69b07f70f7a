"""The part of a turn for calls that a hosted agent runs by itself.

We do not run such a call, but it is kept, shown and asked about like one of our own: its start and
its end are journaled, and a request for permission goes through hooks, policy and a human.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import events as ev
from .content import Detail, Image, Text, ToolCall, text_of
from .events import Settled
from .hooks import Block
from .ports import Answer, ToolSpec
from .ports.tools import LOOKING

if TYPE_CHECKING:
    from .turn import Turn

_SUMMARY = 2_000


class Shown:
    """Stands for a tool of another agent where humans and policy look at it (`ports.Tool`)."""

    def __init__(self, spec: ToolSpec, summary: str) -> None:
        self.spec = spec
        self._summary = summary[:_SUMMARY]

    def summary(self, args: dict[str, Any]) -> str:
        return self._summary

    async def run(self, args: dict[str, Any], env: Any) -> Any:
        raise TypeError("a call of a hosted agent is not run here")


class Foreign:
    """Base of `Turn`."""

    __slots__ = ()

    async def foreign_call(self: "Turn", call: ToolCall, kind: str) -> None:  # type: ignore[misc]
        """The hosted agent runs a call. Raises Refused when the budget is used up."""
        await self.afford(action=kind not in LOOKING)
        args = call.args or {}
        await self._append(ev.CallStarted(self.id, call.id, call.name, args))
        data = {"toolName": call.name, "name": call.name, "params": args, "callId": call.id}
        if not self.session.host.hooks.intercepted("tool_executing"):  # else told when asked
            self.session.tell("tool_executing", data, self.id)

    def foreign_progress(self: "Turn", call_id: str, text: str) -> None:  # type: ignore[misc]
        """What a running call of the hosted agent has printed."""
        if text:
            self.emit(ev.Progress(self.id, call_id, text))

    async def foreign_result(  # type: ignore[misc]
        self: "Turn",
        call: ToolCall,
        outcome: ev.CallOutcome,
        content: tuple[Text | Image, ...],
        detail: Detail | None = None,
    ) -> None:
        """The hosted agent's call is over."""
        bad = outcome != "done"
        await self._append(ev.CallEnded(self.id, call.id, call.name, outcome, content, bad, detail))
        data = {
            "toolName": call.name,
            "name": call.name,
            "params": call.args or {},
            "callId": call.id,
            "isError": bad,
            "result": text_of(content),
        }
        self.session.tell("tool_completed", data, self.id)

    async def foreign_ask(  # type: ignore[misc]
        self: "Turn",
        call: ToolCall,
        kind: str,
        summary: str,
    ) -> Settled:
        """Whether the hosted agent may do what it asks for: hooks, then policy, then a human."""
        session = self.session
        args = call.args or {}
        if session.host.hooks.intercepted("tool_executing"):
            data = {"toolName": call.name, "name": call.name, "params": args, "callId": call.id}
            result = await session.run_hook("tool_executing", data, self.id)
            if isinstance(result, Block):
                return Settled("", "deny", comment=f"Blocked: {result.reason}")
        tool = Shown(ToolSpec(call.name, "", {}, kind), summary)  # type: ignore[arg-type]
        judged = self._judge(_as_ours(call, kind), tool)
        if judged.verdict == "allow":
            return Settled("", "allow")
        if judged.verdict == "deny":
            return Settled("", "deny", comment=judged.reason or "Denied by policy.")
        return await session.ask_about(self, call, tool, judged)

    async def foreign_question(  # type: ignore[misc]
        self: "Turn",
        call_id: str,
        question: str,
        choices: Sequence[str],
    ) -> Answer:
        """Put a question of the hosted agent to a human."""
        return await self.session.ask_human(self, call_id, question, choices)

    async def keep(self: "Turn", **values: Any) -> None:  # type: ignore[misc]
        """Keep facts with the session (`extra`); None removes one."""
        await self._append(ev.ExtraSet(values))


def _as_ours(call: ToolCall, kind: str) -> ToolCall:
    """A command of another agent under the name by which policy knows commands."""
    command = (call.args or {}).get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        from shlex import join

        command = join(command)
    if kind == "execute" and isinstance(command, str):
        return ToolCall(call.id, "bash", {**(call.args or {}), "command": command})
    return call
