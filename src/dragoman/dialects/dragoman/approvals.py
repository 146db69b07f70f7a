"""Questions to humans: listed, shown whole, answered; and the answers that are remembered."""

from typing import TYPE_CHECKING, cast

from dragoman.engine import shown
from dragoman.engine.ask import Verdict
from dragoman.engine.faults import BadInput

from . import answers
from .shapes import Answer, Approvals, OfApproval, OfRule

if TYPE_CHECKING:
    from dragoman.engine.ports import AskRow

    from .caller import Caller


async def approvals(conn: "Caller", params: Approvals) -> answers.Approvals:
    rows = await conn.door.asks(params.session_id, pending=params.pending)
    return answers.Approvals([_row(row) for row in rows])


async def approval(conn: "Caller", params: OfApproval) -> answers.Question:
    """One question with all that is asked, also as text that hides nothing."""
    row = await conn.door.ask(params.id)
    parts = [answers.Part(*part) for part in shown.parts(row.ask)]
    return answers.Question(_row(row), shown.title(row.ask), parts, shown.whole(row.ask))


async def rules(conn: "Caller", _: None) -> answers.Rules:
    """Answers that are remembered."""
    return answers.Rules(list(await conn.door.rules()))


async def remove_rule(conn: "Caller", params: OfRule) -> answers.OneRule:
    return answers.OneRule(await conn.door.remove_rule(params.id))


async def answer(conn: "Caller", params: Answer) -> answers.Answered:
    """First answer wins; a later one is an error that says who was first."""
    verdict = cast(Verdict, params.verdict)  # the engine refuses others
    if verdict in ("allow", "allow_always") and not params.digest:
        raise BadInput(
            "An answer that allows something names the digest of the question that was seen.",
            "Read it with dragoman/approval, and answer with its `digest`.",
        )
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
    return answers.Answered(settled)


def _row(row: "AskRow") -> answers.Approval:
    return answers.Approval(row.ask, row.settled, row.settled_at)
