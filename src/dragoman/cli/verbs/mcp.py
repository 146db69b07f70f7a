"""`dragoman mcp list|login`: MCP servers, and signing in to one with a browser."""

from dragoman.client.problems import NotRunning

from .. import reach, say
from ..parse import Args
from ..places import warn


def run(args: Args) -> int:
    """Show the servers, or sign in to one."""
    from dragoman.cli.local import mcp_login

    warn(args.config_dir)
    if args.sub == "login":
        tools = mcp_login.login(args.config_dir, args.name, _show)
        text = f"signed in to {say.clean(args.name)}: {say.many(tools, 'tool')}"
        return say.result(args, {"server": args.name, "tools": tools}, text)
    found = mcp_login.servers(args.config_dir)
    heard = _known(args)
    known = heard or {}
    if args.json:
        rows = [
            {"name": name, "where": where, "enabled": on, **known.get(name, {})}
            for name, where, on in found
        ]
        say.plain_json({"servers": rows})
        return 0
    none = "no daemon runs" if heard is None else ""
    shown = [(name, _state(known.get(name), on) or none, where) for name, where, on in found]
    headers = ("server", "state", "where")
    say.table(headers, shown, spare=("where",), empty="no MCP servers are configured")
    for name, one in known.items():
        if one["problem"]:
            say.err(f"{name}: {say.clean(one['problem'])}")
    return 0


def _known(args: Args) -> "dict[str, reach.Row] | None":
    """What the running daemon knows of them; None when none runs."""
    try:
        rows = reach.of_daemon(args, "status").get("mcp") or ()
    except NotRunning:
        return None
    return {row["name"]: row for row in rows}


def _state(known: "reach.Row | None", on: bool) -> str:
    if known is None or not on:
        return "" if on else "off"
    tools = f", {say.many(known['tools'], 'tool')}" if known["tools"] else ""
    return f"{known['state']}{tools}"


def _show(address: str) -> None:
    say.err(f"Open this address in a browser and sign in:\n{address}")
