"""Approvals and questions: list, read, answer."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from .. import views
from ..views import Approval
from .table import Call, Route


class AskQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str = ""
    pending: bool = True


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verdict: Literal["allow", "allow_always", "deny", "deny_always", "edit", "answer", "cancelled"]
    comment: Annotated[str, Meta(max_length=10_000)] = ""
    text: str = ""


async def list_(call: Call) -> list[Approval]:
    query: AskQuery = call.query
    rows = await call.door.asks(query.session or None, pending=query.pending)
    return [views.approval(row) for row in rows]


async def read(call: Call) -> Approval:
    return views.approval(await call.door.ask(call.path["id"]))


async def answer(call: Call) -> Approval:
    body: Verdict = call.body
    await call.door.answer(
        call.path["id"], body.verdict, call.who, comment=body.comment, text=body.text
    )
    return views.approval(await call.door.ask(call.path["id"]))


ROUTES = [
    Route("GET", "/api/approvals", list_, "Approvals that wait, or all", "approvals",
          query=AskQuery, returns=list[Approval], may_fail=(400,)),
    Route("GET", "/api/approvals/{id}", read, "One approval", "approvals", returns=Approval,
          may_fail=(404,)),
    Route("POST", "/api/approvals/{id}", answer, "Answer; the first answer wins", "approvals",
          body=Verdict, returns=Approval, may_fail=(400, 404, 409, 415)),
]  # fmt: skip
