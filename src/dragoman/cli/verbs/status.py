"""`dragoman status`: what the running daemon does. Exit code 1 when none runs."""

from dragoman.client.problems import NotRunning

from .. import reach, say
from ..parse import Args
from ..times import span


def run(args: Args) -> int:
    """Ask the daemon and print what it says."""
    try:
        found = reach.of_daemon(args, "status")
    except NotRunning:
        if not args.json:
            raise
        say.plain_json({"running": False})
        return 1
    if say.as_json(args, {"running": True, **found}):
        return 0
    title = say.style(f"dragoman {found['version']}", "bold")
    say.out(f"{title}  runs since {span(found['uptime_ms'])}, process {found['pid']}")
    for name, value in _rows(found):
        say.out(f"  {name:<11} {value}")
    for notice in found["notices"]:
        say.warn(notice)
    return 0


def _rows(found: reach.Row) -> "list[tuple[str, str]]":
    sessions, store = found["sessions"], found["store"]
    waiting = found["approvals"]
    # One of the clients is this command.
    others = {name: count - (name == "zeroclaw") for name, count in found["clients"].items()}
    clients = ", ".join(f"{name} {count}" for name, count in others.items() if count)
    rows = [
        ("sessions", f"{sessions['live']} in memory, {sessions['active']} at work"),
        ("approvals", _approvals(waiting)),
        ("clients", clients or "none"),
        ("memory", f"{found['rss_bytes'] / 1e6:.0f} MB"),
        ("store", _store(store, found["data_dir"])),
    ]
    if found.get("fleet"):
        rows.append(("fleet", _fleet(found["fleet"])))
    if found.get("sandbox"):
        rows.append(("sandbox", found["sandbox"]))
    for server in found.get("mcp") or ():
        problem = f": {server['problem']}" if server["problem"] else ""
        tools = f", {say.many(server['tools'], 'tool')}" if server["tools"] else ""
        rows.append((f"mcp {server['name']}", f"{server['state']}{tools}{problem}"))
    if found["gateway"]:
        rows.append(("gateway", str(found["gateway"])))
    rows += [(name, path) for name, path in found["endpoints"].items()]
    return rows


def _fleet(fleet: reach.Row) -> str:
    others = fleet["others"]
    said = f"node {fleet['node']}, {fleet['state']}, "
    said += say.many(others, "other node")
    if fleet["stalled"]:
        return f"{said}: {fleet['stalled']}"
    return f"{said}, degraded: {fleet['degraded']}" if fleet["degraded"] else said


def _approvals(waiting: int | None) -> str:
    if waiting is None:
        return "not known"
    return f"{waiting} waiting: dragoman approvals" if waiting else "none waiting"


def _store(store: reach.Row, data_dir: str) -> str:
    if not store["durable"]:
        return f"NOT kept: {store['problem'] or 'store.path is :memory:'}"
    if store.get("stalled"):
        return f"STALLED: {store['stalled']}"
    return store.get("place") or _unusual(store.get("file", ""), data_dir) or data_dir


def _unusual(file: str, data_dir: str) -> str:
    """The file of sessions where it is not the one that everybody has."""
    return "" if file == f"{data_dir}/sessions.db" else file
