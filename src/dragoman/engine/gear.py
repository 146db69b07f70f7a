"""What a session works with: its agent, policy, tools, and what its client lends it."""

import asyncio
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec

from .faults import Fault
from .ledger import Home, Ledger
from .ports import Agent, AgentProfile, Files, Policy, Terminals, Toolbox
from .state import NONE, State
from .traits import Given

_CLOSING_SECONDS = 5.0


def sees(home: Home, state: State) -> bool:
    """Whether a session's model takes images."""
    try:
        return home.models.resolve(state.model, state.agent)[1].vision
    except Fault:  # gone from the configuration, or its key: told when a turn needs it
        return False


class Gear:
    """The parts of a session that do its work."""

    __slots__ = (
        "_equipping", "_ledger", "_profile", "agent", "files", "policy", "roots", "servers",
        "terminals", "toolbox", "variables",
    )  # fmt: skip

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.toolbox: Toolbox | None = None
        # MCP servers that a client gave. Not kept with the session: they may carry secrets.
        self.servers: Sequence[dict[str, Any]] = ()
        self._equipping: asyncio.Lock | None = None
        self.files: Files | None = None
        self.terminals: Terminals | None = None
        self.variables: Mapping[str, str] = NONE  # of the client; not kept: there are secrets
        self._profile: tuple[tuple[Any, ...], AgentProfile] | None = None  # and what made it
        self.configure()

    def configure(self) -> None:
        """Take the agent's parts from the configuration as it is now."""
        profile = self.profile()
        agents = self._ledger.home.agents
        self.policy: Policy = agents.policy(profile)
        self.agent: Agent = agents.backend(profile)
        self.roots: Sequence[str] = Given.of(self._ledger.state.extra).roots

    @property
    def vision(self) -> bool:
        return sees(self._ledger.home, self._ledger.state)

    def profile(self) -> AgentProfile:
        """The agent's profile with what this session was opened with on top."""
        state = self._ledger.state
        profile = self._ledger.home.agents.profile(state.agent)
        if not (state.extra or state.reasoning) and profile.model == state.model:
            return profile
        made = self._profile
        source = (profile, state.model, state.reasoning, state.extra)
        if made is not None and all(map(is_, made[0], source)):
            return made[1]
        given = Given.of(state.extra).over()
        if state.reasoning:
            given["reasoning"] = state.reasoning
        own = profile
        if given or profile.model != state.model:
            own = msgspec.structs.replace(profile, model=state.model, **given)
        self._profile = (source, own)
        return own

    async def equip(self, *, anew: bool = False) -> None:
        """Make the session's tools, once; `anew` when it was given other MCP servers."""
        if self.toolbox is not None and not anew:
            return
        ledger = self._ledger
        if self._equipping is None:
            self._equipping = asyncio.Lock()
        async with self._equipping:
            if anew and self.toolbox is not None and ledger.turn is None:
                toolbox, self.toolbox = self.toolbox, None
                await toolbox.close()
            if self.toolbox is not None or ledger.closing:
                return
            info = ledger.state.info()
            if self.servers:
                given = Given.of(info.extra)
                given = msgspec.structs.replace(given, mcp=(*given.mcp, *self.servers))
                extra = {**info.extra, Given.NAME: given.kept()}
                info = msgspec.structs.replace(info, extra=extra)
            self.toolbox = await ledger.home.agents.toolbox(self.profile(), info)

    async def put_away(self) -> None:
        """Close the tools; a broken one must not keep the session."""
        if self.toolbox is not None:
            toolbox, self.toolbox = self.toolbox, None
            try:
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await toolbox.close()
            except Exception as problem:
                ledger = self._ledger
                ledger.home.trouble("tools were not closed", problem, session=ledger.id)
