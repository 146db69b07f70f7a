"""Windows named pipes on the proactor loop.

This module is written for Windows and has not been run there.
"""

import asyncio
from typing import Any

from dragoman.wire.link import Opener, Peer

from .pump import BOUND, Pump, Terms


class Listener:
    """A named pipe that accepts connections."""

    def __init__(self, path: str, servers: list[Any]) -> None:
        self.path = path
        self._servers = servers

    def is_lost(self) -> bool:
        """A pipe's name is there as long as the pipe."""
        return False

    async def close(self) -> None:
        """Stop accepting; connections that exist go on."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()


async def listen(path: str, open: Opener, *, bound: int = BOUND) -> Listener:
    """Listen at a name like `\\\\.\\pipe\\dragoman-1a2b`.

    The default security of a pipe lets only its owner, administrators and the system write to it.
    """
    loop = asyncio.get_running_loop()
    serve = getattr(loop, "start_serving_pipe", None)
    if serve is None:
        raise OSError("named pipes need the proactor event loop of Windows")
    terms = Terms(open, Peer("pipe:local", "pipe"), bound=bound)
    return Listener(path, await serve(lambda: Pump(terms), path))
