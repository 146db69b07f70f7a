"""initialize, in either version, and who a client is."""

from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, Fault

from ..faults import ECOSYSTEM, UnsupportedVersion
from ..hello import LATEST, VERSION, hello, hello2, is_info, is_modern, login_method, wants_second
from ..quirks import codes_of, quirks_of
from ..shapes import Connection, Initialize, client_side

if TYPE_CHECKING:
    from ..hear import AcpHearer


def initialize(conn: "AcpHearer", params: Initialize) -> dict[str, Any]:
    """Say what works here and now, in the version that the client asks for.

    `stdio/acp_greeting.py` says the same in 0.7 of the time, before there is a host (0073).
    """
    second = _chosen(conn, params)
    meet(conn, params, second=second)
    settings = conn.desk.settings
    model, vision = _default_model(conn)
    version = conn.door.facts.version or __version__
    login = login_method(params.asked, second=second)
    if second:
        about = {"defaultModel": model} if model else None
        return hello2(vision=vision, version=version, login=login, about=about)
    return hello(
        keeps=conn.door.durable,
        model=model,
        vision=vision,
        max_sessions=settings.max_sessions,
        timeout=settings.session_timeout_secs,
        version=version,
        login=login,
        more=is_modern(params.protocol_version),
    )


def _chosen(conn: "AcpHearer", params: Initialize) -> bool:
    """Whether to speak version 2. Raises BadInput, UnsupportedVersion.

    Version 1 takes whatever its oldest clients say: no version at all, 0, or a word. Only who
    writes in the manner of version 2 is held to its rules.
    """
    asked = params.protocol_version
    if not conn.desk.settings.version_2:
        return False
    if isinstance(asked, int) and not isinstance(asked, bool) and asked >= LATEST:
        if asked > 65535:
            raise BadInput("protocolVersion must be a whole number up to 65535")
        if asked == LATEST and not is_info(params.info):
            raise BadInput(
                "Version 2 wants info with a name and a version",
                'For example "info":{"name":"my-editor","version":"1.0"}.',
            )
        return wants_second({"protocolVersion": asked, "info": params.info})
    if params.info is not None:
        if not isinstance(asked, int) or isinstance(asked, bool) or asked < 0:
            raise BadInput("protocolVersion must be a whole number", "Give 1 or 2.")
        if asked < VERSION:
            raise UnsupportedVersion(
                f"Version {asked} of the protocol is not spoken here", "Ask for 1 or 2.",
                requested=asked, supported=[VERSION, LATEST],
            )  # fmt: skip
    return False


def meet(conn: "AcpHearer", params: Initialize, *, second: bool) -> None:
    """Take in who the client is and what it can do."""
    given = params.info if params.client_info is None else params.client_info
    info = given if isinstance(given, dict) else {}
    name = info.get("name") if isinstance(info.get("name"), str) else ""
    conn.client = client_side(params.asked)
    said = (params.asked or {}) if is_modern(params.protocol_version) else None
    conn.quirks = quirks_of(name or "", said)
    conn.codes = codes_of(conn.quirks, conn.desk.settings.error_codes)
    conn.speaks(second)
    if second:
        conn.codes = ECOSYSTEM
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
