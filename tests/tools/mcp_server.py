"""A small MCP server for tests: `python mcp_server.py [stdio|stuck|http PORT|sse PORT]`."""

import asyncio
import signal
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("test", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("this goes to standard error", file=sys.stderr)
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


async def wait() -> None:
    """Never come back, and let others go on."""
    await asyncio.Event().wait()


async def hang() -> None:
    """Never come back, and do nothing else either."""
    signal.pause()


if __name__ == "__main__":
    if sys.argv[1:2] == ["stuck"]:
        server.add_tool(wait)
        server.add_tool(hang)
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    elif sys.argv[1:2] == ["sse"]:
        server.run("sse", port=int(sys.argv[2]))
    else:
        server.run()
