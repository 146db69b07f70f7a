"""`sessions cancel`, `rename`, `fork`, `archive`, `delete`."""

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import UnknownSession

from ... import reach, say
from ...screen import brief

if TYPE_CHECKING:
    from typing import Any

    from dragoman.cli.parse import Args


def cancel(args: "Args") -> int:
    """Stop the turn that runs."""
    with reach.daemon(args) as host:
        session = reach.session_id(host, args.session)
        found = host.call("dragoman/cancel", {"session_id": session})
    _say(args, found, "cancelled")
    return 0


def rename(args: "Args") -> int:
    """Give a session a title."""
    title = " ".join(args.title)
    found = _change(args, "dragoman/rename", title=title)
    _say(args, found, f"renamed: {brief(title)}")
    return 0


def archive(args: "Args") -> int:
    """Take a session out of the list, or put it back."""
    back = bool(args.undo)
    found = _change(args, "dragoman/archive", archived=not back)
    _say(args, found, "back in the list" if back else "archived")
    return 0


def fork(args: "Args") -> int:
    """A new session that begins with what was said in another."""
    found = _change(args, "dragoman/fork")
    _say(args, found, found["id"])
    return 0


def delete(args: "Args") -> int:
    """Remove a session and its history for good."""
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        gone = host.call("dragoman/delete", {"session_id": session})["deleted"]
    if not gone:
        raise UnknownSession(session)
    _say(args, {"deleted": session}, f"deleted: {session}")
    return 0


def _change(args: "Args", method: str, **params: "Any") -> "Any":
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        return host.call(method, {"session_id": session, **params})["session"]


def _say(args: "Args", found: object, text: str) -> None:
    if args.json:
        say.plain_json(found)
    else:
        say.out(text)
