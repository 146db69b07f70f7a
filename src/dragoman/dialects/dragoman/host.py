"""The host itself: status, agents, models, configuration."""

import asyncio
import os
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from dragoman.engine.events import ACTIVE
from dragoman.engine.faults import BadInput, Fault
from dragoman.observe import log
from dragoman.observe.process import resident

from . import answers
from .shapes import Config, Folder, Models, OneApp, Pair

if TYPE_CHECKING:
    from .caller import Caller


async def status(conn: "Caller", _: None) -> dict[str, Any]:
    door = conn.door
    facts, store = door.facts, door.health
    dialects: dict[str, int] = {}
    for client in door.visitors.clients.values():
        dialects[client.who.dialect] = dialects.get(client.who.dialect, 0) + 1
    return {
        "version": facts.version,
        "pid": os.getpid(),
        "uptime_ms": door.uptime_ms(),
        "config_dir": facts.config_dir,
        "config_file": facts.config_file,
        "data_dir": facts.data_dir,
        "flags": facts.flags,
        "endpoints": facts.addresses,
        "gateway": facts.gateway or "",
        "sessions": {
            "live": len(door.live_ids()),
            "active": sum(1 for s in door.lives() if s.status in ACTIVE),
            "most": door.max_sessions,
        },
        "clients": dialects,
        # A database that is gone must not take the answer with it that tells so.
        "approvals": len(await door.asks()) if not store.stalled else None,
        "store": {
            "durable": store.durable,
            "problem": store.problem,
            "commits": store.commits,
            "newest": await door.newest() if not store.stalled else None,
            "stalled": store.stalled,
            "place": store.place,
            "file": facts.store_file,
        },
        **({"fleet": door.fleet} if door.fleet is not None else {}),
        "log": {"lost": log.lost()},
        "rss_bytes": resident(),
        "notices": facts.notices(),
        "sandbox": facts.sandbox() if facts.sandbox is not None else "",
        "mcp": facts.mcp(),
    }


async def doctor(conn: "Caller", _: None) -> dict[str, list[dict[str, str]]]:
    """What `dragoman doctor` says, as this process sees it: its environment, its apps."""
    examine = conn.door.facts.doctor
    if examine is None:
        raise BadInput("This host has no doctor.", "Use: dragoman doctor")
    return {"rows": [msgspec.to_builtins(row) for row in await examine()]}


def apps(conn: "Caller", _: None) -> dict[str, Any]:
    """Apps: those that this host starts, and those that are connected."""
    facts = conn.door.facts
    return {"kept": facts.kept_apps(), "connected": facts.connected_apps()}


async def restart_app(conn: "Caller", params: OneApp) -> dict[str, str]:
    restart = conn.door.facts.restart_app
    if restart is None or not await restart(params.id):
        raise BadInput(f"No app {params.id} is started here.", "See: dragoman apps")
    return {"restarted": params.id}


async def pair(conn: "Caller", params: Pair) -> dict[str, Any]:
    pairing = conn.door.facts.pairing
    if pairing is None:
        raise BadInput(
            "The daemon runs without its gateway.",
            "Start it without --no-gateway, and with gateway.enabled true (dragoman config set).",
        )
    return await pairing(link=params.link)


def agents(conn: "Caller", _: None) -> answers.Agents:
    rows = []
    for alias in conn.door.agents():
        try:
            known = conn.door.profile(alias)
        except Fault as fault:
            rows.append(answers.AgentRow(alias, "", "", "", "", str(fault)))
            continue
        row = answers.AgentRow(alias, known.model, known.mode, known.reasoning, known.backend)
        rows.append(row)
    return answers.Agents(rows, conn.door.default_agent())


def models(conn: "Caller", params: Models) -> answers.Models:
    rows = [
        answers.ModelRow(model.ref, msgspec.to_builtins(model))
        for model in conn.door.models(params.provider)
    ]
    lacking = conn.door.facts.without_key() if params.provider is None else {}
    return answers.Models(rows, list(lacking), {name: [*env] for name, env in lacking.items()})


async def commands(conn: "Caller", params: Folder) -> answers.Commands:
    """The slash commands of a working directory: Markdown files and skills."""
    found = await asyncio.to_thread(conn.door.commands, params.cwd)
    rows = [answers.CommandRow(one.name, one.description, one.hint) for one in found.values()]
    return answers.Commands(rows)


async def config(conn: "Caller", params: Config) -> dict[str, Any]:
    live = conn.door.config
    if live is None:
        raise BadInput("This host has no configuration.")
    if params.op == "explain":
        explain = conn.door.facts.explain
        return {"keys": explain(params.path) if explain is not None else []}
    if params.op == "reload":
        live.reload()
    elif params.op == "set":
        if params.value is UNSET:
            raise BadInput("The value is missing.", "Give it, or take the key out with `unset`.")
        await live.set(params.path, params.value)
    elif params.op == "unset":
        await live.set(params.path, None)
    return {"path": params.path, "value": live.get(params.path)}
