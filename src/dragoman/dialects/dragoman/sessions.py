"""Sessions as the engine knows them: opened, driven, read, changed, undone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports.checkpoints import Restored
from dragoman.engine.work import Work

from . import answers
from .shapes import (
    Archive,
    Board,
    Cancel,
    EndWorktree,
    Fork,
    History,
    OfSession,
    Open,
    Prompt,
    Rename,
    Retract,
    Sessions,
    SetMode,
    SetModel,
    SetReasoning,
    Steer,
    Undo,
)

if TYPE_CHECKING:
    from dragoman.engine.hub import Watch
    from dragoman.wire.serve import Call

    from .caller import Caller

_MOST = 1_000
_PAGE = 5_000
_ID_LIMIT = 256


async def listed(conn: "Caller", params: Sessions) -> answers.Sessions:
    given = {name: getattr(params, name) for name in params.__struct_fields__}
    given["limit"] = max(1, min(params.limit, _MOST))
    page = await conn.door.list(SessionQuery(**given))
    nodes = await conn.door.whereabouts([info.id for info in page.sessions])
    damaged = page.damaged or UNSET
    return answers.Sessions(page.sessions, page.cursor, page.total, damaged, nodes or UNSET)


async def facts(conn: "Caller", params: OfSession) -> answers.Facts:
    door = conn.door
    state = await conn.desk.state(params.session_id)
    return answers.Facts(
        state.info(),
        state.live,
        state.busy,
        state.waiting,
        door.present(params.session_id),
        tuple(state.asks.values()),
        tuple(state.plan),
    )


async def board(conn: "Caller", params: Board) -> answers.Board:
    """Sessions with who is attached and what waits, those with something to do first."""
    door = conn.door
    page = await door.list(SessionQuery(archived=False, limit=max(1, min(params.limit, _MOST))))
    waiting: dict[str, int] = {}
    for row in await door.asks():
        waiting[row.ask.session] = waiting.get(row.ask.session, 0) + 1
    infos = {info.id: info for info in page.sessions}
    for session_id in waiting:
        if session_id not in infos:
            infos[session_id] = await door.info(session_id)
    rows = []
    for info in infos.values():
        live = door.live(info.id)
        rows.append(
            answers.BoardRow(
                live.info() if live is not None else info,
                live is not None,
                live.waiting if live is not None else 0,
                door.present(info.id),
                waiting.get(info.id, 0),
            )
        )
    used = door.facts.budget
    spent = sum(used(alias)["cost_per_day"] for alias in door.agents()) if used else 0.0
    return answers.Board(rows, bool(page.cursor), spent)


async def history(conn: "Caller", params: History) -> answers.History:
    limit = max(1, min(params.limit, _PAGE))
    found = await conn.door.history(params.session_id, params.after, limit)
    told = [answers.Told(e.session, e.seq, e.gseq, e.at, e.body) for e in found]
    return answers.History(told, len(told) == limit)


async def opened(conn: "Caller", params: Open) -> answers.Session:
    spec = OpenSpec(
        agent=params.agent,
        cwd=params.cwd,
        id=check_id(params.id),
        model=params.model,
        mode=params.mode,
        title=params.title,
        reasoning=params.reasoning,
        traits=(params.extra,) if params.extra else (),
        worktree=params.worktree,
    )
    return answers.Session(await conn.door.open(spec, conn.who))


async def prompt(call: "Call[Caller]", params: Prompt) -> None:
    """Run a turn; answered with how it ended, or, detached, when it is queued."""
    conn = call.conn
    content = params.content
    if params.text:
        content = (Text(params.text), *content)
    if not content:
        raise BadInput("There is no prompt.", "Give `text` or `content`.")
    work = await conn.door.prompt(
        params.session_id,
        content,
        conn.who,
        key=params.key,
        metadata=params.metadata,
        when_busy=params.when_busy,
        limit=max(1, conn.desk.settings.queue),
        wait=params.wait,
        keep=params.detach,
    )
    if params.detach:
        call.reply(answers.Turn(work.turn))
    else:
        work.done.add_done_callback(lambda _: _ended(call, work))


def _ended(call: "Call[Caller]", work: Work) -> None:
    """Answer after the last event, also for a client that reads slowly."""

    def answer() -> None:
        problem = None if work.done.cancelled() else work.done.exception()
        if work.done.cancelled() or problem is not None:
            call.fail(problem or BadInput("The host is shutting down."))
        else:
            call.reply(work.done.result())

    left = [watch for watch in call.conn.held.watches.values() if watch.held is not None]
    _after(left, answer)


def _after(watches: "list[Watch]", answer: Callable[[], None]) -> None:
    if not watches:
        answer()
        return
    first, *rest = watches
    first.then(lambda: _after(rest, answer))


async def steer(conn: "Caller", params: Steer) -> answers.Turn:
    return answers.Turn(await conn.door.steer(params.session_id, (Text(params.text),), conn.who))


async def cancel(conn: "Caller", params: Cancel) -> answers.Turn:
    await conn.door.begun(params.session_id)
    if conn.door.live(params.session_id) is None:
        await conn.door.load(params.session_id)
    turn = conn.door.cancel(params.session_id, params.cause)
    await conn.door.kept(params.session_id)
    return answers.Turn(turn)


async def retract(conn: "Caller", params: Retract) -> answers.Turn:
    """Take back one prompt, whoever's turn runs meanwhile."""
    await conn.door.arrived(params.session_id)
    turn = conn.door.retract(params.session_id, params.key)
    await conn.door.kept(params.session_id)
    return answers.Turn(turn)


async def fork(conn: "Caller", params: Fork) -> answers.Session:
    names = ("agent", "cwd", "model", "mode", "title")
    spec = OpenSpec(**{name: getattr(params, name) for name in names})
    return answers.Session(await conn.door.fork(params.session_id, conn.who, spec))


async def rename(conn: "Caller", params: Rename) -> answers.Session:
    await conn.door.rename(params.session_id, params.title, conn.who)
    return await _info(conn, params.session_id)


async def archive(conn: "Caller", params: Archive) -> answers.Session:
    await conn.door.archive(params.session_id, params.archived)
    return await _info(conn, params.session_id)


async def delete(conn: "Caller", params: OfSession) -> dict[str, bool]:
    return {"deleted": await conn.door.delete(params.session_id, conn.who)}


async def close(conn: "Caller", params: OfSession) -> dict[str, bool]:
    await conn.door.close(params.session_id)
    return {"closed": True}


async def compact(call: "Call[Caller]", params: OfSession) -> None:
    work = await call.conn.door.compact(params.session_id, call.conn.who)
    work.done.add_done_callback(lambda _: _ended(call, work))


async def clear(conn: "Caller", params: OfSession) -> answers.Session:
    await conn.door.clear(params.session_id, conn.who)
    return await _info(conn, params.session_id)


async def set_model(conn: "Caller", params: SetModel) -> answers.Session:
    await conn.door.set_model(params.session_id, params.model, conn.who)
    return await _info(conn, params.session_id)


async def set_mode(conn: "Caller", params: SetMode) -> answers.Session:
    await conn.door.set_mode(params.session_id, params.mode, conn.who)
    return await _info(conn, params.session_id)


async def set_reasoning(conn: "Caller", params: SetReasoning) -> answers.Session:
    await conn.door.set_reasoning(params.session_id, params.effort, conn.who)
    return await _info(conn, params.session_id)


async def checkpoints(conn: "Caller", params: OfSession) -> answers.Checkpoints:
    return answers.Checkpoints(list(await conn.door.checkpoints(params.session_id)))


async def undo(conn: "Caller", params: Undo) -> Restored:
    return await conn.door.undo(params.session_id, params.turn, conn.who)


async def end_worktree(conn: "Caller", params: EndWorktree) -> dict[str, str]:
    return {"done": await conn.door.end_worktree(params.session_id, params.how, conn.who)}


async def redo(conn: "Caller", params: OfSession) -> Restored:
    return await conn.door.redo(params.session_id, conn.who)


async def _info(conn: "Caller", session_id: str) -> answers.Session:
    return answers.Session(await conn.door.info(session_id))


def check_id(given: str | None) -> str:
    """A session id that a client chose; empty when it chose none. Raises BadInput."""
    if given is None:
        return ""
    if not given.strip() or len(given) > _ID_LIMIT or not given.isprintable():
        raise BadInput(f"Invalid params: `session_id` has 1 to {_ID_LIMIT} printable characters.")
    return given
