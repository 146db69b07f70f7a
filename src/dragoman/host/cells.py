"""The sandboxes of programs that stay: hosted agents, MCP servers of ours and of a session.

Their walls are those of commands, and do not follow the mode, which may change while they run.
They read what is not forbidden, and write their workspace, caches, temporary folders and what
their entry names.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile
from dragoman.host.installed import own_code
from dragoman.host.stores import files_of
from dragoman.settings import profiles
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, log_file

if TYPE_CHECKING:
    from dragoman.sandbox.program import Wrap
    from dragoman.settings.agents import Agent
    from dragoman.settings.host import McpServer


def scratch(private: str, name: str) -> str:
    """A temporary folder of this name, which is made when it is not there."""
    plain = "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):x}" for c in name)
    above = os.path.join(private, "tmp")
    found = os.path.join(above, plain)
    # `makedirs` would leave the upper ones open.
    for folder in (private, above, found):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return found


def logs_of(settings: Settings, where: Places) -> tuple[str, ...]:
    """A log that may lie elsewhere, and the older one beside it; none: it is a device or a link."""
    if not settings.log.file:
        return ()  # it is in the data directory
    path = log_file(settings.log.file, where)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        return ()
    return path, f"{path}.1"


class Cells:
    """Makes a sandbox for each program."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        places: Places,
        private: str,
        bounds: Callable[[AgentProfile, SessionInfo], Any],
    ) -> None:
        """`private` is where temporary folders are; `bounds` are those of a session's commands."""
        self._settings = settings
        roles = os.path.join(places.config_dir, "agents")
        own = (places.config_file, places.data_dir, roles, places.bridge_token)
        self._own = (*own, *files_of(settings(), places))  # the store may lie elsewhere
        self._places = places
        self._private = private
        self._bounds = bounds

    @property
    def protected(self) -> tuple[str, ...]:
        """What is ours alone; the log may come to lie elsewhere while we run."""
        return (*self._own, *logs_of(self._settings(), self._places))

    def hosted(self, profile: AgentProfile, info: SessionInfo) -> "Wrap":
        """For the process of a hosted agent."""
        entry = profiles.agent(self._settings(), profile.alias)
        if outside(entry):
            from dragoman.sandbox.program import unwrapped

            return unwrapped
        walls = self._session(profile, info, entry.sandbox_writable)
        return self._cell(walls, profile.alias, entry.sandbox_network)

    def brought(self, profile: AgentProfile, info: SessionInfo) -> "Wrap":
        """For an MCP server that a client gave with its session."""
        return self._cell(self._session(profile, info, ()), profile.alias, True)

    def shared(self, name: str) -> "Wrap":
        """For an MCP server of the configuration, which belongs to no session."""
        entry = self._settings().mcp[name]
        if outside(entry):
            from dragoman.sandbox.program import unwrapped

            return unwrapped
        from dragoman.policy import caches
        from dragoman.policy.paths import Boundary
        from dragoman.policy.profiles import STANDARD, strangers

        own = scratch(self._private, f"mcp-{name}")
        walls = Boundary(
            own,
            entry.sandbox_writable,
            (*STANDARD.forbidden, *strangers(os.path.expanduser("~"))),
            protected=self.protected,
            sealed=(*STANDARD.sealed, *own_code(), *caches.programs()),
            legible=STANDARD.legible,
            writable=STANDARD.writable,
            reads_outside=True,
        )
        walls.roots = walls.roots[1:]  # a root below our data would keep it from being covered
        return self._cell(walls, f"mcp-{name}", entry.sandbox_network)

    def _session(self, profile: AgentProfile, info: SessionInfo, more: Sequence[str]) -> object:
        import copy

        bounds = self._bounds(profile, info)
        walls = copy.copy(bounds)
        home = os.path.expanduser
        walls.roots = (*bounds.roots, *(os.path.realpath(home(path)) for path in more))
        walls.reads_outside = True
        walls.workspace_only = True
        return walls

    def _cell(self, walls: Any, name: str, network: bool) -> "Wrap":
        from dragoman.policy import caches
        from dragoman.policy.profiles import STANDARD
        from dragoman.sandbox.program import Cell

        wanted = self._settings().sandbox
        own = scratch(self._private, name)
        places = caches.variables(STANDARD.forbidden)
        return Cell(walls, own, wanted.backend, network, wanted.trust_unix_sockets, places).wrap


def outside(entry: "Agent | McpServer") -> bool:
    """Who may drive the daemon could turn the sandbox off: walls around it would be for show."""
    return bool(entry.trust_outside_sandbox or entry.trust_with_daemon)


def given_away(settings: Settings) -> Iterator[str]:
    """What the configuration trusts beyond the default, for the notices at start."""
    for kind, entries in (("agents", settings.agents), ("mcp", settings.mcp)):
        for name, entry in entries.items():
            if entry.trust_with_daemon:
                yield (
                    f"{kind}.{name}.trust_with_daemon: it may talk to the daemon as you do, and "
                    "runs outside of the sandbox."
                )
            elif entry.trust_outside_sandbox:
                yield (
                    f"{kind}.{name}.trust_outside_sandbox: it runs outside of the sandbox, with "
                    "your rights."
                )
    if settings.sandbox.trust_unix_sockets:
        yield (
            "sandbox.trust_unix_sockets: commands may talk to programs outside of the sandbox, "
            "which can start others for them."
        )
