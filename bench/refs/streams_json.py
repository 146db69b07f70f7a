"""The usual Python server: asyncio streams and json, one write per answer. Usage: … PATH"""

import asyncio
import json
import sys


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        message = json.loads(line)
        answer = {"jsonrpc": "2.0", "result": {"status": "ok"}, "id": message.get("id")}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_unix_server(serve, sys.argv[1], backlog=4096)
    await server.serve_forever()


asyncio.run(main())
