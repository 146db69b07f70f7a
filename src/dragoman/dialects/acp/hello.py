"""The answer to `initialize`. Imports next to nothing: it is the first thing a client waits for."""

from typing import Any

MAX_LINE = 16 * 1024 * 1024  # on every transport
VERSION = 1
LATEST = 2


def hello(
    *,
    keeps: bool,
    model: str,
    vision: bool,
    max_sessions: int,
    timeout: float,
    version: str,
    login: object = None,
    more: bool = False,
) -> dict[str, Any]:
    """What works here and now. `keeps`: sessions survive this process.

    `more`: what the protocol got since, for clients that say which version of it they mean.
    """
    sessions: dict[str, Any] = {"additionalDirectories": {}, **(_MORE if more else {})}
    if keeps:
        sessions = {"resume": {}, "close": {}, "list": {}, "delete": {}, **sessions}
    mcp = _has_mcp()
    about: dict[str, Any] = {"defaultModel": model} if model else {}
    about["maxSessions"] = max_sessions
    about["sessionTimeoutSecs"] = int(timeout) if float(timeout).is_integer() else timeout
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": keeps,
            "promptCapabilities": {"image": vision, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": mcp, "sse": mcp, **({"acp": mcp} if more else {})},
            "sessionCapabilities": sessions,
            **({"auth": {"logout": {}, "status": {}}} if more else {}),
        },
        "agentInfo": {"name": "dragoman", "title": "Dragoman", "version": version},
        "authMethods": [login] if login else [],
        "_meta": {"dragoman": about, "zeroclaw": about},
    }


def hello2(
    *, vision: bool, version: str, login: object = None, about: object = None
) -> dict[str, Any]:
    """The same in version 2."""
    prompt: dict[str, Any] = {"embeddedContext": {}}
    if vision:
        prompt["image"] = {}
    mcp: dict[str, Any] = {"stdio": {}, "http": {}, "acp": {}} if _has_mcp() else {}
    session = {"prompt": prompt, "mcp": mcp, "delete": {}, "additionalDirectories": {}, **_MORE}
    answer: dict[str, Any] = {
        "protocolVersion": LATEST,
        "info": {"name": "dragoman", "title": "Dragoman", "version": version},
        "capabilities": {"session": session, "auth": {"status": {}}},
        "authMethods": [login] if login else [],
    }
    if about:
        answer["_meta"] = {"dragoman": about}
    return answer


_MORE: dict[str, Any] = {"fork": {}, "title": {}, "archive": {}, "status": {}}


def wants_second(params: Any) -> bool:
    """Whether `initialize` asks for version 2 or a later one, in a way that is beyond doubt."""
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    if type(asked) is not int or not LATEST <= asked <= 65535:
        return False
    return isinstance(params.get("info"), dict)  # who writes as version 1 does gets version 1


def is_info(info: object) -> bool:
    """Whether a client of version 2 says who it is."""
    return isinstance(info, dict) and all(
        isinstance(info.get(key), str) and info[key] for key in ("name", "version")
    )


def is_modern(asked: object) -> bool:
    """Whether a client means a version of the protocol that was ever published."""
    return type(asked) is int and asked >= VERSION


def login_method(capabilities: object, *, second: bool = False) -> dict[str, Any] | None:
    """How to log in, for a client that opens a terminal for it."""
    said = capabilities if isinstance(capabilities, dict) else {}
    auth, meta = said.get("auth"), said.get("_meta")
    offered = auth.get("terminal") if isinstance(auth, dict) else None
    legacy = meta.get("terminal-auth") if isinstance(meta, dict) else None
    if not (offered is True or isinstance(offered, dict) or legacy is True):
        return None
    name = "Choose a model provider"
    what = {
        "name": name,
        "description": "Enter a key, or use Ollama, in a terminal: dragoman login",
        "type": "terminal",
        "args": ["login"],
    }
    if second:
        return {"methodId": "login", **what}
    import sys

    run = {"label": name, "command": sys.executable, "args": ["-P", "-m", "dragoman", "login"]}
    return {"id": "login", **what, "_meta": {"terminal-auth": run}}


def _has_mcp() -> bool:
    from importlib.util import find_spec

    return find_spec("mcp") is not None
