"""Answering one question by a link, without a token; see `links.py`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dragoman.engine.events import Who
from dragoman.engine.faults import UnknownAsk
from dragoman.engine.ports import AskRow
from dragoman.engine.visible import brief, on_a_line

from .. import links, views
from ..http import Refusal
from ..views import Approval
from .table import Call, Route

Text = Annotated[str, Meta(max_length=500)]


class NewLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: Annotated[int, Meta(ge=10, le=links.LONGEST)] = links.SECONDS


class Link(msgspec.Struct, frozen=True):
    """`path` is below the dashboard's address."""

    link: str
    path: str
    expires_at: int


class Look(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    link: Text


class LinkAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`digest` is that of the question as it was shown; an answer for always needs a token."""

    link: Text
    verdict: Literal["allow", "deny", "answer"]
    digest: str
    comment: Annotated[str, Meta(max_length=10_000)] = ""
    text: str = ""


class Linked(msgspec.Struct, frozen=True):
    """The whole question, and where it comes from."""

    approval: Approval
    title: str
    cwd: str
    agent: str


async def make(call: Call[NewLink, None]) -> Link:
    row = await call.door.ask(call.path["id"])
    if row.settled is not None:
        raise Refusal(409, "already_settled", "It is answered already.")
    text, until = await call.gate.answers.make(row, call.body.seconds)
    call.gate.audit("link made", ask=row.ask.id, peer=call.request.peer)
    return Link(text, f"approve#{text}", until)


async def _row(call: Call[Any, Any], text: str) -> AskRow:
    try:
        row = await call.door.ask(call.gate.answers.question(text))
    except UnknownAsk:
        raise Refusal(403, "bad_link", "This link is not one of ours.") from None
    await call.gate.answers.check(text, row)
    return row


async def look(call: Call[Look, None]) -> Linked:
    row = await _row(call, call.body.link)
    if row.settled is not None:
        raise Refusal(410, "already_settled", "It is answered already.")
    info = await call.door.info(row.ask.session)
    title = brief(info.title or info.query, 200)
    return Linked(views.approval(row), title, on_a_line(info.cwd), info.agent)


async def answer(call: Call[LinkAnswer, None]) -> Approval:
    body = call.body
    async with call.gate.answers.answering:
        row = await _row(call, body.link)
        if not body.digest and row.ask.digest:
            raise Refusal(400, "bad_input", "Say the digest of what was shown.")
        who = Who("dashboard", f"http:{call.request.peer}", "link", f"link-{row.ask.id}"[:100])
        await call.door.answer(
            row.ask.id, body.verdict, who, comment=body.comment, text=body.text, digest=body.digest
        )
        await call.gate.answers.use(body.link)
    call.gate.audit("answered by link", ask=row.ask.id, peer=call.request.peer)
    return views.approval(await call.door.ask(row.ask.id))


ROUTES = [
    Route("POST", "/api/approvals/{id}/link", make, "A link that answers this one question",
          "approvals", body=NewLink, optional_body=True, returns=Link, status=201,
          may_fail=(400, 404, 409)),
    Route("POST", "/api/links/look", look, "The question of a link, whole", "approvals", body=Look,
          returns=Linked, open=True, may_fail=(400, 403, 404, 410)),
    Route("POST", "/api/links/answer", answer, "Answer it; the link works once", "approvals",
          body=LinkAnswer, returns=Approval, open=True, may_fail=(400, 403, 404, 409, 410)),
]  # fmt: skip
