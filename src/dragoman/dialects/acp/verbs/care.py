"""session/fork, set_title, archive, unarchive, status: sessions that need not be active.

And set_mode, set_config_option of those that are.
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Given
from dragoman.wire.verbs import After

from ..mcp import lend
from ..options import set_option
from ..shapes import ForSession, OldSession, SetMode, SetOption, SetTitle
from ..speak import state_of
from .sessions import entered, read_directories, read_servers, stopped

if TYPE_CHECKING:
    from ..hear import AcpHearer

_TITLE = 500


def fork(conn: "AcpHearer", params: OldSession) -> Coroutine[Any, Any, After]:
    """A new session that begins with what was said in another; nothing is replayed."""
    conn.desk.require_login()
    conn.not_a_child(params.session_id)
    conn.desk.reserve()
    return _fork(conn, params)


async def _fork(conn: "AcpHearer", params: OldSession) -> After:
    door = conn.door
    try:
        servers = lend(conn, read_servers(params.servers, second=conn.second))
        roots = read_directories(params.directories)
        if params.cwd is not None and (not isinstance(params.cwd, str) or not params.cwd):
            raise BadInput("Parameter 'cwd' must be a path", "Give an absolute path.")
        await door.info(params.session_id)
        given = Given(memory=False, roots=tuple(roots))
        spec = OpenSpec(cwd=params.cwd or "", traits=(given,))
        info = await door.fork(params.session_id, conn.who, spec)
        attachment = conn.attach(info.id)
    finally:
        conn.desk.release()
    answer = await entered(conn, attachment, info, servers)
    answer.result.pop("workspaceDir", None)  # only session/new of the older family has it
    return answer


async def set_title(conn: "AcpHearer", params: SetTitle) -> dict[str, Any]:
    if not isinstance(params.title, str) or not params.title.strip():
        raise BadInput("Parameter 'title' must be a text that is not empty")
    title = " ".join(params.title.split())[:_TITLE]
    await conn.door.info(conn.not_a_child(params.session_id))
    await _as_it_was(conn, params.session_id, conn.door.rename(params.session_id, title, conn.who))
    return {"title": title}


async def _as_it_was(conn: "AcpHearer", session_id: str, work: Coroutine[Any, Any, Any]) -> None:
    """Do something to a session; one that was only kept is not open afterwards.

    Unless somebody has come meanwhile, or begun something in it.
    """
    was_open = conn.door.live(session_id) is not None
    await work
    if not was_open:
        await conn.desk.close_spare(session_id, "idle")


async def archive(conn: "AcpHearer", params: ForSession) -> dict[str, Any]:
    """Put a session away; what runs in it is stopped, and one that is active here is closed."""
    info = await conn.door.info(conn.not_a_child(params.session_id))
    attachment = conn.attached.get(info.id)
    if attachment is not None:
        attachment.stopping = True
    await stopped(conn, info.id, attachment, "archive")
    if attachment is not None:
        await conn.desk.let_go(attachment, "archive")
    if not info.archived:
        await _as_it_was(conn, info.id, conn.door.archive(info.id, True))
    return {}


async def unarchive(conn: "AcpHearer", params: ForSession) -> dict[str, Any]:
    info = await conn.door.info(conn.not_a_child(params.session_id))
    if info.archived:
        await _as_it_was(conn, info.id, conn.door.archive(info.id, False))
    return {}


async def status(conn: "AcpHearer", params: ForSession) -> dict[str, Any]:
    """Whether a session is in memory or only kept; nothing is loaded."""
    info = await conn.door.info(params.session_id)
    session = conn.door.live(info.id)
    if session is None:
        return {"status": "saved"}
    return {"status": "open", **({"state": state_of(session)} if conn.second else {})}


async def set_mode(conn: "AcpHearer", params: SetMode) -> dict[str, Any]:
    attachment = conn.active(params.session_id)
    mode = params.mode if params.mode is not None else params.mode_snake
    if not isinstance(mode, str):
        raise BadInput("Missing required parameter: modeId")
    await attachment.renew()
    await conn.door.set_mode(attachment.id, mode, conn.who)
    return {}


async def set_config_option(conn: "AcpHearer", params: SetOption) -> dict[str, Any]:
    attachment = conn.active(params.session_id)
    await attachment.renew()
    info = await conn.door.info(attachment.id)
    if conn.second and params.type not in ("id", "boolean"):
        raise BadInput('Parameter \'type\' must be "id" or "boolean"')
    if params.type == "id" and not isinstance(params.value, str):
        raise BadInput("Parameter 'value' must be one of the option's values")
    if params.type == "boolean" and not isinstance(params.value, bool):
        raise BadInput("Parameter 'value' must be true or false")
    await set_option(conn.door, info, params.option, params.value, conn.who)
    return {"configOptions": conn.options(await conn.door.info(attachment.id))}
