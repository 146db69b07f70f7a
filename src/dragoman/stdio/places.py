"""How far an editor has come in each of its sessions: what a relay asks for after a loss.

The host tells a relay the place of every kept event that it has sent (`_dragoman/place`), and how
much of a message that is not kept yet it had sent then. The relay counts the words that follow, so
that it is sent all it missed and nothing twice.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

_PLACE = b'{"jsonrpc":"2.0","method":"_dragoman/place",'
_UPDATE = b'{"jsonrpc":"2.0","method":"session/update",'
_TEXT = b'"sessionUpdate":"agent_message_chunk"'
_THOUGHT = b'"sessionUpdate":"agent_thought_chunk"'
_MOST = 4096  # lines that are kept uncounted


_MOST_TRIES = 3  # sends of one request that each ended the connection
_AT_ONCE = 2.0  # seconds in which a lost connection is the request's fault


class Head(msgspec.Struct):
    """What the relay reads of a message."""

    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Open(msgspec.Struct):
    """A request of the editor that has no answer yet."""

    line: bytes
    head: Head
    sent: float = 0.0
    ended: int = 0  # connections in a row that ended at once after they got it
    since: int = -1  # the place of its session when it was first sent

    def lost(self, now: float) -> bool:
        """The connection is lost; True: so often at once that the request is to blame.

        One that a host has worked on for a while is not, however often its hosts go.
        """
        self.ended = self.ended + 1 if now - self.sent < _AT_ONCE else 0
        return self.ended >= _MOST_TRIES


_head = msgspec.json.Decoder(Head)


def read(line: bytes) -> Head | None:
    try:
        return _head.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class ResumePoint(msgspec.Struct):
    """What is needed to resume a session."""

    sessionId: str = ""
    session_id: str = ""
    cwd: str = ""
    mcpServers: Any = None


_point = msgspec.json.Decoder(ResumePoint)


def place_of(raw: Raw | UnsetType) -> ResumePoint:
    """What the parameters, or the result, of a request say about its session."""
    if raw is UNSET or raw == b"null":
        return ResumePoint()
    try:
        return _point.decode(raw)
    except msgspec.DecodeError:
        return ResumePoint()  # the host says what is wrong with it


class Had(msgspec.Struct):
    """What an editor has of a session: all kept events up to `since`, and words after that."""

    since: int
    texts: int = 0  # characters
    thoughts: int = 0


class _Reached(msgspec.Struct, rename={"session": "sessionId"}):
    session: str
    seq: int
    texts: int = 0
    thoughts: int = 0


class _Words(msgspec.Struct):
    text: str = ""


class _Chunk(msgspec.Struct, rename={"kind": "sessionUpdate"}):
    kind: str
    content: _Words


class _Update(msgspec.Struct, rename={"session": "sessionId"}):
    session: str
    update: _Chunk


class _Said(msgspec.Struct):
    params: _Update


class _Place(msgspec.Struct):
    params: _Reached


_place = msgspec.json.Decoder(_Place)
_said = msgspec.json.Decoder(_Said)


class Places:
    """The places of all sessions of one editor."""

    def __init__(self) -> None:
        self._had: dict[str, Had] = {}
        self._since: list[bytes] = []  # chunks since a place was told; few are ever looked at

    def note(self, message: bytes) -> bool:
        """Take in a line of the host; True: it is for the relay alone."""
        if message.startswith(_PLACE):
            told = _place.decode(message).params
            if len(self._had) > 1 or told.session not in self._had:
                self._count()  # of the others
            self._since.clear()
            self._had[told.session] = Had(told.seq, told.texts, told.thoughts)
            return True
        if message.startswith(_UPDATE) and self._had and (_TEXT in message or _THOUGHT in message):
            self._since.append(message)
            if len(self._since) >= _MOST:
                self._count()
        return False

    def since(self, one: Open) -> int:
        """The newest place of a request's session: a prompt that has begun moves it."""
        point = place_of(one.head.params)
        had = self._had.get(point.sessionId or point.session_id)
        return had.since if had is not None else 0

    def _count(self) -> None:
        """Count the words of what came since."""
        lines, self._since = self._since, []
        for line in lines:
            try:
                told = _said.decode(line).params
            except msgspec.DecodeError:
                continue  # a chunk of another kind
            had, chunk = self._had.get(told.session), told.update
            if had is None:
                continue
            if chunk.kind == "agent_thought_chunk":
                had.thoughts += len(chunk.content.text)
            else:
                had.texts += len(chunk.content.text)

    def forget(self, session: str) -> None:
        self._count()
        self._had.pop(session, None)

    def of(self, session: str) -> dict[str, Any]:
        """What to tell a host that comes back."""
        self._count()
        had = self._had.get(session)
        return {} if had is None else msgspec.structs.asdict(had)
