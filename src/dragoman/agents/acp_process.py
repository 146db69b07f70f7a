"""Hosts another agent: a child process that we drive as its ACP client.

One child per session, kept while the session lives. Its own name of the session is kept with ours,
so that after a restart a new child can take the conversation up again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.engine.content import Message, Prompt, Text, ToolCall
from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import (
    AgentProfile,
    Outcome,
    Tool,
    ToolEnv,
    ToolSpec,
    TurnPort,
    TurnResult,
)
from dragoman.engine.traits import Given, Trait
from dragoman.holding import Holder

from .acp_child import Child, Wrap
from .acp_taking import ChildSeat, Ground, Taking
from .acp_words import earlier

_OPEN_SECONDS = 60.0
_KINDS = ("edit", "delete", "move", "read", "search", "execute", "think", "fetch", "other")
_CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
INTERRUPTED = "The hosted agent was stopped while it waited for this answer."

Pid = Callable[[int], None]
Began = Callable[[int, str], None]
EnvironmentOf = Callable[[AgentProfile], Mapping[str, str]]
WrapOf = Callable[[AgentProfile, SessionInfo], Wrap]
ServersOf = Callable[[AgentProfile, SessionInfo], Sequence[Mapping[str, Any]]]


class Hosted(Trait, frozen=True):
    """The session that a hosted agent has for one of ours."""

    NAME = "hosted"

    session: str = ""
    command: tuple[str, ...] = ()


class AcpProcessAgent(Holder):
    """Implements `ports.Agent` for every agent with the backend `acp`.

    `wrap` puts a child process into its sandbox, `environment` is all that it sees of ours. `began`
    and `ended` are told the number of each, the first also whose.
    """

    ground: Ground
    servers: ServersOf = lambda profile, info: ()
    wrap: WrapOf = lambda profile, info: lambda command, cwd, env: (command, env)
    environment: EnvironmentOf = lambda profile: profile.env
    began: Began = lambda pid, alias: None
    ended: Pid = lambda pid: None
    _seats: dict[str, ChildSeat] = {}

    async def run(self, turn: TurnPort) -> TurnResult:
        await turn.afford()
        if not turn.messages or turn.messages[-1].role != "user":
            return await self._interrupted(turn)
        content = _said(turn.messages[-1:])
        seat = await self._seat(turn)
        taking = Taking(turn, seat, self.ground)
        if not seat.knows and (text := earlier(turn.messages[:-1])):
            content = (Text(text), *content)
        seat.knows = True
        while True:
            try:
                result = await taking.prompt(content)
            finally:
                if not seat.child.alive:
                    self._seats.pop(turn.info.id, None)
                    await seat.close()
            known = len(turn.messages)
            if result.error or not await turn.steering():
                return result
            content = _said([m for m in turn.messages[known:] if m.role == "user"])

    async def compact(self, turn: TurnPort) -> str:
        raise BadInput(
            "This agent keeps its history itself.", "Use its own command for that, as a prompt."
        )

    # --- children ---

    async def _seat(self, turn: TurnPort) -> ChildSeat:
        """The session's child, started when there is none."""
        sid, profile = turn.info.id, turn.profile
        variables = self.environment(profile)
        key = (profile.command, tuple(sorted(variables.items())))
        seat = self._seats.get(sid)
        if seat is not None and (seat.key != key or not seat.child.alive):
            del self._seats[sid]
            await seat.close()
            seat = None
        if seat is None:
            child = await Child.start(
                profile.command,
                turn.info.cwd,
                variables,
                capabilities=_CAPABILITIES,
                wrap=self.wrap(profile, turn.info),
                began=lambda pid: self.began(pid, profile.alias),
                ended=self.ended,
            )
            seat = ChildSeat(child, key)
            try:
                await self._enter(turn, seat)
            except BaseException:
                await seat.close()
                raise
            self._seats[sid] = seat
        return seat

    async def _enter(self, turn: TurnPort, seat: ChildSeat) -> None:
        """Take up the child's own session, or begin one."""
        child, info = seat.child, turn.info
        params: dict[str, Any] = {
            "cwd": info.cwd,
            "mcpServers": self._mcp(child, turn.profile, info),
        }
        roots = list(Given.of(info.extra).roots)
        if roots and child.can("sessionCapabilities", "additionalDirectories"):
            params["additionalDirectories"] = roots
        kept = Hosted.of(info.extra)
        known = kept.session
        if known and kept.command == tuple(child.command):
            if await self._resume(turn, child, {**params, "sessionId": known}):
                child.session, seat.knows = known, True
                return
        answer = await child.call("session/new", params, within=_OPEN_SECONDS)
        child.session = str(answer.get("sessionId") or "")
        if not child.session:
            raise ProviderFailed(f"{child.command[0]} opened no session: it gave no id.")
        await turn.keep(Hosted(child.session, tuple(child.command)))

    async def _resume(self, turn: TurnPort, child: Child, params: dict[str, Any]) -> bool:
        if child.can("sessionCapabilities", "resume"):
            method = "session/resume"
        elif child.can("loadSession"):
            method = "session/load"  # it repeats what was said; nobody listens now
        else:
            return False
        try:
            await child.call(method, params, within=_OPEN_SECONDS)
        except ProviderFailed as fault:
            if not child.alive:
                raise
            title = "The hosted agent has lost the conversation; it is told what was said"
            await turn.note("warning", title, str(fault))
            return False
        return True

    def _mcp(self, child: Child, profile: AgentProfile, info: SessionInfo) -> list[dict[str, Any]]:
        found = []
        for server in self.servers(profile, info):
            one = _server(server)
            kind = one.get("type")
            if kind is None or child.can("mcpCapabilities", kind):
                found.append(one)
        return found

    async def release(self, session_id: str) -> None:
        """The session is let go: its child ends."""
        seat = self._seats.pop(session_id, None)
        if seat is not None:
            await seat.close()

    async def _interrupted(self, turn: TurnPort) -> TurnResult:
        """The answer to a question came after a restart: the child that asked is gone."""
        answered: set[str] = set()
        for message in reversed(turn.messages):
            if message.role == "user":
                break
            for block in message.content:
                if isinstance(block, ToolCall) and block.id not in answered:
                    await turn.hosted.ended(block, "cancelled", (Text(INTERRUPTED),))
                answered.add(getattr(block, "call_id", ""))
        return TurnResult("error", f"{INTERRUPTED} Send the prompt again.")


class HostedTool:
    """Stands for a tool of a hosted agent: it has a kind, and is never run here."""

    def __init__(self, kind: str) -> None:
        self.spec = ToolSpec(kind, "", {}, kind)  # type: ignore[arg-type]

    def summary(self, args: dict[str, Any]) -> str:
        return self.spec.name

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        raise BadInput(f"{self.spec.name} is a tool of the hosted agent itself.")


class HostedTools:
    """Stands for the tools of a hosted agent (`ports.Toolbox`): known by their kind only."""

    def __init__(self, agent: AcpProcessAgent, session_id: str) -> None:
        self._agent = agent
        self._session = session_id

    def specs(self) -> Sequence[ToolSpec]:
        return ()

    def find(self, name: str) -> Tool | None:
        return HostedTool(name) if name in _KINDS else None

    async def close(self) -> None:
        await self._agent.release(self._session)


def _said(messages: Sequence[Message]) -> Prompt:
    """What is in these messages of a human."""
    return tuple(block for message in messages for block in message.content)  # type: ignore[misc]


def _server(given: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP server in the spelling of ACP."""
    name = str(given.get("name") or "")
    if given.get("command"):
        return {
            "name": name,
            "command": given["command"],
            "args": list(given.get("args") or ()),
            "env": _pairs(given.get("env")),
        }
    kind = str(given.get("type") or given.get("transport") or "http")
    return {
        "type": "sse" if kind == "sse" else "http",
        "name": name,
        "url": str(given.get("url") or ""),
        "headers": _pairs(given.get("headers")),
    }


def _pairs(given: Any) -> list[dict[str, str]]:
    if isinstance(given, Mapping):
        return [{"name": str(name), "value": str(value)} for name, value in given.items()]
    return list(given or ())
