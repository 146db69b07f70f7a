"""Plan mode: the agent looks, writes its plan file and nothing else, and a human says go on.

Only a human's answer leads out of it (`leave`): what a tool or a model says does not count.
"""

from collections.abc import Sequence

from . import events as ev
from .asks import Asks
from .info import PROPOSE
from .ledger import Ledger
from .ports import AgentProfile, Answer, ToolSpec
from .work import Underway

STAY = "Keep planning"
_KINDS = frozenset({"read", "search", "think", "fetch", "edit"})
_YES = frozenset({"go on", "go", "yes", "y", "ok"})


def offered(specs: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
    """The tools that a model is told of in plan mode."""
    return [s for s in specs if s.kind in _KINDS or s.name in (PROPOSE, "ask_user")]


def after(mode: ev.Mode) -> ev.Mode:
    """The mode in which a plan is carried out: the agent's own, unless that cannot act."""
    return mode if mode in ("supervised", "full") else "supervised"


async def leave(
    ledger: Ledger, asks: Asks, turn: Underway, profile: AgentProfile, call_id: str, question: str
) -> Answer:
    """Ask whether to go on, and leave plan mode when the human says so."""
    then = after(profile.mode)
    go = f"Go on ({then})"
    answer = await asks.human(turn.id, call_id, question, (go, STAY), profile.approval_timeout)
    said = answer.text.strip()
    if not answer.answered or said != go and said.casefold().rstrip(".!") not in _YES:
        return answer
    if ledger.state.mode == "plan":  # somebody may have changed it while the question was open
        settled = ledger.state.answers.get(call_id)
        by = settled.by if settled is not None else None
        await ledger.keep(turn, ev.ModeSet(then, by))
    return Answer(go)
