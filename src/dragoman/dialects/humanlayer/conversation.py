"""The history of a session and its ancestors as conversation events, and the files it read."""

import re
from collections.abc import AsyncIterator
from typing import Any

from dragoman.engine import events as ev
from dragoman.engine.content import Block, Message, Text, Thinking, ToolCall, ToolResult, text_of
from dragoman.engine.door import Door
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import UnknownSession
from dragoman.wire.codec import sorted_encode

from .approvals import status_word
from .desk import Desk
from .faults import Failed, Wrong, not_found
from .sessions import found
from .shapes import Conversation, OfSession, Said, Snapshot
from .times import seconds

_PAGE = 1_000
_PER_EVENT = 1_000  # ids between two kept events: one of them may hold several blocks
_NUMBERED = r"(?m)^ *\d+[\t→|] ?"


async def conversation(desk: Desk, who: Who, params: Conversation) -> dict[str, list[Said]]:
    """By `session_id` with all ancestors, oldest first; by `claude_session_id` that one alone."""
    door = desk.door
    whole = not params.claude_session_id
    if params.claude_session_id:
        try:
            await door.info(params.claude_session_id)
        except UnknownSession:
            return {"events": []}
        chain = [params.claude_session_id]
    elif params.session_id:
        chain = [info.id for info in await door.ancestry(params.session_id)]
        if not chain:
            raise Failed(f"failed to get conversation: {not_found(params.session_id)}")
    else:
        raise Wrong("either session_id or claude_session_id is required")
    told: list[Said] = []
    for session_id in chain:
        telling = Telling(session_id, seeded=whole and session_id == chain[0])
        async for event in entries(door, session_id):
            telling.take(event)
        told += telling.told
    return {"events": told}


async def entries(door: Door, session_id: str) -> AsyncIterator[Event]:
    """All kept events of a session, page by page."""
    after = 0
    while True:
        page = await door.history(session_id, after, _PAGE)
        for event in page:
            yield event
        if len(page) < _PAGE:
            return
        after = page[-1].seq


class Telling:
    """Turns one session's kept events into its conversation.

    `seeded` tells what was taken over from a parent too: for a session whose parent is gone.
    """

    def __init__(self, session_id: str, *, seeded: bool) -> None:
        self.session = session_id
        self.seeded = seeded
        self.told: list[Said] = []
        self._calls: dict[str, Said] = {}
        self._asks: dict[str, Said] = {}
        self._event: Event
        self._part = 0

    def take(self, event: Event) -> None:
        self._event, self._part = event, 0
        body = event.body
        match body:
            case ev.TurnBegan() | ev.Steered():
                self._add("message", role="user", content=text_of(body.content))
            case ev.Spoke():
                for block in body.content:
                    self._block(block, "assistant", cut=body.stop in ("aborted", "error"))
            case ev.CallRefined():
                self._refine(body)
            case ev.CallEnded():
                self._result(body.call_id, text_of(body.content))
            case ev.Asked():
                self._mark(body.ask.id, body.ask.call_id, "pending")
            case ev.Settled():
                self._mark(body.ask_id, body.call_id, status_word(body.verdict))
            case ev.Compacted():
                self._add("system", role="system", content=body.summary)
            case ev.Noted():
                text = f"{body.title}: {body.text}" if body.text else body.title
                self._add("system", role="system", content=text)
            case ev.Seeded() if self.seeded:
                for message in body.messages:
                    self._message(message)
            case _:
                pass

    def _add(self, kind: str, **members: Any) -> Said:
        event = self._event
        said = Said(
            id=event.gseq * _PER_EVENT + min(self._part, _PER_EVENT - 1),
            session_id=self.session,
            claude_session_id=self.session,
            sequence=len(self.told) + 1,
            event_type=kind,
            created_at=seconds(event.at),
            is_completed=False,
            **members,
        )
        self._part += 1
        self.told.append(said)
        return said

    def _message(self, message: Message) -> None:
        for block in message.content:
            self._block(block, message.role, cut=message.cut is True)

    def _block(self, block: Block, role: str, *, cut: bool) -> None:
        match block:
            case Text():
                if block.text:
                    self._add("message", role=role, content=block.text, cut=cut)
            case Thinking():
                if block.text:
                    self._add("thinking", role=role, content=block.text)
            case ToolCall():
                self._calls[block.id] = self._add(
                    "tool_call",
                    tool_id=block.id,
                    tool_name=block.name,
                    tool_input_json=input_json(block),
                )
            case ToolResult():
                self._result(block.call_id, text_of(block.content))
            case _:
                self._add("message", role=role, content=f"[{block.mime_type} image]")

    def _result(self, call_id: str, text: str) -> None:
        self._add("tool_result", role="user", tool_result_for_id=call_id, tool_result_content=text)
        call = self._calls.get(call_id)
        if call is not None:
            call.is_completed = True

    def _refine(self, body: ev.CallRefined) -> None:
        call = self._calls.get(body.call_id)
        if call is not None:
            made = ToolCall(body.call_id, body.name, body.args)
            call.tool_name, call.tool_input_json = body.name, input_json(made)

    def _mark(self, ask_id: str, call_id: str, status: str) -> None:
        call = self._asks.get(ask_id) or self._calls.get(call_id)
        if call is not None:
            self._asks[ask_id] = call
            call.approval_id, call.approval_status = ask_id, status


def input_json(call: ToolCall) -> str:
    """A call's input as JSON text, keys sorted; clients read it, also what the model broke."""
    return sorted_encode({"raw": call.raw} if call.args is None else call.args).decode()


# --- snapshots -------------------------------------------------------------------------------


async def snapshots(desk: Desk, who: Who, params: OfSession) -> dict[str, list[Snapshot]]:
    """What the session read from files, newest first."""
    info = await found(desk, params.session_id)
    paths: dict[str, str] = {}
    taken: list[Snapshot] = []
    async for event in entries(desk.door, info.id):
        body = event.body
        if isinstance(body, ev.Spoke):
            for block in body.content:
                if isinstance(block, ToolCall) and block.name.lower() == "read":
                    paths[block.id] = _path(block.args or {})
        elif isinstance(body, ev.CallRefined) and body.name.lower() == "read":
            paths[body.call_id] = _path(body.args)
        elif isinstance(body, ev.CallEnded) and body.call_id in paths and body.outcome == "done":
            text = _unnumbered(text_of(body.content))
            taken.append(Snapshot(body.call_id, paths[body.call_id], text, seconds(event.at)))
    return {"snapshots": taken[::-1]}


def _path(args: dict[str, Any]) -> str:
    return str(args.get("path") or args.get("file_path") or "")


def _unnumbered(text: str) -> str:
    """The text without line numbers, when every line has one."""
    lines = text.rstrip("\n").split("\n")
    if text and all(re.match(_NUMBERED, line) for line in lines):
        return re.sub(_NUMBERED, "", text)
    return text
