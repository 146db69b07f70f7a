"""`dragoman mcp list|login`: MCP servers, and signing in to one with a browser."""

from .. import say
from ..parse import Args
from ..places import warn


def run(args: Args) -> int:
    """Show the servers, or sign in to one."""
    from dragoman.cli.local import mcp_login

    warn(args.config_dir)
    if args.sub == "login":
        tools = mcp_login.login(args.config_dir, args.name, _show)
        what = "tool" if tools == 1 else "tools"
        text = f"signed in to {say.clean(args.name)}: {tools} {what}"
        return say.result(args, {"server": args.name, "tools": tools}, text)
    found = mcp_login.servers(args.config_dir)
    if args.json:
        rows = [{"name": n, "where": where, "enabled": on} for n, where, on in found]
        say.plain_json({"servers": rows})
        return 0
    shown = [(name, where, "" if on else "off") for name, where, on in found]
    say.table(("server", "where", ""), shown, empty="no MCP servers are configured")
    return 0


def _show(address: str) -> None:
    say.err(f"Open this address in a browser and sign in:\n{address}")
