"""Keys that ZeroClaw's own config.toml has and ours has not: read as ours, or named with ours."""

from collections.abc import Iterator
from typing import Any

from .shape import Path

_OF_MODEL = (
    ("model", "model"),
    ("api_key", "api_key"),
    ("temperature", "temperature"),
    ("base_url", "base_url"),
    ("uri", "base_url"),
    ("api_url", "base_url"),
)
# Keys without a counterpart that could be read, and what of ours does the same.
_INSTEAD: dict[Path, str] = {
    ("schema_version",): "nothing: our keys have no version",
    ("wss",): "[gateway] bind, tls_cert, tls_key",
    ("observability",): "[log]",
    ("cost",): "the budgets of [autonomy] or of an agent",
    ("security",): "[sandbox] and [autonomy]",
    ("runtime",): "[runtime_profiles.<name>]",
    ("secrets",): "nothing: the file itself is kept private",
    ("scheduler",): "dragoman cron",
    ("cron",): "dragoman cron",
    ("heartbeat",): "dragoman cron",
    ("tunnel",): "[gateway] bind",
    ("skills",): "the folder `skills` beside this file",
    ("memory", "backend"): "[memory] enabled",
}


def understood(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Bring ZeroClaw's keys into our form, in place; tells each path and what became of it."""
    if isinstance(raw.get("agents"), dict) or "providers" in raw:
        yield from _models(raw)
    yield from _first_agent(raw)
    for table in ("risk_profiles", "autonomy"):
        yield from _level(raw, table)
    servers = _table(raw, ("mcp",)) or {}
    if isinstance(servers.get("servers"), list):  # a table would be a server of that name
        del servers["servers"]
        yield ("mcp", "servers"), "is ZeroClaw's; ours: [mcp.<name>]. It is ignored"
    for path, ours in _INSTEAD.items():
        above = _table(raw, path[:-1])
        if above is not None and path[-1] in above:
            del above[path[-1]]
            yield path, f"is ZeroClaw's; ours: {ours}. It is ignored"


def _models(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """`agents.A.model_provider = "type.alias"`, and the entry that it names."""
    entries = _table(raw, ("providers", "models")) or {}
    is_theirs = any(isinstance(one, dict) for one in entries.values())
    for alias, agent in (_table(raw, ("agents",)) or {}).items():
        if not isinstance(agent, dict):
            continue
        if isinstance(agent.get("enabled"), bool):
            if not agent.pop("enabled"):
                yield ("agents", alias, "enabled"), "is ZeroClaw's; ours: take the agent out"
        given = agent.pop("model_provider", None)
        if not isinstance(given, str):
            continue
        kind, _, name = given.partition(".")
        entry = _table(entries, (kind, name or "default")) if is_theirs else None
        agent.setdefault("provider", kind)
        changed = ["provider"]
        for theirs, ours in _OF_MODEL:
            if entry is not None and entry.get(theirs) not in (None, "") and ours not in agent:
                agent[ours] = entry[theirs]
                changed.append(ours)
        yield ("agents", alias, "model_provider"), f"is read as {', '.join(changed)} of the agent"
    if is_theirs:
        del raw["providers"]["models"]
        yield ("providers", "models"), "is ZeroClaw's; agents that name an entry have read it"


def _first_agent(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """`default_provider`, `default_model` and `api_key` of its first releases."""
    agents = raw.get("agents") or {}
    for theirs, ours in (
        ("default_provider", "provider"), ("default_model", "model"), ("api_key", "api_key"),
        ("default_temperature", "temperature"),
    ):  # fmt: skip
        if theirs not in raw or isinstance(raw[theirs], dict):
            continue
        value = raw.pop(theirs)
        if agents and agents.keys() != {"default"}:
            yield (theirs,), f"is ZeroClaw's; ours: {ours} of each agent. It is ignored"
            continue
        agent = raw.setdefault("agents", {}).setdefault("default", {})
        agent.setdefault(ours, value)
        yield (theirs,), f"is read as agents.default.{ours}"


def _level(raw: dict[str, Any], table: str) -> Iterator[tuple[Path, str]]:
    found = raw.get(table)
    if not isinstance(found, dict):
        return
    rows = [((table,), found)] if table == "autonomy" else [
        ((table, name), one) for name, one in found.items() if isinstance(one, dict)
    ]  # fmt: skip
    for path, one in rows:
        level = one.pop("level", None)
        if isinstance(level, str):
            one.setdefault("mode", level.lower().replace("read_only", "readonly"))
            yield (*path, "level"), "is read as mode"


def _table(raw: Any, path: Path) -> dict[str, Any] | None:
    for part in path:
        raw = raw.get(part) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else None
