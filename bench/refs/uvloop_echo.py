"""uvloop's floor: sends back what it reads. Usage: uvloop_echo.py PATH"""

import asyncio
import sys

import uvloop


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.write(data)


async def main() -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, sys.argv[1], backlog=4096)
    await server.serve_forever()


uvloop.run(main())
