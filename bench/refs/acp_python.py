"""An agent on the official Python SDK: answers session/list with nothing. Usage: PATH."""

import asyncio
import sys

from acp import Agent
from acp.agent.connection import AgentSideConnection
from acp.schema import InitializeResponse, ListSessionsResponse


class Bench(Agent):
    def on_connect(self, conn) -> None:
        return None

    async def initialize(self, protocol_version, **kwargs):
        return InitializeResponse(protocol_version=1)

    async def list_sessions(self, **kwargs):
        return ListSessionsResponse(sessions=[])


async def main() -> None:
    async def opened(reader, writer) -> None:
        AgentSideConnection(Bench(), writer, reader, listening=True)
        await asyncio.Event().wait()

    server = await asyncio.start_unix_server(opened, sys.argv[1], limit=1 << 24)
    await server.serve_forever()


asyncio.run(main())
