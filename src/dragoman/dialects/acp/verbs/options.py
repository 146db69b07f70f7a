"""session/set_mode, session/set_config_option."""

from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput

from ..options import set_option
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
    if conn.second and params.type not in ("id", "boolean"):
        raise BadInput('Parameter \'type\' must be "id" or "boolean"')
    if params.type == "id" and not isinstance(params.value, str):
        raise BadInput("Parameter 'value' must be one of the option's values")
    if params.type == "boolean" and not isinstance(params.value, bool):
        raise BadInput("Parameter 'value' must be true or false")
    await set_option(conn.door, info, params.option, params.value, conn.who)
    return {"configOptions": conn.options(await conn.door.info(attachment.id))}
