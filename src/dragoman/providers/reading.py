"""From an answer's bytes to parts: what came in one read becomes as few parts as can be. No I/O."""

import re
import time
from collections.abc import Sequence

import msgspec

from dragoman.engine.ports import ModelCallArgs, ModelPart, ModelText, ModelThought
from dragoman.holding import Holder

from .sse import EventParser

_LOST = b"\\ufffd"
_HALVES = (  # escapes that JSON allows and no character has; whole pairs are passed over
    rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<high>\\u[dD][89abAB]..)|(?P<low>\\u[dD][c-fC-F]..)"
)


class PartReader(Holder):
    """Turns the events of one answer into parts. No I/O."""

    _provider: str
    _secret: str = ""
    finished: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._provider!r})"  # no secret in any log

    def take(self, data: bytes) -> Sequence[ModelPart]:
        """The parts of one event. Raises ProviderFailed, msgspec.DecodeError."""
        raise NotImplementedError

    def end(self) -> Sequence[ModelPart]:
        """The parts that are due when the stream ends; sets `finished` when it was complete."""
        return ()


class Silent(Exception):
    """A stream that moves says nothing."""


class Reading(Holder):
    """One answer on its way: bytes are fed from the socket's read, parts are taken when woken.

    What is wrong with the bytes is raised when the parts before it were taken, so that nothing
    that was said is lost. A stream that gives only signs of life for `silence` seconds is over.
    """

    _reader: PartReader
    _silence: float
    _parser: EventParser = msgspec.field(default_factory=EventParser)
    _heard: float = msgspec.field(default_factory=lambda: time.monotonic())
    _parts: list[ModelPart] = []
    _pieces: list[str] = []  # texts that become one part
    _key: object = None  # of what they are: ModelText, ModelThought, or a call's id
    _failure: Exception | None = None
    _first: bytes = b""  # the escape of half a character that the event before ended with

    def feed(self, data: bytes) -> None:
        """Bytes, in any cut."""
        if self._failure is not None:
            return
        take, pieces = self._take, self._pieces
        try:
            for event in self._parser.feed(data):
                for part in take(event):
                    if type(part) is ModelText and self._key is ModelText:  # nearly all of them
                        pieces.append(part.text)
                    else:
                        self._add(part)
        except Exception as error:  # raised where the parts are taken
            self._failure = error
        now = time.monotonic()
        if self._parts or pieces:
            self._heard = now
        elif now - self._heard > self._silence and self._failure is None:
            self._failure = Silent(f"nothing but signs of life for {self._silence:g} s")

    def take(self) -> list[ModelPart]:
        """The parts so far. Raises what was wrong, when there are none."""
        self._flush()
        parts = self._parts
        if not parts and self._failure is not None:
            raise self._failure
        self._parts = []
        return parts

    def end(self) -> None:
        """No more bytes will come."""
        if self._failure is not None:
            return
        try:
            for event in self._parser.flush():
                for part in self._take(event):
                    self._add(part)
            for part in self._reader.end():
                self._add(part)
        except Exception as error:  # raised where the parts are taken
            self._failure = error

    def _take(self, event: bytes) -> Sequence[ModelPart]:
        """The parts of one event, also of one that a server cut in the middle of a character."""
        try:
            return self._reader.take(event)
        except (msgspec.DecodeError, UnicodeDecodeError):
            whole = self._whole(event)
            if whole == event:
                raise
            return self._reader.take(whole)

    def _whole(self, event: bytes) -> bytes:
        """The event with what is half a character put together with its half, or replaced."""
        first, self._first = self._first, b""

        def mended(match: "re.Match[bytes]") -> bytes:
            if match["low"]:
                return first + match["low"] if first else _LOST
            if not match["high"]:
                return match[0]
            if event[match.end() : match.end() + 1] != b'"':
                return _LOST
            self._first = match["high"]  # its other half comes with the next event
            return b""

        text = event.decode("utf-8", "replace").encode()
        return re.sub(_HALVES, mended, text)

    @property
    def broken(self) -> bool:
        """Whether the rest cannot be read."""
        return self._failure is not None

    def _add(self, part: ModelPart) -> None:
        key: object = None
        text = ""
        if type(part) is ModelText:
            key, text = ModelText, part.text
        elif type(part) is ModelThought and not part.signature:
            key, text = ModelThought, part.text
        elif type(part) is ModelCallArgs:
            key, text = part.id, part.fragment
        if key is None or key != self._key:
            self._flush()
        if key is None:
            self._parts.append(part)
        else:
            self._key = key
            self._pieces.append(text)

    def _flush(self) -> None:
        pieces, key = self._pieces, self._key
        if pieces:
            text = pieces[0] if len(pieces) == 1 else "".join(pieces)
            pieces.clear()
            self._parts.append(
                ModelText(text)
                if key is ModelText
                else ModelThought(text)
                if key is ModelThought
                else ModelCallArgs(str(key), text)
            )
        self._key = None
