"""What becomes of a session whose process died in the middle of a turn."""

from . import events as ev
from .content import Text
from .ending import UNKNOWN, found, rests, unsaid
from .session import Session


async def taken_over(session: Session) -> None:
    """Mend what its process left, and go on with what waits; what fails is not kept half done."""
    try:
        await mend(session)
    except BaseException:
        session.ledger.home.let_down(session.ledger)  # whoever asks next takes it over anew
        raise
    if session.state.queued:
        session.inbox.restore()


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
            await session.ledger.put(*lost)
        for ask in waiting:
            session.asks.taken_over(ask)
        return
    if _goes_on(session):
        await _resume(session)
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
        await session.ledger.put(*words)


def _goes_on(session: Session) -> bool:
    """Whether the turn of a dead node goes on here: once, and only of our own agent."""
    state = session.state
    return (
        bool(session.ledger.home.node)
        and bool(state.turn)
        and state.status in ("running", "starting")
        and state.resumed != state.turn
        and session.gear.profile().backend == "builtin"
    )


async def _resume(session: Session) -> None:
    state, node = session.state, session.ledger.home.node
    # What had begun may have taken effect: it is not done again, and the model is told.
    words: list[ev.Kept] = [
        ev.CallEnded(state.turn, call.id, call.name, "unknown", (Text(UNKNOWN),), True)
        for call in state.unanswered()
        if state.journal[call.id][1]
    ]
    text = f"The node that had this turn was lost, or cut off. It goes on on {node}."
    if not words and not state.journal:
        text += " The model is asked once more."
    words.append(ev.Noted("warning", "Went on elsewhere", text, {"resumed": state.turn}))
    await session.ledger.put(*words)
    session.inbox.resume()
