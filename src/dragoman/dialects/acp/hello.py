"""The answer to `initialize`. Imports next to nothing: it is the first thing a client waits for."""

from typing import Any

MAX_LINE = 16 * 1024 * 1024  # on every transport
VERSION = 1


def hello(
    *,
    keeps: bool,
    model: str,
    vision: bool,
    max_sessions: int,
    timeout: float,
    version: str,
) -> dict[str, Any]:
    """What works here and now. `keeps`: sessions survive this process."""
    from importlib.util import find_spec

    sessions: dict[str, Any] = {"additionalDirectories": {}}
    if keeps:
        sessions = {"resume": {}, "close": {}, "list": {}, "delete": {}, **sessions}
    mcp = find_spec("mcp") is not None
    about: dict[str, Any] = {"defaultModel": model} if model else {}
    about["maxSessions"] = max_sessions
    about["sessionTimeoutSecs"] = int(timeout) if float(timeout).is_integer() else timeout
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": keeps,
            "promptCapabilities": {"image": vision, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": mcp, "sse": mcp},
            "sessionCapabilities": sessions,
        },
        "agentInfo": {"name": "dragoman", "title": "Dragoman", "version": version},
        "authMethods": [],
        "_meta": {"dragoman": about, "zeroclaw": about},
    }
