"""session/set_mode, session/set_config_option."""

from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput

from ..options import options, set_option
from ..shapes import SetMode, SetOption

if TYPE_CHECKING:
    from ..hear import AcpHearer


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
    await set_option(conn.door, info, params.option, params.value, conn.who)
    return {"configOptions": options(conn.door, await conn.door.info(attachment.id))}
