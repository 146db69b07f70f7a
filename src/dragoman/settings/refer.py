"""Names inside the configuration that must lead somewhere."""

from collections.abc import Iterable, Iterator

from .host import McpServer
from .model import Settings
from .nearest import nearest
from .shape import Path

# Our tools, and the kinds by which calls of hosted agents are known.
TOOLS = (
    "ask_user", "bash", "bash_kill", "bash_output", "delete", "edit", "escalate_to_human",
    "execute", "fetch", "glob", "grep", "ls", "memory_export", "memory_forget", "memory_purge",
    "memory_recall", "memory_store", "move", "other", "plan", "propose_plan", "read", "search",
    "shell", "skill", "task", "think", "web_fetch", "web_search", "write",
)  # fmt: skip


def problems(settings: Settings) -> Iterator[tuple[Path, str]]:
    """Every name that leads nowhere, with the path of the key that has it."""
    for alias, agent in settings.agents.items():
        at = ("agents", alias)
        if agent.risk_profile and agent.risk_profile not in settings.risk_profiles:
            yield (
                (*at, "risk_profile"),
                _missing("risk_profiles", agent.risk_profile, settings.risk_profiles),
            )
        if agent.runtime_profile and agent.runtime_profile not in settings.runtime_profiles:
            yield (
                (*at, "runtime_profile"),
                _missing("runtime_profiles", agent.runtime_profile, settings.runtime_profiles),
            )
        if agent.backend == "acp" and not agent.command:
            yield (*at, "backend"), f"agents.{alias} has the backend acp and needs a command."
        yield from _servers((*at, "mcp"), agent.mcp, settings)
    for name, runtime in settings.runtime_profiles.items():
        yield from _servers(("runtime_profiles", name, "mcp"), runtime.mcp, settings)
    wanted = settings.acp.default_agent
    known = tuple(settings.agents) or ("default",)
    if wanted and wanted not in known:
        names = ", ".join(known)
        yield (
            ("acp", "default_agent"),
            f"acp.default_agent names no agent: {wanted!r} (there are: {names}).",
        )
    for name, server in settings.mcp.items():
        if server.enabled and not (server.command or server.url):
            yield ("mcp", name), f"mcp.{name} needs a command or a url."
    if bool(settings.gateway.tls_cert) != bool(settings.gateway.tls_key):
        given = "tls_cert" if settings.gateway.tls_cert else "tls_key"
        yield ("gateway", given), "gateway.tls_cert and gateway.tls_key are needed together."
    if settings.gateway.tls_cert and settings.gateway.tls_self_signed:
        yield (
            ("gateway", "tls_self_signed"),
            "gateway.tls_self_signed makes what tls_cert names: keep one.",
        )


def doubts(settings: Settings) -> Iterator[tuple[Path, str]]:
    """What leads nowhere and harms nothing else: it is told, and left out."""
    if settings.log.levels:
        from dragoman.observe.areas import AREAS, is_area

        for name in settings.log.levels:
            if not is_area(name):
                yield (
                    ("log", "levels", name),
                    f"log.levels has {name}, which is no part of the program"
                    f"{_near(name, AREAS)}. It is ignored. There are: {', '.join(AREAS)}.",
                )
    yield from _rules(settings)
    if settings.dialects or settings.listen.more:
        yield from _brought(settings)
    for name, server in settings.mcp.items():
        if server.command and server.url:
            yield (
                ("mcp", name, "url"),
                f"mcp.{name} has a command and a url: the {_used(server)} is used. Keep one.",
            )
        elif server.url and not server.url.lower().startswith(("http://", "https://")):
            yield (
                ("mcp", name, "url"),
                f"mcp.{name}.url does not begin with http:// or https://: it cannot be reached.",
            )


def _rules(settings: Settings) -> Iterator[tuple[Path, str]]:
    """Rules about tools and agents that nothing will ever be found to keep."""
    known = tuple(settings.agents) or ("default",)
    said: list[tuple[Path, Iterable[str]]] = [
        ((table, name, key), getattr(one, key) or ())
        for table, entries in (
            ("agents", settings.agents),
            ("risk_profiles", settings.risk_profiles),
        )
        for name, one in entries.items()
        for key in ("auto_approve", "always_ask")
    ]
    said += [(("autonomy", key), getattr(settings.autonomy, key) or ()) for key in
             ("auto_approve", "always_ask")]  # fmt: skip
    for number, hook in enumerate(settings.hooks, 1):
        said.append((("hooks",), hook.tools))
        for name in hook.agents:
            if name not in known:
                yield (
                    ("hooks",),
                    f"hook number {number} is for an agent that there is not: {name}"
                    f"{_near(name, known)}; there are: {', '.join(known)}.",
                )
    for path, tools in said:
        for name in tools:
            # Apps, MCP servers and hosted agents bring names that nobody knows here.
            if name.lower() not in TOOLS and (meant := _near(name, TOOLS, 0.75)):
                yield path, f"{'.'.join(path)} names {name}, which is no tool of ours{meant}."


def _brought(settings: Settings) -> Iterator[tuple[Path, str]]:
    """Settings of dialects that no package brings, and keys that such a dialect does not have."""
    from dragoman.dialects import descriptor

    named: list[tuple[Path, str]] = [(("dialects", name), name) for name in settings.dialects]
    named += [(("listen", "more", name), name) for name in settings.listen.more]
    known = {one.name: one for one in descriptor.REGISTRY.all() if one.name not in descriptor.OURS}
    for path, name in named:
        if name not in known:
            names = ", ".join(known) or "none"
            yield (
                path,
                f"{'.'.join(path)} is for a dialect that no installed package brings"
                f"{_near(name, known)}; there are: {names}. It is ignored.",
            )
    for name in settings.dialects.keys() & known:
        kind = known[name].settings
        try:
            keys = descriptor.load(kind).__struct_encode_fields__ if ":" in kind else ()
        except (ImportError, AttributeError):  # told by who needs it
            continue
        for key in settings.dialects[name]:
            if key not in keys:
                has = ", ".join(keys) or "none"
                yield (
                    ("dialects", name, key),
                    f"dialects.{name}.{key} is no setting of this dialect{_near(key, keys)}; "
                    f"there are: {has}. It is ignored.",
                )


def _used(server: McpServer) -> str:
    return "command" if server.transport in ("auto", "stdio") else "url"


def _near(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    found = nearest(name, tuple(known), cutoff)
    return f" (did you mean {found}?)" if found else ""


def _servers(
    at: Path, wanted: tuple[str, ...] | None, settings: Settings
) -> Iterator[tuple[Path, str]]:
    for name in wanted or ():
        if name not in settings.mcp:
            yield at, _missing("mcp", name, settings.mcp)


def _missing(section: str, name: str, known: Iterable[str]) -> str:
    names = ", ".join(known) or "none"
    return f"there is no [{section}.{name}]{_near(name, known)}; there are: {names}."
