"""The whole configuration, as it is after file, environment and flags are put together."""

from __future__ import annotations  # read when a section is: most are never

from typing import Annotated, Any

from .agents import Agent, Autonomy, Memory, Risk, RuntimeProfile
from .host import (
    Checkpoints,
    Fleet,
    Gateway,
    Hook,
    Limits,
    Listen,
    Log,
    McpServer,
    Model,
    Provider,
    Sandbox,
    Store,
    Telemetry,
    WebSearch,
)
from .kinds import Section, says
from .protocols import Acp, Humanlayer, Openclawos, Zeroclaw


class Settings(Section, frozen=True):
    """The configuration of Dragoman."""

    agents: Annotated[dict[str, Agent], says("Agents, by alias.")] = {}
    risk_profiles: Annotated[
        dict[str, Risk], says("Sets of rules that agents can share, by name.")
    ] = {}
    runtime_profiles: Annotated[
        dict[str, RuntimeProfile], says("Ways of working that agents can share, by name.")
    ] = {}
    autonomy: Annotated[Autonomy, says("The rules of every agent that does not say otherwise.")] = (
        Autonomy()
    )
    providers: Annotated[dict[str, Provider], says("Ways to models, by name.")] = {}
    models: Annotated[
        dict[str, Model], says('Models that the catalogue lacks, by "provider/id".')
    ] = {}
    acp: Annotated[Acp, says("The ACP protocol.")] = Acp()
    zeroclaw: Annotated[Zeroclaw, says("The zeroclaw protocol.")] = Zeroclaw()
    humanlayer: Annotated[Humanlayer, says("The humanlayer protocol.")] = Humanlayer()
    openclawos: Annotated[Openclawos, says("The openclawos protocol.")] = Openclawos()
    dialects: Annotated[
        dict[str, dict[str, Any]], says("Settings of dialects that packages bring, by name.")
    ] = {}
    channels: Annotated[
        dict[str, Any], says("What apps' channels are told, by channel; free tables.")
    ] = {}
    apps: Annotated[
        dict[str, dict[str, Any]], says("What apps are told, by their names; free tables.")
    ] = {}
    listen: Annotated[Listen, says("The local endpoints.")] = Listen()
    gateway: Annotated[Gateway, says("HTTP, WebSocket and the dashboard.")] = Gateway()
    mcp: Annotated[dict[str, McpServer], says("MCP servers, by name.")] = {}
    store: Annotated[Store, says("Where sessions live.")] = Store()
    fleet: Annotated[Fleet, says("Several machines on one database.")] = Fleet()
    checkpoints: Annotated[Checkpoints, says("What can be undone.")] = Checkpoints()
    web_search: Annotated[WebSearch, says("What the tool web_search asks.")] = WebSearch()
    hooks: Annotated[
        tuple[Hook, ...], says("Commands that run at points of a session: [[hooks]].")
    ] = ()
    sandbox: Annotated[Sandbox, says("What tools run in.")] = Sandbox()
    memory: Annotated[Memory, says("What agents remember across sessions.")] = Memory()
    log: Annotated[Log, says("The log.")] = Log()
    telemetry: Annotated[Telemetry, says("Traces and figures for OpenTelemetry.")] = Telemetry()
    limits: Annotated[Limits, says("Bounds of the whole host.")] = Limits()

    @property
    def hook_rules(self) -> Openclawos:
        """What holds for hooks; it stands with the apps, most of which hear some."""
        return self.openclawos
