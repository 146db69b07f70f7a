"""Joins a watch of the engine to an HTTP stream."""

from dragoman.engine.hub import Watch

from .outlet import Outlet

_MOST_HELD = 1_000  # pieces that may wait between the watch and the first byte of the answer


class Feed:
    """What a watch delivers, kept until the stream has begun and then written to it."""

    __slots__ = ("_held", "_outlet", "_waiting", "_watch")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._outlet: Outlet | None = None
        self._watch: Watch | None = None
        self._waiting = False

    @property
    def paused(self) -> bool:
        if self._outlet is None:
            return len(self._held) > _MOST_HELD
        if not self._outlet.paused:
            return False
        if not self._waiting:
            self._waiting = True
            self._outlet.on_resume(self._resumed)
        return True

    def deliver(self, said: bytes) -> None:
        if self._outlet is None:
            self._held.append(said)
        else:
            self._outlet.write(said)

    def join(self, outlet: Outlet, watch: Watch) -> None:
        """The stream has begun."""
        self._outlet = outlet
        self._watch = watch
        held, self._held = self._held, []
        for said in held:
            outlet.write(said)
        outlet.on_close.append(watch.close)
        watch.resume()

    def _resumed(self) -> None:
        self._waiting = False
        if self._watch is not None:
            self._watch.resume()
