"""Where a dialect's own clients look for its HTTP: loopback, its port, no tokens.

The originals ask nobody who he is. Here the gateway's rules stay but for that one: only programs of
the host's owner are let in, and never a command that an agent runs; pages of other origins are not,
but for those that its clients bring along: no browser has them.
"""

from typing import TYPE_CHECKING

from .auth import Auth
from .http import Refusal, Request
from .origin import Origins
from .server import Connection

if TYPE_CHECKING:
    from dragoman.dialects.descriptor import RestPlace

    from .gate import Gate

HOST = "127.0.0.1"


class Native:
    """Who may ask what on that port (`outlet.Doorkeeper`); the gateway answers."""

    def __init__(self, gate: "Gate", rest: "RestPlace") -> None:
        self._gate = gate
        self._path = rest.path
        self._below = tuple(rest.path.strip("/").split("/"))
        self._auth = Auth(gate.auth.shelf, required=False, cookie="")
        self._own = rest.origins
        self.follow(gate.settings.allowed_origins)

    def follow(self, allowed: tuple[str, ...]) -> None:
        """Take up from which pages others are let in now."""
        self._origins = Origins(HOST, (*allowed, *self._own))

    def accept(self) -> Connection:
        return Connection(self._gate, False, self)

    def limit(self, request: Request) -> int:
        if request.parts[: len(self._below)] != self._below:
            raise Refusal(404, "not_found", f"Only {self._path} is served here.")
        return self._gate.limit(request, self._origins)

    async def admit(self, request: Request) -> None:
        if request.method != "OPTIONS":
            await self._auth.identify(request)
