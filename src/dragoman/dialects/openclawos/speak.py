"""What the kernel sends: responses, events and stream chunks, in ASCII.

ASCII because clients decode each chunk of the socket by itself: a character cut in two by a read
would be lost on their side.
"""

from itertools import count
from os import urandom
from typing import Any

from dragoman.wire.codec import ascii_encode

EMPTY_ID = b'""'


class Voice:
    """Makes messages. Ids are a random word of this process and a number: unique and cheap."""

    __slots__ = (
        "_beat", "_beats", "_chunk", "_event", "_failure", "_next", "_success", "_word", "number",
    )  # fmt: skip

    def __init__(self, word: str = "") -> None:
        self._word = word or urandom(6).hex()
        self._next = self.number = count(1).__next__
        head = b'{"id":"' + self._word.encode() + b'-%d","type":"'
        answer = head + b'response","timestamp":%d,"requestId":%b,"success":'
        self._success = answer + b'true,"result":%b}'
        self._failure = answer + b'false,"error":%b}'
        beat = b'true,"result":{"ok":true,"serverTime":%d}}'
        # The time is filled in once for all heartbeats of a millisecond, the numbers for each.
        self._beats = (0, b"")
        self._beat = (answer + beat).replace(b"-%d", b"-%%d").replace(b"%b", b"%%b")
        self._event = head + b'event","timestamp":%d,"event":%b,"payload":%b}'
        self._chunk = head + b'stream","timestamp":%d,"requestId":%b,"chunk":%b,"done":%b}'

    def new_id(self, kind: str) -> str:
        """An id for something else than a message: an event's `eventId`, a dispatch."""
        return f"{kind}-{self._word}-{self._next()}"

    def beats(self, now: int) -> bytes:
        """The answer to a heartbeat, to be formatted with a `number()` and the encoded id."""
        if self._beats[0] != now:
            self._beats = (now, self._beat % (now, now))
        return self._beats[1]

    def success(self, now: int, request_id: object, result: object) -> bytes:
        return self._success % (self._next(), now, request_id, ascii_encode(result))

    def failure(self, now: int, request_id: Any, error: dict[str, Any]) -> bytes:
        return self._failure % (self._next(), now, request_id, ascii_encode(error))

    def event(self, now: int, name: str, payload: dict[str, Any]) -> bytes:
        return self._event % (self._next(), now, ascii_encode(name), ascii_encode(payload))

    def chunk(self, now: int, request_id: object, chunk: object, done: bool) -> bytes:
        told = b"true" if done else b"false"
        return self._chunk % (self._next(), now, request_id, ascii_encode(chunk), told)
