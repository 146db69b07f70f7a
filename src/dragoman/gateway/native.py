"""Where a dialect's own clients look for its HTTP: loopback, its port, no tokens.

The originals ask nobody who he is. Here the gateway's rules stay but for that one: only programs of
the host's owner are let in, and never a command that an agent runs; pages of other origins are not,
but for those that its clients bring along: no browser has them.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from .auth import Auth
from .http import Answer, Refusal, Request, Response, Stream
from .origin import Origins
from .server import Connection

if TYPE_CHECKING:
    from dragoman.dialects.descriptor import RestPlace

    from .gate import Gate

HOST = "127.0.0.1"


class Native:
    """What a server on that port asks (`outlet.Rules`); the gateway answers."""

    def __init__(self, gate: "Gate", rest: "RestPlace") -> None:
        self._gate = gate
        self._path = rest.path
        self._below = tuple(rest.path.strip("/").split("/"))
        self._auth = Auth(gate.auth.shelf, required=False, cookie="")
        allowed = gate.composed.settings.gateway.allowed_origins
        self._origins = Origins(HOST, (*allowed, *rest.origins))

    def accept(self) -> Connection:
        return Connection(self, self.spawn, False)

    def spawn(self, work: Awaitable[Any]) -> object:
        return self._gate.spawn(work)

    def limit(self, request: Request) -> int:
        if request.parts[: len(self._below)] != self._below:
            raise Refusal(404, "not_found", f"Only {self._path} is served here.")
        return self._gate.limit(request, self._origins)

    async def admit(self, request: Request) -> None:
        if request.method != "OPTIONS":
            await self._auth.identify(request)

    async def answer(self, request: Request) -> Answer:
        return await self._gate.answer(request)

    def dress(self, request: Request | None, response: Response | Stream) -> None:
        self._gate.dress(request, response)

    def is_owner(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        return self._gate.is_owner(peer, here)

    def is_tools(self, peer: tuple[str, int], here: tuple[str, int]) -> bool:
        return self._gate.is_tools(peer, here)

    def joined(self, connection: Connection) -> bool:
        return self._gate.joined(connection)

    def left(self, connection: Connection) -> None:
        self._gate.left(connection)

    def trouble(self, request: Request, problem: BaseException) -> None:
        self._gate.trouble(request, problem)
