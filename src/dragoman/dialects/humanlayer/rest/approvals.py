"""Approvals: list, look, ask, decide."""

from ..approvals import create as create_approval
from ..approvals import decide as decide_on
from ..approvals import fetch, get
from ..shapes import Approval, ApprovalId, Decision, NewApproval, OfApproval, OfSession
from . import shapes
from .table import Asked, Operation, Refused


async def list_(asked: Asked) -> list[Approval]:
    wanted = asked.query.sessionId
    if wanted:
        await asked.desk.door.info(wanted)
    return (await fetch(asked.desk, asked.who, OfSession(wanted)))["approvals"]


async def create(asked: Asked) -> ApprovalId:
    body: shapes.CreateApproval = asked.body
    params = NewApproval(body.run_id, body.tool_name, body.tool_input, body.tool_use_id)
    return await create_approval(asked.desk, asked.who, params)


async def show(asked: Asked) -> Approval:
    return (await get(asked.desk, asked.who, OfApproval(asked.path["id"])))["approval"]


async def decide(asked: Asked) -> shapes.Outcome:
    body: shapes.Decide = asked.body
    params = Decision(approval_id=asked.path["id"], decision=body.decision, comment=body.comment)
    settled = await decide_on(asked.desk, asked.who, params)
    if settled.success:
        return shapes.Outcome(True)
    raise Refused(404 if "not found" in settled.error else 400, settled.error)


OPERATIONS = (
    Operation("GET", ("/approvals",), "listApprovals", "Approvals that wait", list_,
              query=shapes.ApprovalsQuery, returns=list[Approval], wraps="ApprovalsAnswer"),
    Operation("POST", ("/approvals",), "createApproval", "Ask on behalf of an agent", create,
              body=shapes.CreateApproval, returns=ApprovalId, wraps="ApprovalIdAnswer",
              status=201),
    Operation("GET", ("/approvals/{id}",), "getApproval", "One approval", show,
              returns=Approval, wraps="ApprovalAnswer"),
    Operation("POST", ("/approvals/{id}/decide",), "decideApproval", "Approve or deny", decide,
              body=shapes.Decide, returns=shapes.Outcome, wraps="OutcomeAnswer"),
)  # fmt: skip
