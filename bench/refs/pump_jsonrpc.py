"""Our transport and envelope with one typed verb: what a dialect can reach. Usage: … PATH"""

import asyncio
import sys

import msgspec

from dragoman.transports import unix
from dragoman.transports.loop import run, settle_memory
from dragoman.wire.jsonrpc import Invalid, Reader, Request, Rules, error, reply
from dragoman.wire.link import Link


class Params(msgspec.Struct):
    session_id: str
    cursor: int = 0


class Result(msgspec.Struct, gc=False):
    status: str


_params = msgspec.json.Decoder(Params).decode
_read = Reader(Rules()).read


def health(params: msgspec.Raw) -> Result:
    _params(params)
    return Result("ok")


VERBS = {"session/health": health}


class Demo:
    """Answers `session/health`."""

    max_line = 1 << 20

    def __init__(self, link: Link) -> None:
        self.link = link

    def hear(self, lines: list[bytes]) -> None:
        send = self.link.send
        for message in _read(lines):
            if type(message) is Request:
                verb = VERBS.get(message.method)
                if verb is None:
                    send(error(message.id, -32601, f"Unknown method: {message.method}"))
                else:
                    send(reply(message.id, verb(message.params)))
            elif type(message) is Invalid:
                send(message.reply())

    def overlong(self, size: int) -> None:
        self.link.close()

    def ended(self) -> None:
        self.link.close()

    def lost(self) -> None: ...


async def main() -> None:
    listener = await unix.listen(sys.argv[1], Demo)
    settle_memory()
    await asyncio.get_running_loop().create_future()
    await listener.close()


run(main())
