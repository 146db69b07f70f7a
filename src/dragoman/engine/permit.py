"""Whether a tool call may run: policy, then what was remembered, then a human.

What was allowed is what runs: just before it does, the call is looked at once more, and when it is
not what the human saw (a file has changed, a link leads elsewhere), the human is asked again.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from .ask import Rule, Seen
from .content import ToolCall
from .events import CallOutcome, Settled
from .faults import Fault
from .ports import Judgement, Preview, Reach, Tool
from .question import ROUNDS, Place, preview, question
from .rules import digest_of

CHANGED = "It is not any more what you were asked about, so you are asked again."


class Grant(NamedTuple):
    """A call may run. `seen`: the files as they were when it was allowed."""

    reach: Sequence[Reach] = ()
    seen: Sequence[Seen] | None = None
    rules: tuple[str, ...] = ()
    why: str = ""


class No(Exception):
    """The call does not run; its result says why."""

    def __init__(self, outcome: CallOutcome, text: str, *, stop: bool = False) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.text = text
        self.stop = stop  # the whole turn was cancelled


async def permit(calls: Place, call: ToolCall, tool: Tool) -> Grant:
    """What allows a call to run now; raises No."""
    again = ""
    for _ in range(ROUNDS):
        judgement = judged(calls, call, tool)
        ruled = await remembered(calls, call, judgement)
        reach = judgement.reach
        if judgement.verdict == "allow":
            return Grant(reach)
        looked = await _look(calls, call, tool, judgement)
        if not _within(looked, judgement):
            continue  # a link was moved between judging and looking
        if ruled:
            return Grant(reach, looked.seen, tuple(rule.id for rule in ruled), said(ruled))
        if not judgement.firm and calls.allowed(call):
            return Grant(reach, looked.seen)
        settled = await _ask(calls, call, tool, judgement, looked, again)
        if settled.verdict == "edit":
            raise No("done", settled.text)
        if settled.verdict not in ("allow", "allow_always"):
            stop = settled.verdict == "cancelled" and calls.turn.cancelled
            raise No("denied", refusal(settled), stop=stop)
        judgement = judged(calls, call, tool)  # the mode may be another one since
        looked = await _look(calls, call, tool, judgement)
        if settled.digest == _digest(calls, call, looked, judgement):
            return Grant(judgement.reach, looked.seen)
        again = CHANGED
    raise No(
        "failed",
        f"Not run: what {call.name} works on kept changing while a human was asked about it.",
    )


def judged(calls: Place, call: ToolCall, tool: Tool) -> Judgement:
    """What policy says; raises No when it denies."""
    judgement = calls.judge(call, tool)
    if judgement.verdict == "deny":
        raise No("denied", judgement.reason or "Denied by policy.")
    return judgement


async def remembered(calls: Place, call: ToolCall, judgement: Judgement) -> Sequence[Rule]:
    """The rules that allow a call which would be asked about; raises No when one denies it."""
    rules = calls.ledger.home.rules
    if judgement.verdict == "allow" and not await rules.deny_any():
        return ()
    found = await rules.about(call, judgement, calls.ledger.state)
    if found and found[0].deny:
        raise No("denied", f"Denied by user: {found[0].sentence} ({found[0].id}).")
    return found


def said(rules: Sequence[Rule]) -> str:
    """Which rules allowed a call, in words."""
    return "; ".join(f"{rule.id}: {rule.sentence}" for rule in rules)


def refusal(settled: Settled) -> str:
    """What the model is told when a human, or nobody, let the call pass."""
    if settled.verdict in ("deny", "deny_always"):
        return f"Denied by user: {settled.comment}" if settled.comment else "Denied by user."
    if settled.verdict == "expired":
        return "Denied: nobody decided about this call in time."
    return "Denied: the request for permission was dismissed without a decision."


async def _ask(
    calls: Place, call: ToolCall, tool: Tool, judgement: Judgement, looked: Preview, again: str
) -> Settled:
    before = calls.asks.settled_for(call.id)  # it waited across a restart
    if before is not None:
        answered = before.verdict not in ("allow", "allow_always")
        if answered or before.digest == _digest(calls, call, looked, judgement):
            return before
        again = again or CHANGED
    try:
        summary = calls.asks.summary(tool, call.args or {})
        ask = question(calls, call, judgement, looked, summary, again)
    except Fault as fault:
        raise No("denied", str(fault)) from fault
    calls.turn.check_open()
    return await calls.asks.about(ask)


async def _look(calls: Place, call: ToolCall, tool: Tool, judgement: Judgement) -> Preview:
    """What the call would change now; what is wrong with it is its result, and nobody is asked."""
    try:
        return await preview(tool, call.args or {}, calls.env(call.id, judgement.reach))
    except Fault as fault:
        raise No("failed", str(fault)) from fault
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and calls.turn.stops():
            raise
        calls.ledger.home.trouble("tool failed", error, tool=call.name)
        raise No("failed", f"{call.name} broke: {type(error).__name__}: {error}") from error


def _within(looked: Preview, judgement: Judgement) -> bool:
    """Whether what would change is what policy has judged."""
    paths = {*judgement.files, *(one.path for one in judgement.reach)}
    return not paths or all(one.path in paths for one in looked.seen)


def _digest(calls: Place, call: ToolCall, looked: Preview, judgement: Judgement) -> str:
    return digest_of(call, calls.ledger.state.cwd, looked.seen, judgement.reach)
