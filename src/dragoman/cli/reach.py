"""How verbs reach the host: the running daemon, or, to read only, the store itself."""

from dragoman import TYPE_CHECKING
from dragoman.client.address import socket_path
from dragoman.client.plain import Plain
from dragoman.client.problems import NotRunning, beginning, the_only
from dragoman.engine.faults import Fault, UnknownAsk, UnknownSession

from . import say
from .parse import Args

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dragoman.cli.local.offline import Offline

    Host = Plain | Offline
    Row = dict[str, Any]  # what the host tells
else:
    Row = dict  # the same for commands that do not load `typing`

_PAGE = 1_000
_PAGES = 20


def daemon(args: Args) -> Plain:
    """A connection to the running daemon. Raises NotRunning, which says how to start it."""
    return Plain(socket_path(args.config_dir), f"dragoman {args.verb}", tell=_waiting)


def _waiting(text: str) -> None:
    say.err(say.style(f"{text}; Ctrl-C ends", "dim"))


def reload(args: Args) -> bool:
    """Whether a running daemon has read again what was written."""
    try:
        of_daemon(args, "config", op="reload")
    except NotRunning:
        return False  # it reads it when it starts
    except Fault as fault:
        say.warn(f"The running daemon goes on with what it had: {fault}")
        return False
    return True


def host(args: Args) -> "Host":
    """The running daemon, or the same answers out of the store when none runs."""
    try:
        return daemon(args)
    except NotRunning:
        from dragoman.cli.local.offline import Offline

        from .places import tell

        found = Offline(args.config_dir)
        tell(args.config_dir, "")
        return found


def call(args: Args, method: str, **params: "Any") -> "Any":
    """What the host answers to one method of ours, from the store when no daemon runs."""
    with host(args) as on:
        return on.call(f"dragoman/{method}", params)


def of_daemon(args: Args, method: str, **params: "Any") -> "Any":
    """The same where a daemon has to run. Raises NotRunning."""
    with daemon(args) as on:
        return on.call(f"dragoman/{method}", params)


def of_session(args: Args, method: str, **params: "Any") -> "Any":
    """The same about the session that the command line names by its beginning."""
    with host(args) as on:
        session = session_id(on, args.session)
        return on.call(f"dragoman/{method}", {"session_id": session, **params})


def sessions(on: "Host", **query: "Any") -> "Iterator[dict[str, Any]]":
    """Session rows, newest activity first, page by page."""
    cursor = ""
    for _ in range(_PAGES):
        page = on.call("dragoman/sessions", {"limit": _PAGE, **query, "cursor": cursor})
        if page.get("damaged"):
            lost = say.many(
                page["damaged"],
                "session cannot be read and is",
                "sessions cannot be read and are",
            )
            say.warn(f"{lost} left out: dragoman doctor")
        nodes = page.get("nodes") or {}
        for row in page["sessions"]:
            yield row | nodes.get(row["id"], {})
        cursor = page["cursor"]
        if not cursor:
            return


def session_id(on: "Host", given: str) -> str:
    """The whole id for a beginning of one. Raises UnknownSession, BadInput when it is not clear."""
    try:
        on.call("dragoman/history", {"session_id": given, "limit": 1})
        return given
    except UnknownSession:
        pass  # not a whole id: look for one that begins so
    return the_only(beginning((row["id"] for row in sessions(on)), given), given)


def ask_id(on: "Host", given: str) -> str:
    """The whole id of an open approval for a beginning of one."""
    rows = on.call("dragoman/approvals", {"pending": True})["approvals"]
    ids = [row["ask"]["id"] for row in rows]
    found = beginning(ids, given)
    if given in ids or not found:
        return given  # the host says what is wrong with it
    if len(found) > 1:
        raise UnknownAsk(f"{len(found)} approvals begin with {given}.", "Write more of it.")
    return str(found[0])


def history(on: "Host", session: str, after: int = 0) -> "Iterator[dict[str, Any]]":
    """Kept events of a session, oldest first."""
    while True:
        page = on.call("dragoman/history", {"session_id": session, "after": after, "limit": _PAGE})
        yield from page["events"]
        if not page["more"]:
            return
        after = page["events"][-1]["seq"]
