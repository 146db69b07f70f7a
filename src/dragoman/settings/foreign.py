"""Keys that ZeroClaw's own config.toml has and ours has not: read as ours, or named with ours."""

from collections.abc import Callable, Iterator
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
    ("memory", "auto_save"): "memory.tools of an agent",
    ("identity",): "the personality files of an agent",
    ("gateway", "session_ttl_hours"): "dragoman token, which can be revoked",
    ("gateway", "paired_tokens"): "dragoman pair",
    ("agent",): "[agents.<alias>]",
    ("storage",): "[store]",
    ("delegate",): "sub-agents of an agent",
    ("reliability",): "nothing: retries are built in",
    ("proxy",): "the variables HTTPS_PROXY and NO_PROXY",
    ("web_fetch",): "domains of [autonomy] or of an agent",
    ("http_request",): "domains of [autonomy] or of an agent",
    ("channels_config",): "[channels.<name>], which apps read",
    ("model_routes",): "model of each agent",
    ("embedding_routes",): "nothing: memory needs no embeddings",
}
# Keys of a set of rules that are ours under another name: ours, and what its value becomes.
_OF_RULES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "block_high_risk_commands": ("block_high_risk", bool),
    "max_cost_per_day_cents": ("max_cost_per_day_usd", lambda cents: cents / 100),
}
_TOOLS = {
    "shell": "bash", "file_read": "read", "file_write": "write", "file_edit": "edit",
    "glob_search": "glob", "content_search": "grep", "web_search_tool": "web_search",
}  # fmt: skip
_OF_MCP = ("enabled", "deferred_loading", "servers", "mcpServers")
# The same for keys of every entry of a table.
_INSTEAD_IN: dict[tuple[str, str], str] = {
    ("agents", "channels"): "apps, which bring the chats they serve",
    ("agents", "acp_enable_mcp"): "mcp of the agent",
    ("agents", "skill_bundles"): "the folder `skills` beside this file",
    ("agents", "mcp_bundles"): "mcp of the agent",
    ("agents", "workspace"): "the folder in which a session is opened",
    ("runtime_profiles", "agentic"): "nothing: every agent has its tools",
    ("runtime_profiles", "max_history_messages"): "auto_compact",
    ("runtime_profiles", "compact_context"): "auto_compact",
    ("runtime_profiles", "parallel_tools"): "nothing: calls that only look run together",
}


def understood(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Bring ZeroClaw's keys into our form, in place; tells each path and what became of it."""
    if isinstance(raw.get("agents"), dict) or "providers" in raw:
        yield from _models(raw)
    yield from _first_agent(raw)
    for path, rules in _rules(raw):
        yield from _read_rules(path, rules)
    yield from _entries(raw)
    servers = _table(raw, ("mcp",)) or {}
    for name in _OF_MCP:
        if name in servers and not isinstance(servers[name], dict):
            del servers[name]  # a table would be a server of that name
            yield ("mcp", name), "is ZeroClaw's; ours: [mcp.<name>]. It is ignored"
    hooks = _table(raw, ("hooks",))
    if hooks is not None and not any(map(_is_hook, (hooks, *hooks.values()))):
        del raw["hooks"]
        yield ("hooks",), "is ZeroClaw's; ours: [[hooks]]. It is ignored"
    for path, ours in _INSTEAD.items():
        above = _table(raw, path[:-1])
        if above is not None and path[-1] in above:
            del above[path[-1]]
            yield path, f"is ZeroClaw's; ours: {ours}. It is ignored"


def _is_hook(value: Any) -> bool:
    """Whether a table is one of our hooks, written in a way that is none."""
    return isinstance(value, dict) and ("on" in value or "run" in value)


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
        yield from _unread(entries)
        del raw["providers"]["models"]
        yield ("providers", "models"), "is ZeroClaw's; agents that name an entry have read it"


def _unread(entries: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """What `providers.models` says that no agent reads."""
    read = {theirs for theirs, _ in _OF_MODEL}
    for kind, named in entries.items():
        for name, entry in named.items() if isinstance(named, dict) else ():
            for key in entry if isinstance(entry, dict) else ():
                if key not in read:
                    path = ("providers", "models", kind, name, key)
                    yield path, "is ZeroClaw's; ours: [providers.<name>]. It is ignored"


def _entries(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Keys of agents and of ways of working."""
    for name, profile in (_table(raw, ("runtime_profiles",)) or {}).items():
        most = profile.get("max_tool_iterations") if isinstance(profile, dict) else None
        if isinstance(most, int):
            del profile["max_tool_iterations"]
            profile.setdefault("max_steps", most)
            yield ("runtime_profiles", name, "max_tool_iterations"), "is read as max_steps"
    for (table, key), ours in _INSTEAD_IN.items():
        for name, entry in (_table(raw, (table,)) or {}).items():
            if isinstance(entry, dict) and key in entry:
                del entry[key]
                yield (table, name, key), f"is ZeroClaw's; ours: {ours}. It is ignored"


def _first_agent(raw: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """`default_provider`, `default_model` and `api_key` of its first releases."""
    agents = raw.get("agents", {})
    if not isinstance(agents, dict) or not isinstance(agents.get("default", {}), dict):
        return  # told as a wrong value
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


def _rules(raw: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every set of rules, with where it stands."""
    general = _table(raw, ("autonomy",))
    if general is not None:
        yield ("autonomy",), general
    for name, one in (_table(raw, ("risk_profiles",)) or {}).items():
        if isinstance(one, dict):
            yield ("risk_profiles", name), one


def _read_rules(path: Path, rules: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    level = rules.get("level")
    if isinstance(level, str):
        mode = level.lower().replace("read_only", "readonly")
        if path != ("autonomy",):  # which has a key of ours of that name
            del rules["level"]
            rules.setdefault("mode", mode)
            yield (*path, "level"), "is read as mode"
        elif mode != level:
            rules["level"] = mode
            yield (*path, "level"), f"is read as {mode}"
    for theirs, (ours, become) in _OF_RULES.items():
        value = rules.get(theirs)
        if isinstance(value, int | float):
            del rules[theirs]
            rules.setdefault(ours, become(value))
            yield (*path, theirs), f"is read as {ours}"
    for key in ("auto_approve", "always_ask"):
        named = rules.get(key)
        if isinstance(named, list) and any(one in _TOOLS for one in named if isinstance(one, str)):
            rules[key] = [_TOOLS.get(one, one) if isinstance(one, str) else one for one in named]
            yield (*path, key), f"names ZeroClaw's tools; read as {', '.join(map(str, rules[key]))}"


def _table(raw: Any, path: Path) -> dict[str, Any] | None:
    for part in path:
        raw = raw.get(part) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else None
