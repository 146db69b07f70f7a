"""What becomes of a session whose process died in the middle of a turn."""

from . import events as ev
from .content import Text
from .cut import found
from .ending import UNKNOWN, rests, unsaid
from .session import Session


async def mend(session: Session) -> None:
    """A turn was under way when its process died: keep its open questions, close the rest."""
    state = session.state
    waiting = session.asks.of(state.turn)
    if state.turn and waiting:
        # The tool that only asks is not lost: it is run again and finds its answer.
        asking = {(ask.call_id, ask.tool) for ask in waiting}
        lost: list[ev.Kept] = [
            ev.CallEnded(state.turn, call.id, call.name, "unknown", (Text(UNKNOWN),), True)
            for call in state.unanswered()
            if state.journal[call.id][1] and (call.id, call.name) not in asking
        ]
        if state.status != "waiting_input":
            lost.append(ev.StatusChanged(state.status, "waiting_input", "restart"))
        if lost:
            await session.ledger.append(*lost)
        for ask in waiting:
            session.asks.watch_expiry(ask)
        return
    words = list(await found(session.ledger.home.store, state))
    if state.turn:
        words += session.inbox.closing_words("restart", words)
    else:
        words += unsaid(state, "")  # said into a turn that is over: the next one sees it
    if state.turn or state.status in ("running", "interrupting", "waiting_input"):
        words += rests(state, "interrupted", "restart")
    elif state.status == "starting" and not any(not one.steers for one in state.queued.values()):
        words.append(ev.StatusChanged(state.status, "interrupted", "restart"))
    if words:
        await session.ledger.append(*words)
