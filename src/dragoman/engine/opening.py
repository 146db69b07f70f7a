"""What a new session is to be, and the time it lives in."""

from time import monotonic, time_ns

import msgspec

from .events import Mode
from .traits import Trait


class WallClock:
    """The real time."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time_ns() // 1_000_000

    def monotonic(self) -> float:
        return monotonic()


class OpenSpec(msgspec.Struct, frozen=True):
    """What a new session is to be. Everything has a default."""

    agent: str = ""  # "": the default agent
    cwd: str = ""  # "": where the host was started
    id: str = ""  # "": a new UUID
    model: str = ""
    mode: Mode | None = None
    title: str = ""
    interactive: bool = True  # False: ends with its first turn
    reasoning: str = ""
    parent: str | None = None
    check_cwd: bool = True
    traits: tuple[Trait, ...] = ()
