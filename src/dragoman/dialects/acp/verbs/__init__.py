"""Methods of the protocol: name, parameters, what to do. One module per resource."""

from collections.abc import Callable

import msgspec

from dragoman.wire.verbs import C, P, Verb

from .. import mcp, shapes
from . import account, care, handshake, sessions, turns


def verb(
    params: type[P],
    run: Callable[[C, P], object],
    *,
    direct: bool = False,
    waits: bool | None = None,
) -> Verb:
    """A method. What `waits` looks at once whether it can be done, then goes on as a task."""
    return Verb(
        run, direct=direct, waits=waits, read=msgspec.json.Decoder(params).decode, takes=params
    )


VERBS: dict[str, Verb] = {
    "initialize": verb(shapes.Initialize, handshake.initialize),
    "_dragoman/connection": verb(shapes.Connection, handshake.name_connection),
    "authenticate": verb(shapes.Authenticate, account.authenticate),
    "logout": verb(shapes.Nothing, account.logout),
    "auth/status": verb(shapes.Nothing, account.status),
    "session/new": verb(shapes.NewSession, sessions.new, waits=True),
    "session/load": verb(shapes.OldSession, sessions.load, waits=True),
    "session/resume": verb(shapes.OldSession, sessions.resume, waits=True),
    "session/close": verb(shapes.ForSession, sessions.close, waits=True),
    "session/stop": verb(shapes.ForSession, sessions.stop, waits=True),
    "_zeroclaw/session/stop": verb(shapes.ForSession, sessions.stop, waits=True),
    "session/list": verb(shapes.ListSessions, sessions.list_sessions),
    "session/fork": verb(shapes.OldSession, care.fork, waits=True),
    "session/set_title": verb(shapes.SetTitle, care.set_title),
    "session/archive": verb(shapes.ForSession, care.archive),
    "session/unarchive": verb(shapes.ForSession, care.unarchive),
    "session/status": verb(shapes.ForSession, care.status),
    "session/delete": verb(shapes.ForSession, sessions.delete),
    "session/prompt": verb(shapes.Prompt, turns.prompt, direct=True, waits=True),
    "session/cancel": verb(shapes.ForSession, turns.cancel),
    "session/update": verb(shapes.Told, turns.tell),
    "session/event": verb(shapes.Told, turns.tell),
    "session/set_mode": verb(shapes.SetMode, care.set_mode),
    "session/set_config_option": verb(shapes.SetOption, care.set_config_option),
    "mcp/message": verb(mcp.LentMessage, mcp.message),
    "$/cancel_request": verb(shapes.CancelRequest, turns.cancel_request),
}

# The document of the older family asks for no greeting. Who begins with something that it does not
# name is of another family, and has to greet.
UNGREETED = frozenset({
    "session/new", "session/load", "session/resume", "session/close",
    "session/stop", "_zeroclaw/session/stop", "session/prompt", "session/cancel",
    "session/update", "session/event", "$/cancel_request",
})  # fmt: skip
