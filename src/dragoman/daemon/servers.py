"""MCP servers of the configuration and of clients, as a further part of every toolbox."""

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.engine.host import Host
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, Toolbox
from dragoman.settings.model import Settings


class Servers:
    """Connects the servers of a session; without any, the library is never imported."""

    def __init__(self, host: Host, settings: Callable[[], Settings]) -> None:
        self._host = host
        self._settings = settings

    async def part(self, profile: AgentProfile, info: SessionInfo) -> Toolbox | None:
        """The tools of this session's servers, waiting a little for those on their way."""
        given = [
            {**msgspec.to_builtins(server), "name": name}
            for name, server in self._settings().mcp.items()
            if server.enabled
        ]
        given += [one for one in info.extra.get("mcp") or () if isinstance(one, dict)]
        if not given:
            return None
        from dragoman.tools.mcp import connect

        tools = connect(given, self._noting(info.id), cwd=info.cwd, only=profile.tools)
        await tools.ready()
        return tools

    def _noting(self, session_id: str) -> Callable[[str, str], None]:
        def note(title: str, text: str) -> None:
            self._host.spawn(self._note(session_id, title, text))

        return note

    async def _note(self, session_id: str, title: str, text: str) -> None:
        from dragoman.engine import events as ev

        session = self._host.live.get(session_id)
        data: dict[str, Any] = {"source": "mcp"}
        if session is not None and not session.closing:
            await session.append(ev.Noted("warning", title, text, data))
