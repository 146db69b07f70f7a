"""`dragoman mcp`: the MCP servers of the configuration, and signing in to one."""

import os
from collections.abc import Callable
from typing import Any

from dragoman.engine.faults import BadInput
from dragoman.observe.redact import redact, scrub
from dragoman.settings.host import McpServer
from dragoman.settings.load import load
from dragoman.settings.places import places
from dragoman.transports.loop import run


def servers(config_dir: str | None) -> list[tuple[str, str, bool]]:
    """Name, command or address without what is secret in it, and whether it is used."""
    found = load(places(os.environ, config_dir).config_file).settings.mcp
    return [(name, _shown(one), one.enabled) for name, one in found.items()]


def _shown(server: McpServer) -> str:
    words: Any = redact([server.command, *server.args])
    return scrub(server.url or " ".join(words))


def login(config_dir: str | None, name: str, show: Callable[[str], None]) -> int:
    """Sign in to a server; returns how many tools it offers. Raises BadInput, ProviderFailed."""
    from dragoman.tools.mcp_auth import login as sign_in

    where = places(os.environ, config_dir)
    known = load(where.config_file).settings.mcp
    if name not in known:
        names = ", ".join(known) or "none"
        raise BadInput(f"There is no MCP server {name}.", f"Configured: {names}.")
    tokens = os.path.join(where.data_dir, "tokens")
    return run(sign_in(name, known[name].url, tokens, show))
