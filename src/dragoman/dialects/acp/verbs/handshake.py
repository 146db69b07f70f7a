"""initialize, authenticate."""

from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault

from ..hello import hello
from ..quirks import codes_of, quirks_of
from ..shapes import Authenticate, Connection, Initialize, client_side

if TYPE_CHECKING:
    from ..hear import AcpHearer


def initialize(conn: "AcpHearer", params: Initialize) -> dict[str, Any]:
    """Say what works here and now; the version is always our own."""
    meet(conn, params)
    settings = conn.desk.settings
    model, vision = _default_model(conn)
    return hello(
        keeps=conn.door.durable,
        model=model,
        vision=vision,
        max_sessions=settings.max_sessions,
        timeout=settings.session_timeout_secs,
        version=conn.door.facts.version or __version__,
    )


def meet(conn: "AcpHearer", params: Initialize) -> None:
    """Take in who the client is and what it can do."""
    info = params.client_info if isinstance(params.client_info, dict) else {}
    name = info.get("name") if isinstance(info.get("name"), str) else ""
    conn.client = client_side(params.client_capabilities)
    conn.quirks = quirks_of(name or "", params.client_capabilities)
    conn.codes = codes_of(conn.quirks, conn.desk.settings.error_codes)
    conn.greeted = bool(name)
    if name and name != conn.who.name:
        conn.who = Who("acp", conn.who.peer, str(name)[:200], conn.who.id)
        conn.door.visitors.arrive(conn.who)


def name_connection(conn: "AcpHearer", params: Connection) -> None:
    """A client that comes again under this name is answered with the turns it began."""
    conn.places = params.places
    if params.name and not conn.steady:
        conn.steady = f"own:{params.name[:64]}"


def _default_model(conn: "AcpHearer") -> tuple[str, bool]:
    """The model of a session that asks for nothing special, and whether it sees."""
    door = conn.door
    alias = conn.agent or conn.desk.settings.default_agent or door.default_agent()
    try:
        profile = door.profile(alias or next(iter(door.agents()), ""))
        model = door.model(profile.model, profile.alias)
    except Fault:
        return "", False  # not usable as it is configured; session/new will say why
    return model.ref, model.vision


def authenticate(conn: "AcpHearer", params: Authenticate) -> dict[str, Any]:
    raise BadInput(
        f"Unknown authentication method: {params.method_id}",
        "No authentication is needed: authMethods is empty.",
    )
