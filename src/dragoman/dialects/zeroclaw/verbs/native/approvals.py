"""Questions to humans: listed, shown whole, answered; and the answers that are remembered."""

from typing import TYPE_CHECKING, Any

from dragoman.engine import shown

from .shapes import (
    Answer,
    ApprovalAnswer,
    ApprovalList,
    Approvals,
    OfApproval,
    OfRule,
    RuleAnswer,
    RuleList,
    SettledAnswer,
    ShownPart,
)

if TYPE_CHECKING:
    from ...hear import ZeroclawHearer


async def approvals(conn: "ZeroclawHearer", params: Approvals) -> Any:
    rows = await conn.door.asks(params.session_id, pending=params.pending)
    return ApprovalList(tuple(rows))


async def approval(conn: "ZeroclawHearer", params: OfApproval) -> Any:
    """One question with all that is asked, also as text that hides nothing."""
    row = await conn.door.ask(params.id)
    parts = [ShownPart(*part) for part in shown.parts(row.ask)]
    return ApprovalAnswer(row, shown.title(row.ask), parts, shown.whole(row.ask))


async def rules(conn: "ZeroclawHearer", _: None) -> Any:
    """Answers that are remembered."""
    return RuleList(list(await conn.door.rules()))


async def remove_rule(conn: "ZeroclawHearer", params: OfRule) -> Any:
    return RuleAnswer(await conn.door.remove_rule(params.id))


async def answer(conn: "ZeroclawHearer", params: Answer) -> Any:
    """First answer wins; a later one is an error that says who was first."""
    verdict: Any = params.verdict
    settled = await conn.door.answer(
        params.id,
        verdict,
        conn.who,
        comment=params.comment,
        text=params.text,
        scope=params.scope,
        lasts=params.lasts,
        digest=params.digest,
    )
    return SettledAnswer(settled)
