"""What was said in a session from its beginning, whatever compactions left of it for the model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import events as ev
from .content import Message, text_of
from .state import SUMMARY_HEAD, State

if TYPE_CHECKING:
    from .host import Host

_PAGE = 4_096


def is_compacted(messages: Sequence[Message]) -> bool:
    """Whether these messages begin with the summary of others."""
    return bool(messages) and text_of(messages[0].content).startswith(SUMMARY_HEAD)


async def whole(host: "Host", session_id: str) -> Sequence[Message]:
    """Every message since the session began, or was cleared; summaries stand for nothing here."""
    state = State(session_id)
    past: list[Message] = []
    compacted = False
    while True:
        page = await host.store.entries(session_id, state.seq, _PAGE)
        for entry in page:
            body = ev.decode_body(entry.body)
            before = state.messages[compacted:]
            state.apply(body, entry.at)
            if isinstance(body, ev.Compacted):
                kept = len(state.messages) - 1
                past += before[: len(before) - kept]
                compacted = True
            elif isinstance(body, ev.Cleared | ev.Seeded):
                past, compacted = [], False
        if len(page) < _PAGE:
            return (*past, *state.messages[compacted:])
