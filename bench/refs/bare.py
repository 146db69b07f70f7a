"""The least that answers lines in Python: asyncio and msgspec. Usage: [PATH]; else on stdio."""

import asyncio
import os
import sys

import msgspec

DECODE, ENCODE = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


class Answers(asyncio.Protocol):
    rest = b""
    write = None

    def connection_made(self, transport) -> None:
        if self.write is None:
            self.write = transport.write

    def data_received(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        said = [ENCODE({"jsonrpc": "2.0", "id": DECODE(line).get("id")}) for line in lines]
        if said:
            self.write(b"\n".join(said) + b"\n")  # type: ignore[misc]

    def connection_lost(self, error) -> None:
        self.ended.set()  # type: ignore[attr-defined]


async def main() -> None:
    loop = asyncio.get_running_loop()
    Answers.ended = asyncio.Event()  # type: ignore[attr-defined]
    if len(sys.argv) > 1:
        await loop.create_unix_server(Answers, sys.argv[1], backlog=4096)
        await asyncio.Event().wait()
    else:
        answers = Answers()
        answers.write = lambda data: os.write(1, data)
        await loop.connect_read_pipe(lambda: answers, sys.stdin)
        await answers.ended.wait()  # type: ignore[attr-defined]


asyncio.run(main())
