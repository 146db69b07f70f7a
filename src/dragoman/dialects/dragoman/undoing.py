"""Checkpoints: what turns changed, undone and redone."""

from typing import TYPE_CHECKING

from dragoman.engine.ports.checkpoints import Restored

from . import answers
from .shapes import EndWorktree, OfSession, Undo

if TYPE_CHECKING:
    from .caller import Caller


async def checkpoints(conn: "Caller", params: OfSession) -> answers.Checkpoints:
    return answers.Checkpoints(list(await conn.door.checkpoints(params.session_id)))


async def undo(conn: "Caller", params: Undo) -> Restored:
    return await conn.door.undo(params.session_id, params.turn, conn.who)


async def end_worktree(conn: "Caller", params: EndWorktree) -> dict[str, str]:
    return {"done": await conn.door.end_worktree(params.session_id, params.how, conn.who)}


async def redo(conn: "Caller", params: OfSession) -> Restored:
    return await conn.door.redo(params.session_id, conn.who)
