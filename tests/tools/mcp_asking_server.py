"""An MCP server for tests that asks the human in the middle of its calls."""

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("test", log_level="ERROR")


class Order(BaseModel):
    count: int
    gift: bool
    note: str = ""


@server.tool()
async def order(ctx: Context) -> str:
    """Ask for an order by a form."""
    answer = await ctx.elicit("What shall it be?", Order)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def sign_in(ctx: Context, url: str) -> str:
    """Send the human to a page."""
    answer = await ctx.elicit_url("Sign in to the shop", url, "e1")
    return answer.action


if __name__ == "__main__":
    server.run()
