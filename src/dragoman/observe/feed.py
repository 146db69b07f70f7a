"""The newest log lines in memory, and whoever follows them."""

import marshal
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from . import log

KEPT = 2_000


class LogLine(msgspec.Struct, frozen=True):
    """One log line. Secrets are hidden already."""

    number: int
    time: str
    level: str
    area: str
    event: str
    pairs: dict[str, str]


class Feed:
    """Takes every line that is logged from its beginning on."""

    def __init__(self) -> None:
        self._rows: deque[bytes] = deque(maxlen=KEPT)  # packed: a quarter of the objects
        self._followers: list[Callable[[LogLine], None]] = []
        self._number = 0
        self._stop = log.listen(self.take)

    def take(self, time: str, level: str, area: str, event: str, pairs: dict[str, str]) -> None:
        """Keep a line of the log, and show it to those who follow."""
        self._number += 1
        row = (self._number, time, level, area, event, pairs)
        self._rows.append(marshal.dumps(row))
        for told in tuple(self._followers):
            told(LogLine(*row))

    def newest(self) -> Iterator[LogLine]:
        """What is kept, the newest line first."""
        return (LogLine(*marshal.loads(row)) for row in reversed(self._rows))

    def follow(self, told: Callable[[LogLine], None]) -> Callable[[], None]:
        """Be called with every new line; returns how to stop."""
        self._followers.append(told)

        def stop() -> None:
            if told in self._followers:
                self._followers.remove(told)

        return stop

    def close(self) -> None:
        """Take no more lines."""
        self._stop()
