"""Methods of the protocol: name, parameters, what to do. One module per resource."""

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.wire.verbs import Verb

from .. import shapes
from . import handshake, options, sessions, turns


def _verb(
    params: type, run: Callable[..., Any], *, direct: bool = False, waits: bool | None = None
) -> Verb:
    """A method. What `waits` looks at once whether it can be done, then goes on as a task."""
    return Verb(
        run, direct=direct, waits=waits, read=msgspec.json.Decoder(params).decode, takes=params
    )


VERBS: dict[str, Verb] = {
    "initialize": _verb(shapes.Initialize, handshake.initialize),
    "_dragoman/connection": _verb(shapes.Connection, handshake.name_connection),
    "authenticate": _verb(shapes.Authenticate, handshake.authenticate),
    "session/new": _verb(shapes.NewSession, sessions.new, waits=True),
    "session/load": _verb(shapes.OldSession, sessions.load, waits=True),
    "session/resume": _verb(shapes.OldSession, sessions.resume, waits=True),
    "session/close": _verb(shapes.ForSession, sessions.close, waits=True),
    "session/stop": _verb(shapes.ForSession, sessions.stop, waits=True),
    "_zeroclaw/session/stop": _verb(shapes.ForSession, sessions.stop, waits=True),
    "session/list": _verb(shapes.ListSessions, sessions.list_sessions),
    "session/delete": _verb(shapes.ForSession, sessions.delete),
    "session/prompt": _verb(shapes.Prompt, turns.prompt, direct=True, waits=True),
    "session/cancel": _verb(shapes.ForSession, turns.cancel),
    "session/update": _verb(shapes.Told, turns.tell),
    "session/event": _verb(shapes.Told, turns.tell),
    "session/set_mode": _verb(shapes.SetMode, options.set_mode),
    "session/set_config_option": _verb(shapes.SetOption, options.set_config_option),
    "$/cancel_request": _verb(shapes.CancelRequest, turns.cancel_request),
}
