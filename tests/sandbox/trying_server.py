"""An MCP server whose tool tries to get out of the sandbox."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trials
from mcp.server.mcpserver import MCPServer

server = MCPServer("tries", log_level="ERROR")


@server.tool()
def try_all(given: str) -> str:
    """Try everything."""
    return json.dumps(trials.all_of(json.loads(given)))


if __name__ == "__main__":
    server.run()
