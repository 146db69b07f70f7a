"""Whether a tool call may run: policy, then what was remembered, then a human.

What was allowed is what runs: just before it does, the call is looked at once more, and when it is
not what the human saw (a file has changed, a link leads elsewhere), the human is asked again.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from .ask import NOBODY, Rule, Seen
from .content import ToolCall
from .events import CallOutcome, Settled
from .faults import Fault
from .info import plan_file
from .ports import Judgement, Preview, Previewing, Reach, Tool
from .ports.patience import patiently
from .question import ROUNDS, CallSite, question
from .rules import digest_of
from .traits import Waiver

CHANGED = "It is not any more what you were asked about, so you are asked again."


class Grant(msgspec.Struct, frozen=True):
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


async def permit(calls: CallSite, call: ToolCall, tool: Tool) -> Grant:
    """What allows a call to run now; raises No."""
    again = ""
    shows = tool if isinstance(tool, Previewing) else None  # what it would change
    for _ in range(ROUNDS):
        judgement = judged(calls, call, tool)
        ruled = await remembered(calls, call, judgement)
        reach = judgement.reach
        if judgement.verdict == "allow":
            return Grant(reach)
        looked = await _look(calls, call, shows, judgement) if shows else Preview()
        paths = {*judgement.files, *(one.path for one in judgement.reach)}
        if paths and not all(one.path in paths for one in looked.seen):
            continue  # a link was moved between judging and looking
        if ruled:
            return Grant(reach, looked.seen, tuple(rule.id for rule in ruled), said(ruled))
        waiver = Waiver.of(calls.ledger.state.extra)
        if not judgement.firm and waiver.covers(call.name, calls.ledger.home.clock.now_ms()):
            return Grant(reach, looked.seen)
        settled = await _ask(calls, call, tool, judgement, looked, again)
        if settled.verdict == "edit":
            raise No("done", settled.text)
        if settled.verdict not in ("allow", "allow_always"):
            stop = settled.verdict == "cancelled" and calls.turn.cancelled
            raise No("denied", refusal(settled), stop=stop)
        judgement = judged(calls, call, tool)  # the mode may be another one since
        looked = await _look(calls, call, shows, judgement) if shows else Preview()
        cwd = calls.ledger.state.cwd
        if settled.digest == digest_of(call, cwd, looked.seen, judgement.reach):
            return Grant(judgement.reach, looked.seen)
        again = CHANGED
    raise No(
        "failed",
        f"Not run: what {call.name} works on kept changing while a human was asked about it.",
    )


def judged(calls: CallSite, call: ToolCall, tool: Tool) -> Judgement:
    """What policy says; raises No when it denies."""
    state, gear = calls.ledger.state, calls.gear
    if call.name in state.denied:
        raise No("denied", f"Denied by user: {call.name} is refused for this session.")
    plan = plan_file(state.cwd, state.id) if state.mode == "plan" else ""
    try:
        judgement = gear.policy.judge(
            call, tool.spec, mode=state.mode, cwd=state.cwd, roots=gear.roots, plan=plan
        )
    except Exception as error:
        calls.ledger.home.trouble("policy broke", error, tool=call.name)
        raise No("denied", f"The policy could not judge this call of {call.name}.") from error
    if judgement.verdict == "deny":
        raise No("denied", judgement.reason or "Denied by policy.")
    return judgement


async def remembered(calls: CallSite, call: ToolCall, judgement: Judgement) -> Sequence[Rule]:
    """The rules that allow a call which would be asked about; raises No when one denies it."""
    rules = calls.ledger.home.rules
    if judgement.verdict == "allow" and not await patiently(rules.deny_any):
        return ()
    found = await patiently(lambda: rules.about(call, judgement, calls.ledger.state))
    if found and found[0].deny:
        raise No("denied", f"Denied by user: {found[0].sentence} ({found[0].id}).")
    return found


def said(rules: Sequence[Rule]) -> str:
    """Which rules allowed a call, in words."""
    return "; ".join(f"{rule.id}: {rule.sentence}" for rule in rules)


def refusal(settled: Settled) -> str:
    """What the model is told when a human, or nobody, let the call pass."""
    if settled.verdict in ("deny", "deny_always"):
        if settled.comment == NOBODY:
            return f"Denied: {NOBODY}."
        return f"Denied by user: {settled.comment}" if settled.comment else "Denied by user."
    if settled.verdict == "expired":
        return "Denied: nobody decided about this call in time."
    return "Denied: the request for permission was dismissed without a decision."


async def _ask(
    calls: CallSite, call: ToolCall, tool: Tool, judgement: Judgement, looked: Preview, again: str
) -> Settled:
    before = calls.ledger.state.answers.get(call.id)  # it waited across a restart
    if before is not None:
        answered = before.verdict not in ("allow", "allow_always")
        cwd = calls.ledger.state.cwd
        if answered or before.digest == digest_of(call, cwd, looked.seen, judgement.reach):
            return before
        again = again or CHANGED
    try:
        summary = calls.asks.summary(tool, call.args or {})
        ask = question(calls, call, judgement, looked, summary, again)
    except Fault as fault:
        raise No("denied", str(fault)) from fault
    calls.turn.check_open()
    return await calls.asks.ask(ask)


async def _look(calls: CallSite, call: ToolCall, tool: Previewing, judgement: Judgement) -> Preview:
    """What the call would change now; what is wrong with it is its result, and nobody is asked."""
    try:
        return await tool.preview(call.args or {}, calls.env(call.id, judgement.reach))
    except Fault as fault:
        raise No("failed", str(fault)) from fault
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and calls.turn.stops():
            raise
        calls.ledger.home.trouble("tool failed", error, tool=call.name)
        raise No("failed", f"{call.name} broke: {type(error).__name__}: {error}") from error
