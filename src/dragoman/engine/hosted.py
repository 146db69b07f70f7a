"""Calls that a hosted agent runs by itself.

We do not run such a call, but it is kept, shown and asked about like one of our own: its start and
its end are journaled, and a request for permission goes through hooks, policy and a human.
"""

from collections.abc import Sequence
from typing import Any

from . import events as ev
from .ask import Change
from .calls import Calls
from .content import Detail, Image, Text, ToolCall
from .events import Settled
from .faults import Refused
from .foreign import looked
from .hooks import Block
from .permit import CHANGED, No, judged, remembered, said
from .ports import Answer, Judgement, ToolSpec
from .ports.tools import LOOKING
from .question import ROUNDS, question
from .traits import Waiver


class Shown:
    """Stands for a tool of another agent where humans and policy look at it (`ports.Tool`)."""

    def __init__(self, spec: ToolSpec, summary: str) -> None:
        self.spec = spec
        self._summary = summary

    def summary(self, args: dict[str, Any]) -> str:
        return self._summary

    async def run(self, args: dict[str, Any], env: Any) -> Any:
        raise TypeError("a call of a hosted agent is not run here")


class Hosted:
    """The calls of a hosted agent in one turn (`ports.HostedPort`)."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def began(self, call: ToolCall, kind: str) -> None:
        calls = self._calls
        await calls.afford(action=kind not in LOOKING)
        args = call.args or {}
        await calls.hosted_began()
        await calls.ledger.keep(calls.turn, ev.CallStarted(calls.turn.id, call.id, call.name, args))
        if not calls.ledger.home.hooks.intercepted("tool_executing"):  # else told when asked
            await calls.announce(call)

    async def refined(self, call: ToolCall) -> None:
        calls = self._calls
        body = ev.CallRefined(calls.turn.id, call.id, call.name, call.args or {})
        await calls.ledger.keep(calls.turn, body)

    def progress(self, call_id: str, text: str) -> None:
        turn = self._calls.turn
        if text and not turn.closed:
            self._calls.ledger.stream(ev.Progress, turn.id, text, call_id)

    async def ended(
        self,
        call: ToolCall,
        outcome: ev.CallOutcome,
        content: tuple[Text | Image, ...],
        detail: Detail | None = None,
    ) -> None:
        turn, bad = self._calls.turn, outcome != "done"
        await self._calls.hosted_ended()
        end = ev.CallEnded(turn.id, call.id, call.name, outcome, content, bad, detail)
        await self._calls.ended(call, end)

    async def ask(
        self, call: ToolCall, kind: str, summary: str, changes: tuple[Change, ...] = ()
    ) -> Settled:
        calls = self._calls
        if calls.ledger.home.hooks.intercepted("tool_executing"):
            result = await calls.announce(call)
            if isinstance(result, Block):
                return Settled("", "deny", comment=f"Blocked: {result.reason}")
        tool = Shown(ToolSpec(call.name, "", {}, kind), summary)  # type: ignore[arg-type]
        ours = _as_ours(call, kind)
        try:
            judgement = judged(calls, ours, tool)
            rules = await remembered(calls, call, judgement)
            if judgement.verdict == "allow":
                return Settled("", "allow")
            if rules:
                return Settled("", "allow", comment=said(rules), rule=rules[0].id)
            waiver = Waiver.of(calls.ledger.state.extra)
            if not judgement.firm and waiver.covers(ours.name, calls.ledger.home.clock.now_ms()):
                return Settled("", "allow")
            return await self._about(call, tool, judgement, changes)
        except No as no:
            return Settled("", "deny", comment=no.text)
        except Refused as fault:
            return Settled("", "deny", comment=str(fault))

    async def _about(
        self, call: ToolCall, tool: Shown, judgement: Judgement, changes: tuple[Change, ...]
    ) -> Settled:
        """Ask with the files as they are now, and again when they were changed meanwhile."""
        calls = self._calls
        cwd = calls.ledger.state.cwd
        about, again = calls.asks.summary(tool, call.args or {}), ""
        for _ in range(ROUNDS):
            preview = await looked(call.args, cwd, changes)
            ask = question(calls, call, judgement, preview, about, again)
            settled = await calls.asks.ask(ask)
            if settled.verdict not in ("allow", "allow_always"):
                return settled
            now = await looked(call.args, cwd, changes)
            if now.seen == preview.seen:
                return settled
            again = CHANGED
        raise No("failed", "What this call works on kept changing while a human was asked.")

    async def question(self, call_id: str, question: str, choices: Sequence[str]) -> Answer:
        calls = self._calls
        patience = calls.profile.approval_timeout
        return await calls.asks.human(calls.turn.id, call_id, question, choices, patience)


def _as_ours(call: ToolCall, kind: str) -> ToolCall:
    """A command of another agent under the name by which policy knows commands."""
    command = (call.args or {}).get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        from shlex import join

        command = join(command)
    if kind == "execute" and isinstance(command, str):
        return ToolCall(call.id, "bash", {**(call.args or {}), "command": command})
    return call
