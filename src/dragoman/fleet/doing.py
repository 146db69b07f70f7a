"""What a session's owner does with the commands of other nodes: each once, in their order.

A command is done when its effect is stored. Its owner may die between the two, so that the next
one does it again: a prompt is known by its key, a cancellation names its turn, and all others are
marked as done in the transaction of their effect.
"""

import asyncio

from dragoman.engine.events import ExtraSet
from dragoman.engine.faults import NothingRunning, WrongState
from dragoman.engine.host import Host
from dragoman.engine.session import Session

from . import words
from .words import Command, Result


class Moved(Exception):
    """The session is not ours any more: its next owner does it."""


async def do(host: Host, session_id: str, id: str, command: Command) -> Result:
    """Do a command; returns what came of it. Raises Moved, Fault."""
    session = await host.get(session_id)
    if not session.own:
        raise Moved
    match command:
        case words.Prompt(compacts=False):
            return await _prompt(host, session, id, command)
        case words.Prompt():
            from dragoman.engine.work import Work

            work = Work("compact", command.turn, (), command.by)
            session.inbox.put(work, limit=command.limit, wait=None)
            await asyncio.shield(work.done)
            return Result(session.state.seq, command.turn)
        case words.Steer():
            turn = await session.inbox.steer(command.content, command.by, handled=id)
            return Result(session.state.seq, turn)
        case words.Cancel():
            turn = _cancel(session, command)
            await session.ledger.told()
            return Result(session.state.seq, turn)
        case words.Retract():
            turn = session.inbox.retract(command.key)
            await session.ledger.told()
            return Result(session.state.seq, turn)
        case words.Answer():
            settled = await session.asks.answer(command, handled=id)
            return Result(session.state.seq, settled=settled)
        case words.Question():
            if command.ask.id not in session.state.asks:  # else it was done before
                await session.asks.put(command.ask)
        case words.Configure():
            await session.ledger.put(*command.bodies, handled=id)
            if any(isinstance(body, ExtraSet) for body in command.bodies):
                session.configure()
        case words.Equip():
            session.gear.servers = command.servers
            await session.gear.equip(anew=True)
        case words.Undo():
            restored = await session.undo(command.turn, command.by, handled=id)
            return Result(session.state.seq, restored=restored)
        case words.Checkpoints():
            return Result(session.state.seq, checkpoints=tuple(await session.checkpoints()))
        case words.Delete():
            await host.erase(session_id, command.by)
    return Result(session.state.seq)


async def _prompt(host: Host, session: Session, id: str, command: words.Prompt) -> Result:
    try:
        await host.prompt(
            session.id, command.content, command.by, key=command.key or id,
            metadata=command.metadata, when_busy="queue", limit=command.limit, wait=command.wait,
            keep=True, turn_id=command.turn,
        )  # fmt: skip
    except WrongState as fault:
        if fault.data.get("turn") != command.turn:  # else it was done before
            raise
    return Result(session.state.seq, command.turn)


def _cancel(session: Session, command: words.Cancel) -> str:
    inbox, turn = session.inbox, session.ledger.turn
    for work in inbox.waiting:
        if work.turn == command.turn:
            return inbox.stop(work, command.cause, interrupt=command.interrupt)
    if command.turn != (turn.id if turn is not None else session.state.turn):
        return ""
    try:
        return inbox.cancel(command.cause, interrupt=command.interrupt)
    except NothingRunning:
        return ""
