"""Every method of the protocol: the type of its params and what it does.

Published clients trust the order of answers more than their ids, so all of them are serial.
"""

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.holding import Holder
from dragoman.wire.verbs import Verb

from . import shapes
from .faults import Wrong

if TYPE_CHECKING:
    from dragoman.wire.serve import Call
    from dragoman.wire.verbs import Quick

    from .hear import HumanlayerHearer

_UPPER_KEY = rb'"[^"\\]*[A-Z][^"\\]*"\s*:'
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_OBJECT = b"{"[0]


WHERE: list[str] = []  # every `module.name` that is loaded later


def find(where: str) -> Callable[..., Any]:
    """The function behind `module.name`."""
    module, _, name = where.partition(".")
    found: Callable[..., Any] = getattr(import_module(f".{module}", __package__), name)
    return found


def _verb(
    params: type[msgspec.Struct],
    where: str,
    *,
    direct: bool = False,
    quick: "Quick | None" = None,
) -> Verb:
    """A method whose function is `module.name`; the module is loaded when it is first called."""
    run: Callable[..., Any] | None = None
    WHERE.append(where)

    async def later(conn: Any, asked: object) -> object:
        nonlocal run
        if run is None:
            run = find(where)
        return await (run(conn, asked) if direct else run(conn.desk, conn.who, asked))

    read = _Params(params).read
    return Verb(later, order="serial", direct=direct, quick=quick, read=read, takes=params)


class _Params(Holder):
    """Reads the params of a method; its decoder is made when it is first called."""

    _type: type[msgspec.Struct]
    _decode: Callable[[Any], Any] | None = None

    def read(self, raw: Raw) -> Any:
        """The typed params; members match whatever their case. Raises Wrong."""
        if not raw:
            return self._type()
        check_object(raw)
        decode = self._decode
        if decode is None:
            decode = self._decode = msgspec.json.Decoder(self._type).decode
        try:
            if re.search(_UPPER_KEY, raw):
                return decode(self._folded(raw))
            return decode(raw)
        except msgspec.DecodeError as error:
            raise Wrong(f"invalid request: {error}") from None

    def _folded(self, raw: Raw) -> bytes:
        members = _members(raw)
        fields = self._type.__struct_fields__
        known = {
            name.lower() if name.lower() in fields else name: value
            for name, value in members.items()
        }
        return msgspec.json.encode(known)


def check_object(raw: Raw) -> None:
    """Raises Wrong when params are there and no object."""
    if raw and memoryview(raw)[0] != _OBJECT:
        raise Wrong("invalid request: params must be an object")


async def subscribe(call: "Call[HumanlayerHearer]", asked: shapes.Subscribe) -> None:
    await call.conn.subscribe(call, asked)


def health(conn: "HumanlayerHearer", _: None) -> dict[str, str]:
    """The whole way; `Desk.health` has the same bytes in half the time (decision 0073)."""
    return {"status": "ok", "version": conn.desk.version}


def _listed(conn: "HumanlayerHearer") -> bytes | None:
    """The list of sessions when it is known; a look takes twice as long (decision 0073)."""
    return conn.desk.session_rows.line()


VERBS: dict[str, Verb] = {
    "health": Verb(health, order="serial", quick=lambda conn: conn.desk.health, read=check_object),
    "Subscribe": Verb(
        subscribe,
        order="serial",
        direct=True,
        read=_Params(shapes.Subscribe).read,
        takes=shapes.Subscribe,
    ),
    "launchSession": _verb(shapes.Launch, "launch.launch"),
    "continueSession": _verb(shapes.Continue, "launch.resume"),
    "interruptSession": _verb(shapes.OfSession, "sessions.interrupt"),
    "listSessions": _verb(shapes.NoParams, "sessions.list_sessions", direct=True, quick=_listed),
    "getSessionLeaves": _verb(shapes.Leaves, "sessions.leaves", direct=True),
    "getSessionState": _verb(shapes.OfSession, "sessions.session_state"),
    "getConversation": _verb(shapes.Conversation, "conversation.conversation"),
    "getSessionSnapshots": _verb(shapes.OfSession, "conversation.snapshots"),
    "updateSessionSettings": _verb(shapes.ChangeSettings, "sessions.change_settings"),
    "updateSessionTitle": _verb(shapes.Title, "sessions.rename"),
    "archiveSession": _verb(shapes.Archive, "sessions.archive"),
    "bulkArchiveSessions": _verb(shapes.BulkArchive, "sessions.archive_many"),
    "getRecentPaths": _verb(shapes.Recent, "sessions.recent_paths"),
    "fetchApprovals": _verb(shapes.OfSession, "approvals.fetch"),
    "sendDecision": _verb(shapes.Decision, "approvals.decide"),
    "createApproval": _verb(shapes.NewApproval, "approvals.create"),
    "getApproval": _verb(shapes.OfApproval, "approvals.get"),
}
