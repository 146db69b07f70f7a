"""What was said on every wire while the fire burned: the only thing the checker reads of it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Message = dict[str, Any]


class Frame(NamedTuple):
    """One message on one connection, in the order in which it passed."""

    wire: str  # the connection's name: dialect and number
    out: bool  # from the client to the daemon
    message: Message


class Promise(NamedTuple):
    """A prompt that was sent: its mark stands in the text, and is found wherever it went."""

    mark: str
    session: str
    wire: str
    id: str  # of the request that carried it
    kind: str  # prompt, queue (acknowledged before it runs), steer


class Deed(NamedTuple):
    """Something else that was asked for and counts once it is acknowledged."""

    kind: str  # retract, answer, undo
    session: str
    wire: str
    id: str  # of the request
    about: str = ""  # the mark of a prompt, or a question
    verdict: str = ""


@dataclass
class Wire:
    """One connection's life as the checker sees it."""

    name: str
    dialect: str
    session: str = ""  # the session it follows
    since: int | None = None  # the place that it came with; None: it began with what came then
    whole: bool = False  # it was told the whole history, and stayed
    cut: bool = False  # it ended before the fire did


@dataclass
class Trace:
    frames: list[Frame] = field(default_factory=list)
    wires: dict[str, Wire] = field(default_factory=dict)
    promises: list[Promise] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    lives: int = 1  # how often the daemon was started

    _wires: dict[str, list[Frame]] = field(default_factory=dict)
    _sorted: int = 0  # frames that are in `_wires`

    def of(self, wire: str) -> list[Frame]:
        """The frames of one connection; sorted once, since the checker asks very often."""
        if self._sorted != len(self.frames):
            self._wires = {}
            for frame in self.frames:
                self._wires.setdefault(frame.wire, []).append(frame)
            self._sorted = len(self.frames)
        return self._wires.get(wire, [])


@dataclass
class Kept:
    """One session as the public face of every dialect shows it after the fire."""

    events: list[Message]  # `dragoman/history`
    said: dict[str, list[str]]  # dialect → what users and the agent said, in order
    status: str = "idle"
    told: list[Message] = field(default_factory=list)  # to a subscriber who comes at the end


@dataclass
class Ashes:
    """What is left when everything is quiet."""

    sessions: dict[str, Kept]
    ran: list[str]  # the marks that tools left on the disk
    sockets: tuple[int, int] = (0, 0)  # that the daemon had at its start, and when all had left
