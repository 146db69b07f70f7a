"""Approvals: showing every open question, deciding, and asking on behalf of another agent."""

from typing import Any
from uuid import uuid4

import msgspec
from msgspec import UNSET, Raw

from dragoman.engine import shown
from dragoman.engine.content import ToolCall
from dragoman.engine.events import Ask, Settled, Verdict, Who
from dragoman.engine.faults import AlreadySettled, BadInput, Fault, UnknownAsk, UnknownSession
from dragoman.engine.foreign import looked
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow, Judgement
from dragoman.engine.question import scopes_of
from dragoman.engine.rules import digest_of
from dragoman.engine.shown import PLAIN
from dragoman.engine.traits import Waiver
from dragoman.engine.visible import visible
from dragoman.wire.codec import encode

from .desk import Desk
from .faults import Failed, Wrong, not_found, required
from .rows import Own, run_of
from .shapes import (
    Approval,
    ApprovalId,
    CallSpec,
    CallStatus,
    ContactSpec,
    ContactStatus,
    Decision,
    FunctionCall,
    HumanContact,
    NewApproval,
    OfApproval,
    OfferedScope,
    OfSession,
    Option,
    Success,
)
from .times import precise

WINDOW_MS = 300_000  # how old a call may be that an approval without its id is matched to
LARGE = 16_384  # bytes of an input that is not said twice in one record
EDITING = ("write", "edit")  # the same as we call them
EDITS = frozenset({"edit", "write", "multiedit"})
SKIPPED = "Auto-accepted (dangerous skip permissions enabled)"
ACCEPTED = "Auto-accepted (auto-accept mode enabled)"
_STATUS: dict[str, str] = {
    "allow": "approved",
    "allow_always": "approved",
    "answer": "approved",
}


def status_word(verdict: str) -> str:
    return _STATUS.get(verdict, "denied")


def kind_of(ask: Ask) -> str:
    return "human_contact" if ask.kind == "question" else "function_call"


def input_of(ask: Ask) -> object:
    """The tool's input as it was given."""
    if ask.kind == "question":
        return {"question": ask.title, "choices": ask.choices}
    if ask.written:
        return Raw(ask.written.encode())
    if ask.args is not None and PLAIN in ask.args:
        return ask.args[PLAIN]
    return ask.args


def _once(given: object) -> object:
    """The input for the second place in the same record; a large one is only referred to."""
    size = len(given) if isinstance(given, Raw) else len(encode(given))
    return given if size <= LARGE else {"$ref": "#/tool_input"}


def said(settled: Settled) -> str:
    """The words that came with a decision."""
    if settled.verdict == "expired":
        return settled.comment or "nobody decided in time"
    if settled.verdict == "cancelled":
        return settled.comment or "withdrawn: the call does not wait any more"
    return settled.comment or settled.text


def approval_of(row: AskRow, run_id: str) -> Approval:
    ask, settled = row.ask, row.settled
    given = input_of(ask)
    asked = precise(ask.at)
    answered = precise(row.settled_at) if row.settled_at else UNSET
    comment = (said(settled) if settled else "") or UNSET
    status = status_word(settled.verdict) if settled else "pending"
    call: Any = UNSET
    contact: Any = UNSET
    if ask.kind == "question":
        options = [Option(choice, choice) for choice in ask.choices] or UNSET
        contact = HumanContact(
            run_id,
            ask.id,
            ContactSpec(ask.title, options),
            ContactStatus(asked, answered, comment),
        )
    else:
        decided: Any = settled is not None and status == "approved" if settled else UNSET
        call = FunctionCall(
            run_id,
            ask.id,
            CallSpec(ask.tool, _once(given)),
            CallStatus(asked, answered, decided, comment),
        )
    return Approval(
        id=ask.id,
        call_id=ask.id,
        run_id=run_id,
        session_id=ask.session,
        tool_use_id=ask.call_id or UNSET,
        status=status,
        created_at=asked,
        responded_at=answered,
        tool_name=ask.tool,
        tool_input=given,
        comment=comment,
        type=kind_of(ask),
        function_call=call,
        human_contact=contact,
        question=(shown.whole(ask) if ask.kind == "tool" else "") or UNSET,
        digest=ask.digest or UNSET,
        scopes=[OfferedScope(one.id, words, one.lasts) for words, one in shown.offers(ask)]
        or UNSET,
        responded_by=str(settled.by) if settled is not None and settled.by else UNSET,
        remembered=(visible(settled.scope) if settled is not None else "") or UNSET,
    )


async def _run(desk: Desk, session_id: str, known: dict[str, str]) -> str:
    if session_id not in known:
        try:
            info = await desk.door.info(session_id)
            known[session_id] = run_of(session_id, info.extra)
        except UnknownSession:
            known[session_id] = session_id
    return known[session_id]


async def fetch(desk: Desk, who: Who, params: OfSession) -> dict[str, list[Approval]]:
    """What waits for a human: of one session, or everywhere; oldest first."""
    rows = await desk.door.asks(params.session_id or None)
    known: dict[str, str] = {}
    return {"approvals": [approval_of(r, await _run(desk, r.ask.session, known)) for r in rows]}


async def get(desk: Desk, who: Who, params: OfApproval) -> dict[str, Approval]:
    required(approval_id=params.approval_id)
    wanted = params.approval_id or ""
    try:
        row = await desk.door.ask(wanted)
    except UnknownAsk:
        text = f"failed to get approval: failed to get approval: approval not found: {wanted}"
        raise Failed(text) from None
    return {"approval": approval_of(row, await _run(desk, row.ask.session, {}))}


# --- deciding --------------------------------------------------------------------------------


def _judged(params: Decision) -> tuple[str, Verdict, str]:
    """The approval's id, the verdict, and the type the client expects ("" for any)."""
    decision, comment = params.decision or "", params.comment or ""
    if params.approval_id:
        required(decision=decision)
        if decision == "respond" and comment:
            return params.approval_id, "answer", ""
        if decision not in ("approve", "deny"):
            raise Wrong(f"invalid decision: {decision} (must be 'approve' or 'deny')")
        if decision == "deny" and not comment:
            raise Wrong("comment is required for denial")
        return params.approval_id, "allow" if decision == "approve" else "deny", ""
    if not params.call_id:
        raise Wrong("call_id is required (or approval_id, without a type)")
    required(type=params.type, decision=decision)
    call_id, kind = params.call_id or "", params.type or ""
    if kind == "function_call":
        if decision not in ("approve", "deny"):
            raise Wrong(f"invalid decision for function_call: {decision}")
        if decision == "deny" and not comment:
            raise Wrong("comment is required for denial")
        return call_id, "allow" if decision == "approve" else "deny", kind
    if kind == "human_contact":
        if decision != "respond":
            raise Wrong(f"invalid decision for human_contact: {decision}")
        if not comment:
            raise Wrong("comment is required for human contact response")
        return call_id, "answer", kind
    raise Wrong(f"invalid type: {kind}")


async def decide(desk: Desk, who: Who, params: Decision) -> Success:
    """Decide once. What goes wrong after validation is told in the result, not as an error."""
    ask_id, verdict, kind = _judged(params)
    try:
        ask = (await desk.door.ask(ask_id)).ask
        if kind and kind != kind_of(ask):
            raise UnknownAsk(ask_id)
        comment = params.comment or ""
        text = comment if verdict == "answer" else ""
        if verdict == "allow" and (params.always or params.scope or params.lasts):
            verdict = "allow_always"
        settled = await desk.door.answer(
            ask_id, verdict, who, comment=comment, text=text, scope=params.scope or "",
            lasts=params.lasts or "", digest=params.digest or "",
        )  # fmt: skip
    except UnknownAsk:
        return Success(False, _missing(ask_id, kind))
    except AlreadySettled as fault:
        return Success(False, _decided(ask_id, fault))
    except BadInput as fault:
        wrong = str(fault) if params.scope or params.lasts else _mismatch(ask_id, ask)
        return Success(False, wrong)
    except Fault as fault:
        return Success(False, f"failed to update approval: {fault}")
    return Success(True, remembered=visible(settled.scope), rule_id=settled.rule)


def _missing(ask_id: str, kind: str) -> str:
    if not kind:
        return f"failed to get approval: approval not found: {ask_id}"
    words = kind.replace("_", " ")
    return f"{words} not found: {words} not found: {ask_id}"


def _decided(ask_id: str, fault: AlreadySettled) -> str:
    """That it was decided, how, and by whom."""
    by: Any = fault.data.get("by")
    name = f"{by.name or by.peer or by.id} over {by.dialect}" if by else "the host"
    status = status_word(str(fault.data.get("verdict")))
    return (
        f"failed to update approval: approval {ask_id} "
        f"already decided with status: {status} (by {name})"
    )


def _mismatch(ask_id: str, ask: Ask) -> str:
    if ask.kind == "question":
        return f"approval {ask_id} is a question: decide 'respond' with the answer as comment"
    return f"approval {ask_id} is about a tool call: decide 'approve' or 'deny'"


async def approve_pending(
    desk: Desk, who: Who, session_id: str, comment: str, *, edits_only: bool
) -> None:
    """Let go on what waits in a session, after a setting has permitted it."""
    for row in await desk.door.asks(session_id):
        ask = row.ask
        if ask.kind == "question" or (edits_only and ask.tool.lower() not in EDITS):
            continue
        if ask.firm:
            continue  # always_ask: whatever else is said
        try:
            await desk.door.answer(ask.id, "allow", who, comment=comment)
        except AlreadySettled:
            continue  # somebody was faster


# --- asking ----------------------------------------------------------------------------------


async def create(desk: Desk, who: Who, params: NewApproval) -> ApprovalId:
    """Ask about a call of an agent that runs elsewhere (or of ours, through its own tool)."""
    required(run_id=params.run_id, tool_name=params.tool_name)
    if params.tool_input is UNSET:
        raise Wrong("tool_input is required")
    door = desk.door
    tool = params.tool_name or ""
    info = await _session(desk, params)
    call_id = params.tool_use_id or await _newest_call(desk, info.id, tool)
    written = bytes(params.tool_input)
    given = _read(written)
    call = ToolCall(call_id, tool, _args(given))
    preview = await looked(call.args, info.cwd)
    ask = Ask(
        id=f"local-{uuid4()}",
        session=info.id,
        kind="tool",
        title=f"Approve {tool}?",
        at=door.now_ms(),
        call_id=call_id,
        tool=tool,
        args=call.args,
        written="" if encode(given) == written else written.decode(),
        external=True,
        cwd=info.cwd,
        changes=preview.changes,
        digest=digest_of(call, info.cwd, preview.seen),
        scopes=scopes_of(call, Judgement("ask")),
    )
    try:
        await door.put_ask(ask)
        comment = _permitted(Waiver.of(info.extra), tool, door.now_ms())
        if not comment:
            rules = await door.remembered(info.id, call)
            comment = "; ".join(f"{rule.id}: {rule.sentence}" for rule in rules)
        if comment:
            await door.answer(ask.id, "allow", who, comment=comment)
    except AlreadySettled:
        pass  # a client was faster than the setting
    except Fault as fault:
        raise Failed(f"failed to create approval: {fault}") from fault
    return ApprovalId(ask.id)


async def _session(desk: Desk, params: NewApproval) -> SessionInfo:
    """The session behind `run_id`, which may also be the session's own id."""
    given = params.run_id or ""
    info = await desk.door.find(Own, run_id=given)
    if info is not None:
        return await desk.door.info(info.id)
    try:
        return await desk.door.info(given)
    except UnknownSession:
        if params.tool_use_id:
            text = f"with tool use ID: failed to get session: {not_found(given)}"
            raise Failed(f"failed to create approval {text}") from None
        text = f"failed to create approval: session not found for run_id: {given}"
        raise Failed(text) from None


async def _newest_call(desk: Desk, session_id: str, tool: str) -> str:
    """The newest open call of this tool that nobody was asked about yet; empty when none fits."""
    state = await desk.door.look(session_id)
    asked = {ask.call_id for ask in state.asks.values()}
    asked |= {settled.call_id for settled in state.settled.values()}
    oldest = desk.door.now_ms() - WINDOW_MS
    for message in reversed(state.messages):
        if message.at < oldest:
            break
        for block in reversed(message.content):
            if (
                isinstance(block, ToolCall)
                and block.name.lower() == tool.lower()
                and block.id in state.journal
                and block.id not in asked
            ):
                return block.id
    return ""


def _read(written: bytes) -> object:
    """The input as values, for all who look at it; what cannot be one is refused."""
    try:
        return msgspec.json.decode(written)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Wrong(f"invalid request: tool_input cannot be read: {error}") from None


def _args(value: object) -> dict[str, Any] | None:
    return value if value is None or isinstance(value, dict) else {PLAIN: value}


def _permitted(waiver: Waiver, tool: str, now: int) -> str:
    if waiver.all_at(now):
        return SKIPPED
    if waiver.tools and tool.lower() in EDITS:
        return ACCEPTED
    return ""
