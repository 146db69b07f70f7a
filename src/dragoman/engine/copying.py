"""What one session takes over from the history of another."""

from collections.abc import Sequence

import msgspec

from . import events as ev
from .content import Message, Text, ToolCall, ToolResult
from .host import Host, OpenSpec
from .info import SessionInfo
from .view import SessionView

ELSEWHERE = "not run here: this call belongs to the session that this one was copied from"


def copied(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history in which every call has a result, also those that are still under way there."""
    answered = {
        block.call_id for m in messages for block in m.content if isinstance(block, ToolResult)
    }
    made: list[Message] = []
    missing: list[ToolResult] = []
    for message in messages:
        if missing and message.role != "tool":
            made.append(Message("tool", tuple(missing), made[-1].at))
            missing = []
        if missing:
            message = Message("tool", (*message.content, *missing), message.at)
            missing = []
        made.append(message)
        missing = [
            ToolResult(block.id, (Text(ELSEWHERE),), True, block.name)
            for block in message.content
            if isinstance(block, ToolCall) and block.id not in answered
        ]
    if missing:
        made.append(Message("tool", tuple(missing), made[-1].at))
    return tuple(made)


async def forked(
    host: Host, parent: SessionView, given: OpenSpec, by: ev.Who | None, keep: int | None
) -> SessionInfo:
    """A session that goes on from what another one says, as that one is where nothing is given."""
    spec = msgspec.structs.replace(
        given,
        agent=given.agent or parent.agent,
        cwd=given.cwd or parent.cwd,
        model=given.model or parent.model,
        mode=given.mode or parent.mode,
        reasoning=given.reasoning or parent.reasoning,
        parent=parent.id,
    )
    session = await host.open(spec, by)
    if said := parent.messages[:keep]:
        await session.ledger.put(ev.Seeded(parent.id, copied(said)))
    return session.state.info()
