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


class _Chunk(msgspec.Struct):
    content: _Words


class _Update(msgspec.Struct, rename={"session": "sessionId"}):
    session: str
    update: _Chunk


class _Line(msgspec.Struct):
    params: Raw | UnsetType = UNSET


_line = msgspec.json.Decoder(_Line)
_reached = msgspec.json.Decoder(_Reached)
_update = msgspec.json.Decoder(_Update)


class Places:
    """The places of all sessions of one editor."""

    def __init__(self) -> None:
        self._had: dict[str, Had] = {}

    def note(self, message: bytes) -> bool:
        """Take in a line of the host; True: it is for the relay alone."""
        if message.startswith(_PLACE):
            told = _reached.decode(_line.decode(message).params or b"")
            self._had[told.session] = Had(told.seq, told.texts, told.thoughts)
            return True
        if message.startswith(_UPDATE) and self._had:
            if _TEXT in message:
                self._count(message, thought=False)
            elif _THOUGHT in message:
                self._count(message, thought=True)
        return False

    def _count(self, message: bytes, *, thought: bool) -> None:
        try:
            told = _update.decode(_line.decode(message).params or b"")
        except msgspec.DecodeError:
            return  # a chunk of another kind
        had = self._had.get(told.session)
        if had is None:
            return
        if thought:
            had.thoughts += len(told.update.content.text)
        else:
            had.texts += len(told.update.content.text)

    def forget(self, session: str) -> None:
        self._had.pop(session, None)

    def of(self, session: str) -> dict[str, Any]:
        """What to tell a host that comes back."""
        had = self._had.get(session)
        return {} if had is None else msgspec.structs.asdict(had)
