"""MCP servers: those of the configuration belong to the host, those of a client to its session.

A server of the configuration is connected when the first session wants it, is shared by all that
may use it, and is tried again when it was lost. None of this can break a session: what is wrong is
noted in it, and shown by `status` and `doctor`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.host import Host
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, Tool, Toolbox
from dragoman.engine.traits import Given
from dragoman.holding import Holder
from dragoman.host.cells import Cells
from dragoman.observe.log import get_log, on_screen
from dragoman.settings import profiles
from dragoman.settings.host import McpServer
from dragoman.settings.model import Settings

if TYPE_CHECKING:
    from dragoman.tools.mcp import McpConnection

log = get_log("mcp")

_FIRST_DELAY, _LONGEST_DELAY = 2.0, 300.0  # seconds until a lost server is tried again
_STALE = 10.0  # seconds after which a new session has it tried again, if that took less than _QUICK
_QUICK = 5.0
_LATER = "What runs until it is there does without its tools."


class Shared(Holder):
    """One server of the configuration."""

    name: str
    section: McpServer
    _servers: "Servers"
    users: set[str] = msgspec.field(default_factory=set)
    connection: "McpConnection | None" = None
    closed: bool = False
    _failing: bool = False
    _away: str = ""  # what was said when it was last found to be away
    _delay: float = _FIRST_DELAY
    _again: asyncio.TimerHandle | None = None
    _tried: float = 0.0  # when, and how long it took until it was known to be away
    _took: float = 0.0

    def enter(self, session: str) -> None:
        """A session wants it: it is told at once when the server is known to be away.

        Whoever has just mended it shall not wait for the next try.
        """
        self.users.add(session)
        away = self.connection is not None and self.connection.over and self._again is not None
        old = asyncio.get_running_loop().time() - self._tried - self._took
        if away and self.connection and not (old > _STALE and self._took < _QUICK):
            self._servers.note(session, self._away, self.connection.problem)
        else:
            self.connect()

    def connect(self) -> None:
        """Begin to connect, unless it is done or under way."""
        from dragoman.engine.faults import BadInput
        from dragoman.tools.mcp import McpConnection, read_server

        if self.closed or (self.connection is not None and not self.connection.over):
            return
        if self._again is not None:
            self._again.cancel()
            self._again = None
        given = {**msgspec.to_builtins(self.section), "name": self.name}
        try:
            server = read_server(given, passing=True)
        except BadInput as fault:
            self._noted(f"MCP server {self.name} was left out", str(fault))
            return
        self._tried = asyncio.get_running_loop().time()
        servers = self._servers
        trust = servers.trust if self.section.trust_with_daemon else servers.brand
        wrap = servers.cells.shared(self.name)
        self.connection = McpConnection(
            server, self._noted, tokens=servers.tokens, trust=trust, wrap=wrap
        )

    def _noted(self, title: str, text: str) -> None:
        self._away = title
        if title.endswith("was lost"):  # it was there in between
            self._failing, self._delay = False, _FIRST_DELAY
            self._tried = asyncio.get_running_loop().time()
        told = not self._failing and bool(self.users)
        if not (told and self._servers.printed):  # it would be there twice
            log.warning(title, problem=text)
        if not self._failing:  # sessions are told once, not at every further try
            for session in tuple(self.users):
                self._servers.note(session, title, text)
        self._failing = True
        loop = asyncio.get_running_loop()
        self._took = loop.time() - self._tried
        if not self.closed and self._again is None:
            self._again = loop.call_later(self._delay, self._retry)
            self._delay = min(self._delay * 2, _LONGEST_DELAY)

    def _retry(self) -> None:
        self._again = None
        if self.users:  # without any, the next session tries
            self.connect()

    def row(self) -> dict[str, Any]:
        """What people are shown."""
        connection = self.connection
        if not self.section.enabled:
            state = "off"
        elif connection is None:
            state = "not used yet"
        elif connection.over:
            state = "failed"
        else:
            state = "connected" if connection.ready.is_set() else "connecting"
        return {
            "name": self.name,
            "state": state,
            "transport": "stdio" if self.section.command else "http",
            "tools": len(connection.tools) if connection is not None else 0,
            "sessions": len(self.users),
            "problem": connection.problem if connection is not None else "",
            "again_in": self._again_in(),
        }

    def _again_in(self) -> float | None:
        """Seconds until it is tried again."""
        if self._again is None or self.connection is None or not self.connection.over:
            return None
        return max(0.0, self._again.when() - asyncio.get_running_loop().time())

    async def close(self) -> None:
        self.closed = True
        if self._again is not None:
            self._again.cancel()
        if self.connection is not None:
            await self.connection.close()


class Lease:
    """A shared server as one session's toolbox sees it (like `tools.mcp.McpConnection`)."""

    def __init__(self, shared: Shared, session: str) -> None:
        self._shared = shared
        self._session = session
        shared.enter(session)

    @property
    def name(self) -> str:
        return self._shared.name

    @property
    def ready(self) -> asyncio.Event:
        if self._shared.connection is None:
            ready = asyncio.Event()
            ready.set()
            return ready
        return self._shared.connection.ready

    @property
    def tools(self) -> Mapping[str, Tool]:
        connection = self._shared.connection
        return connection.tools if connection is not None else {}

    async def close(self) -> None:
        self._shared.users.discard(self._session)


class Servers(Holder):
    """All servers; without any, the library is never imported.

    `cells` has the sandboxes, `tokens` is a private directory. `trust` is told the mark of each
    server's process that may talk to the daemon, `brand` that of all others.
    """

    _host: Host
    _settings: Callable[[], Settings]
    cells: Cells
    tokens: str
    trust: Callable[[str], int | None]
    brand: Callable[[str], int | None]
    _shared: dict[str, Shared] = {}

    @property
    def printed(self) -> bool:
        """Whether sessions' notes are printed where the log is: in the host of one command."""
        return on_screen() and not self._host.shared

    def names(self, alias: str) -> list[str]:
        """The servers of the configuration that an agent may use."""
        settings = self._settings()
        only = profiles.workings(settings, alias).mcp
        return [
            name
            for name, server in settings.mcp.items()
            if server.enabled and (only is None or name in only)
        ]

    def given(self, profile: AgentProfile, info: SessionInfo) -> Sequence[Mapping[str, Any]]:
        """All servers of a session as plain values, for a hosted agent to connect itself."""
        found = [
            {**msgspec.to_builtins(self._settings().mcp[name]), "name": name}
            for name in self.names(profile.alias)
        ]
        return [*found, *_own(info)]

    async def part(self, profile: AgentProfile, info: SessionInfo) -> Toolbox | None:
        """The tools of this session's servers, waiting a little for those on their way."""
        names, own = self.names(profile.alias), _own(info)
        if not names and not own:
            return None
        from dragoman.tools.mcp import McpTools, connections

        leases = [Lease(self._the(name), info.id) for name in names]

        def note(title: str, text: str) -> None:
            self.note(info.id, title, text)

        wrap = self.cells.brought(profile, info)
        mine = connections(own, note, cwd=info.cwd, wrap=wrap)
        ways: list[Lease | McpConnection] = [*leases, *mine]
        tools = McpTools(ways, profile.tools)
        # Of a server that failed meanwhile the session was told; a further try is another matter.
        begun = [(way, way.ready) for way in ways]
        await tools.ready()
        for way, ready in begun:
            if not ready.is_set():  # else a turn does without its tools, and nobody knows why
                note(f"MCP server {way.name} is still on its way", _LATER)
        return tools

    def _the(self, name: str) -> Shared:
        section = self._settings().mcp[name]
        found = self._shared.get(name)
        if found is None or found.section != section:
            if found is not None:
                self._host.spawn(found.close())
            found = self._shared[name] = Shared(name, section, self)
        return found

    def apply(self, old: Settings, new: Settings) -> None:
        """Let go of servers that were changed or removed; sessions get the new ones when made."""
        for name, shared in tuple(self._shared.items()):
            if new.mcp.get(name) != shared.section:
                del self._shared[name]
                self._host.spawn(shared.close())

    def status(self) -> list[dict[str, Any]]:
        """One row per server of the configuration."""
        rows = []
        for name, section in self._settings().mcp.items():
            shared = self._shared.get(name) or Shared(name, section, self)
            rows.append(shared.row())
        return rows

    def note(self, session_id: str, title: str, text: str) -> None:
        self._host.spawn(self._note(session_id, title, text))

    async def _note(self, session_id: str, title: str, text: str) -> None:
        from dragoman.engine import events as ev

        session = self._host.live.get(session_id)
        data: dict[str, Any] = {"source": "mcp"}
        if session is not None and not session.ledger.closing:
            await session.ledger.put(ev.Noted("warning", title, text, data))

    async def close(self) -> None:
        await asyncio.gather(*(shared.close() for shared in self._shared.values()))
        self._shared.clear()


def _own(info: SessionInfo) -> list[dict[str, Any]]:
    """The servers that a client gave with this session."""
    return list(Given.of(info.extra).mcp)
