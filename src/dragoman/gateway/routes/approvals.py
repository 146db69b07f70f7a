"""Approvals and questions: list, read, answer."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.engine.ask import Rule
from dragoman.engine.faults import BadInput
from dragoman.engine.visible import many

from .. import views
from ..views import Approval
from .table import Call, Plain, Route


class AskQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str = ""
    pending: bool = True


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verdict: Literal["allow", "allow_always", "deny", "deny_always", "edit", "answer", "cancelled"]
    comment: Annotated[str, Meta(max_length=10_000)] = ""
    text: str = ""
    scope: str = ""  # of those that the question offers, for an answer for always
    lasts: Literal["", "session", "project", "agent"] = ""
    digest: str = ""  # of the question that was seen


async def list_(call: Call[None, AskQuery]) -> list[Approval]:
    query = call.query
    rows = await call.door.asks(query.session or None, pending=query.pending)
    return [views.listed(row) for row in rows]


async def read(call: Plain) -> Approval:
    return views.approval(await call.door.ask(call.path["id"]))


async def answer(call: Call[Verdict, None]) -> Approval:
    body = call.body
    if body.verdict in ("allow", "allow_always") and not body.digest:
        left = views.left_out((await call.door.ask(call.path["id"])).ask)
        if left:
            raise BadInput(
                f"The list leaves out {many(left, 'character')} of this question.",
                "Open it, and answer with the `digest` that it has.",
            )
    await call.door.answer(
        call.path["id"], body.verdict, call.who, comment=body.comment, text=body.text,
        scope=body.scope, lasts=body.lasts, digest=body.digest,
    )  # fmt: skip
    return views.approval(await call.door.ask(call.path["id"]))


async def rules(call: Plain) -> list[Rule]:
    return list(await call.door.rules())


async def remove_rule(call: Plain) -> Rule:
    return await call.door.remove_rule(call.path["id"])


ROUTES = [
    Route("GET", "/api/approvals", list_, "Approvals that wait, or all", "approvals",
          query=AskQuery, returns=list[Approval], may_fail=(400,)),
    Route("GET", "/api/approvals/{id}", read, "One approval", "approvals", returns=Approval,
          may_fail=(404,)),
    Route("POST", "/api/approvals/{id}", answer, "Answer; the first answer wins", "approvals",
          body=Verdict, returns=Approval, may_fail=(400, 404, 409)),
    Route("GET", "/api/rules", rules, "Answers that are remembered", "approvals",
          returns=list[Rule]),
    Route("DELETE", "/api/rules/{id}", remove_rule, "Withdraw a remembered answer", "approvals",
          returns=Rule, may_fail=(404,)),
]  # fmt: skip
