"""initialize, authenticate."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault

from ..quirks import codes_of, quirks_of
from ..shapes import Authenticate, Initialize, client_side

if TYPE_CHECKING:
    from ..hear import AcpHearer

VERSION = 1


def initialize(conn: "AcpHearer", params: Initialize) -> dict[str, Any]:
    """Say what works here and now; the version is always our own."""
    info = params.client_info if isinstance(params.client_info, dict) else {}
    name = info.get("name") if isinstance(info.get("name"), str) else ""
    conn.client = client_side(params.client_capabilities)
    conn.quirks = quirks_of(name or "")
    conn.codes = codes_of(conn.quirks, conn.desk.settings.error_codes)
    conn.greeted = bool(name)
    if name and name != conn.who.name:
        conn.who = Who("acp", conn.who.peer, str(name)[:200], conn.who.id)
        conn.door.arrive(conn.who)
    return describe(conn)


def describe(conn: "AcpHearer") -> dict[str, Any]:
    door, settings = conn.door, conn.desk.settings
    model, vision = _default_model(conn)
    keeps = door.durable
    sessions: dict[str, Any] = {"additionalDirectories": {}}
    if keeps:
        sessions = {"resume": {}, "close": {}, "list": {}, "delete": {}, **sessions}
    mcp = find_spec("mcp") is not None
    about = {
        "maxSessions": settings.max_sessions,
        "sessionTimeoutSecs": _whole(settings.session_timeout_secs),
    }
    if model:
        about = {"defaultModel": model, **about}
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": keeps,
            "promptCapabilities": {"image": vision, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": mcp, "sse": mcp},
            "sessionCapabilities": sessions,
        },
        "agentInfo": {
            "name": "dragoman",
            "title": "Dragoman",
            "version": str(door.facts.get("version") or _version()),
        },
        "authMethods": [],
        "_meta": {"dragoman": about, "zeroclaw": about},
    }


def _default_model(conn: "AcpHearer") -> tuple[str, bool]:
    """The model of a session that asks for nothing special, and whether it sees."""
    door = conn.door
    alias = conn.agent or conn.desk.settings.default_agent or door.default_agent()
    try:
        profile = door.profile(alias or next(iter(door.agents()), ""))
        model = door.model(profile.model)
    except Fault:
        return "", False  # not usable as it is configured; session/new will say why
    return model.ref, model.vision


def _whole(seconds: float) -> float:
    return int(seconds) if float(seconds).is_integer() else seconds


def _version() -> str:
    from dragoman import __version__

    return __version__


def authenticate(conn: "AcpHearer", params: Authenticate) -> dict[str, Any]:
    raise BadInput(
        f"Unknown authentication method: {params.method_id}",
        "No authentication is needed: authMethods is empty.",
    )
