"""MCP servers that a client lends over its own connection (`mcp/message`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.lent import keep

if TYPE_CHECKING:
    from .hear import AcpHearer

_WITHIN = 60.0
_MOST = 64
Told = Callable[[str, dict[str, Any] | None], None]


class LentMessage(msgspec.Struct, rename="camel"):
    """What a lent server says beside its answers."""

    server_id: str = ""
    request_id: Any = None
    method: str = ""
    params: dict[str, Any] | None = None


class LentChannel:
    """The way to one lent server (`engine.ports.lent.Channel`)."""

    def __init__(self, conn: "AcpHearer", server: str) -> None:
        self._conn = conn
        self._server = server
        self.told: Told | None = None

    def on_told(self, told: Told | None) -> None:
        self.told = told

    async def ask(self, id: str, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        message: dict[str, Any] = {"serverId": self._server, "requestId": id, "method": method}
        if params is not None:
            message["params"] = params
        raw = await self._conn.outbound.call("mcp/message", message, within=_WITHIN)
        answer = msgspec.json.decode(raw) if raw else None
        if isinstance(answer, dict):
            found = {key: answer[key] for key in ("result", "error") if key in answer}
            if len(found) == 1:
                return found
        raise BadInput(f"the client's answer to {method} has neither result nor error")


def lend(conn: "AcpHearer", servers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The servers with a way to those that the client lends. Raises BadInput."""
    found = []
    for place, server in enumerate(servers):
        if server.get("type") == "acp":
            id = server.get("serverId")
            if not isinstance(id, str) or not id:
                raise BadInput(f"mcpServers[{place}] has no serverId")
            if len(conn.lent) >= _MOST and id not in conn.lent:
                raise BadInput(f"At most {_MOST} MCP servers can be lent")
            channel = LentChannel(conn, id)
            conn.lent = {**conn.lent, id: channel}
            server = {"name": server["name"], "type": "acp", "channel": keep(channel)}
        found.append(server)
    return found


def message(conn: "AcpHearer", params: LentMessage) -> None:
    """Pass on what a lent server says; for one that is not known, nobody listens."""
    channel = conn.lent.get(params.server_id)
    if channel is not None and channel.told is not None and params.method:
        channel.told(params.method, params.params)
