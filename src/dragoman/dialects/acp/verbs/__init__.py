"""Methods of the protocol: name, parameters, what to do. One module per resource."""

from collections.abc import Callable
from typing import Any

import msgspec

from .. import shapes
from . import handshake, options, sessions, turns


class Verb:
    """A method. A plain function answers at once; a coroutine runs as a task."""

    __slots__ = ("decode", "run")

    def __init__(self, params: type, run: Callable[..., Any]) -> None:
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(params).decode
        self.run = run


VERBS: dict[str, Verb] = {
    "initialize": Verb(shapes.Initialize, handshake.initialize),
    "authenticate": Verb(shapes.Authenticate, handshake.authenticate),
    "session/new": Verb(shapes.NewSession, sessions.new),
    "session/load": Verb(shapes.OldSession, sessions.load),
    "session/resume": Verb(shapes.OldSession, sessions.resume),
    "session/close": Verb(shapes.ForSession, sessions.close),
    "session/stop": Verb(shapes.ForSession, sessions.stop),
    "_zeroclaw/session/stop": Verb(shapes.ForSession, sessions.stop),
    "session/list": Verb(shapes.ListSessions, sessions.list_sessions),
    "session/delete": Verb(shapes.ForSession, sessions.delete),
    "session/prompt": Verb(shapes.Prompt, turns.prompt),
    "session/cancel": Verb(shapes.ForSession, turns.cancel),
    "session/update": Verb(shapes.Told, turns.tell),
    "session/event": Verb(shapes.Told, turns.tell),
    "session/set_mode": Verb(shapes.SetMode, options.set_mode),
    "session/set_config_option": Verb(shapes.SetOption, options.set_config_option),
    "$/cancel_request": Verb(shapes.CancelRequest, turns.cancel_request),
}
