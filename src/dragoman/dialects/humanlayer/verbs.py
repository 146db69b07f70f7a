"""Every method of the protocol: the type of its params and what it does."""

import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.engine.events import Who

from . import shapes
from .desk import Desk
from .faults import Wrong

Run = Callable[[Desk, Who, Any], Awaitable[Any]]
_UPPER_KEY = rb'"[^"\\]*[A-Z][^"\\]*"\s*:'
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_OBJECT = b"{"[0]


class Verb:
    """One method: decodes its params, then runs.

    Its decoder is made, and the module with its function loaded, when it is first called.
    """

    __slots__ = ("_decode", "_run", "_type", "_where")

    def __init__(self, params: type[msgspec.Struct], where: str = "") -> None:
        self._type = params
        self._where = where
        self._decode: Callable[[Any], Any] | None = None
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The function behind `module.name`."""
        if self._run is None:
            module, _, name = self._where.partition(".")
            found: Run = getattr(import_module(f".{module}", __package__), name)
            self._run = found
        return self._run

    def params(self, raw: Raw) -> Any:
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


SUBSCRIBE = Verb(shapes.Subscribe)  # the hearer runs it

VERBS: dict[str, Verb] = {
    "launchSession": Verb(shapes.Launch, "launch.launch"),
    "continueSession": Verb(shapes.Continue, "launch.resume"),
    "interruptSession": Verb(shapes.OfSession, "sessions.interrupt"),
    "listSessions": Verb(shapes.NoParams, "sessions.list_sessions"),
    "getSessionLeaves": Verb(shapes.Leaves, "sessions.leaves"),
    "getSessionState": Verb(shapes.OfSession, "sessions.session_state"),
    "getConversation": Verb(shapes.Conversation, "conversation.conversation"),
    "getSessionSnapshots": Verb(shapes.OfSession, "conversation.snapshots"),
    "updateSessionSettings": Verb(shapes.ChangeSettings, "sessions.change_settings"),
    "updateSessionTitle": Verb(shapes.Title, "sessions.rename"),
    "archiveSession": Verb(shapes.Archive, "sessions.archive"),
    "bulkArchiveSessions": Verb(shapes.BulkArchive, "sessions.archive_many"),
    "getRecentPaths": Verb(shapes.Recent, "sessions.recent_paths"),
    "fetchApprovals": Verb(shapes.OfSession, "approvals.fetch"),
    "sendDecision": Verb(shapes.Decision, "approvals.decide"),
    "createApproval": Verb(shapes.NewApproval, "approvals.create"),
    "getApproval": Verb(shapes.OfApproval, "approvals.get"),
}
"""`health` and `Subscribe` are not here: the hearer answers them itself."""
