"""A whole host in memory: real engine, real loop, a scripted model, the tools you give it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.agents.builtin import BuiltinAgent
from dragoman.agents.commands import find_commands
from dragoman.engine.content import Text, ToolCall, ToolKind
from dragoman.engine.door import Door
from dragoman.engine.faults import UnknownAgent, UnknownModel
from dragoman.engine.host import Host
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import (
    Agent,
    AgentProfile,
    Judgement,
    ModelInfo,
    Outcome,
    Policy,
    Provider,
    Store,
    Tool,
    Toolbox,
    ToolEnv,
    ToolSpec,
)
from dragoman.providers.scripted import Scripted
from dragoman.store.memory import MemoryStore

MODEL = ModelInfo("scripted", "test", context_window=100_000, vision=True, price_input=1.0,
                  price_output=2.0)  # fmt: skip


class OneModel:
    """`ports.Models` with a single provider."""

    def __init__(self, provider: Provider, model: ModelInfo = MODEL) -> None:
        self.provider = provider
        self.model = model
        self.more: dict[str, ModelInfo] = {}

    def resolve(self, ref: str, agent: str = "") -> tuple[Provider, ModelInfo]:
        if ref in ("", self.model.id, self.model.ref):
            return self.provider, self.model
        if ref in self.more:
            return self.provider, self.more[ref]
        raise UnknownModel(f'unknown model "{ref}"', f"There is {self.model.ref}.")

    def list(self, provider: str | None = None) -> Sequence[ModelInfo]:
        return [self.model, *self.more.values()]


class EchoTool:
    """Says what it was given; kind `execute`, so that supervised agents ask about it."""

    def __init__(self, name: str = "echo", kind: ToolKind = "execute") -> None:
        self.spec = ToolSpec(
            name,
            "Repeat the text.",
            {"type": "object", "properties": {"text": {}}},
            kind,
        )
        self.ran: list[dict[str, Any]] = []

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        self.ran.append(args)
        return Outcome((Text(str(args.get("text", ""))),))

    def summary(self, args: dict[str, Any]) -> str:
        return str(args.get("text", ""))


class ListToolbox:
    """`ports.Toolbox` over a list."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = {tool.spec.name: tool for tool in tools}

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.tools.values()]

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    async def close(self) -> None:
        return None


class KindPolicy:
    """Full allows, readonly denies what acts, supervised asks about what acts."""

    def judge(
        self,
        call: ToolCall,
        spec: ToolSpec,
        *,
        mode: str,
        cwd: str,
        roots: Sequence[str],
        plan: str = "",
    ) -> Judgement:
        if mode == "full" or spec.kind in ("read", "search", "think"):
            return Judgement("allow")
        if mode in ("readonly", "plan"):
            return Judgement("deny", f"{call.name} is not allowed in {mode} mode.")
        return Judgement("ask", risk="medium")


class FixedAgents:
    """`ports.Agents` with the profiles you give it, all on the built-in loop."""

    def __init__(
        self, models: OneModel, tools: Sequence[Tool], profiles: Sequence[AgentProfile]
    ) -> None:
        self.models = models
        self.tools = tools
        self.profiles = {profile.alias: profile for profile in profiles}
        self.judge: Policy = KindPolicy()
        self.builtin = BuiltinAgent(models)

    def names(self) -> Sequence[str]:
        return list(self.profiles)

    def default(self) -> str | None:
        if "default" in self.profiles:
            return "default"
        return next(iter(self.profiles)) if len(self.profiles) == 1 else None

    def profile(self, alias: str) -> AgentProfile:
        if alias not in self.profiles:
            raise UnknownAgent(f"agents.{alias} is not configured")
        return self.profiles[alias]

    def backend(self, profile: AgentProfile) -> Agent:
        return self.builtin

    def policy(self, profile: AgentProfile) -> Policy:
        return self.judge

    async def toolbox(self, profile: AgentProfile, session: SessionInfo) -> Toolbox:
        return ListToolbox(self.tools)


def memory_door(
    script: Scripted,
    tools: Sequence[Tool] = (),
    *,
    store: Store | None = None,
    profiles: Sequence[AgentProfile] = (),
    **profile: Any,
) -> Door:
    """A door to a host in memory. Keyword arguments change the default agent's profile."""
    base = AgentProfile("default", model=MODEL.ref, context_files=False, auto_compact=0.0)
    chosen = list(profiles) or [msgspec.structs.replace(base, **profile)]
    models = OneModel(script)
    host = Host(store or MemoryStore(), FixedAgents(models, tools, chosen), models)
    host.commands = find_commands
    return Door(host)


def host_of(door: Door) -> Host:
    """The host behind a door, for those who test the engine itself."""
    return door._host
