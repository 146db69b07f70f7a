"""`sessions list`, `sessions show`, and `sessions export` as JSON, Markdown or HTML."""

import os
import sys

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import BadInput

from ... import reach, say
from ...parse import Args
from ...screen import brief, called, what, who
from ...times import ago, span, stamp

if TYPE_CHECKING:
    from typing import Any


def list(args: Args) -> int:
    """Sessions, newest first."""
    query: dict[str, Any] = {"limit": min(args.limit + 1, 1_000)}
    if args.status:
        query["status"] = [args.status]
    if not args.archived:
        query["archived"] = False
    with reach.host(args) as host:
        found: Any = []
        more = False
        for row in reach.sessions(host, **query):
            if len(found) >= args.limit:
                more = True
                break
            found.append(row)
        names = {} if args.json else {row["id"]: _begun_by(host, row) for row in found}
    if say.as_json(args, {"sessions": found}):
        return 0
    fleet = any(row.get("node") for row in found)
    room = 60 if say.columns() else sys.maxsize
    rows = [
        (
            _id(row["id"]),
            *((row.get("node", ""),) if fleet else ()),
            _status(row),
            brief(called(row), room),
            row["agent"],
            names[row["id"]],
            row["turns"],
            f"{row['cost']:.4f}" if row["cost"] else "",
            ago(row["updated_at"]),
        )
        for row in found
    ]
    node = ("node",) if fleet else ()
    headers = ("session", *node, "status", "title", "agent", "from", "turns", "$", "changed")
    spare = ("from", "turns", "$", "agent", *node, "changed")
    say.table(headers, rows, spare=spare, empty="no sessions")
    if more:
        say.err(f"only the newest {args.limit} are shown; more: dragoman sessions --limit N")
    return 0


def _status(row: "dict[str, Any]") -> str:
    if row.get("waiting"):
        return str(row["waiting"])
    return "failed" if row["error"] and row["status"] == "idle" else str(row["status"])


def _id(whole: str) -> str:
    """An id as people type it: its beginning on a terminal, all of it in a pipe."""
    return whole[:8] if sys.stdout.isatty() else whole


def _begun_by(host: "Any", row: "dict[str, Any]") -> str:
    """Who began a session, by the client's own name."""
    from dragoman.engine.faults import Fault

    try:
        page = host.call("dragoman/history", {"session_id": row["id"], "limit": 1})["events"]
    except Fault:  # deleted meanwhile, or its history is damaged: the list goes on
        page = []
    by = page[0]["event"].get("by") if page else None
    return say.clean((by or {}).get("name") or row["origin"])


def show(args: Args) -> int:
    """One session: what it is, who is attached, what waits."""
    found = reach.of_session(args, "session")
    if say.as_json(args, found):
        return 0
    info = found["session"]
    say.out(say.style(brief(called(info) or info["id"]), "bold"))
    for name, value in _pairs(found, info):
        if value not in ("", None):
            say.out(f"  {name:<10} {value}")
    for ask in found["asks"]:
        say.out(say.style(f"  ? {what(ask)}", "yellow"))
        say.out(f"    dragoman approve {ask['id']}")
    for entry in found["plan"]:
        mark = {"completed": "x", "in_progress": "~"}.get(entry.get("status", ""), " ")
        say.out(f"  [{mark}] {brief(entry['content'])}")
    return 0


def _pairs(found: "dict[str, Any]", info: "dict[str, Any]") -> "Any":
    usage = info["usage"]
    yield "id", info["id"]
    queued = f", {found['queued']} queued" if found["queued"] else ""
    yield "status", info["status"] + queued + (", archived" if info["archived"] else "")
    yield "error", say.clean(info["error"])
    yield "agent", f"{info['agent']}, {info['model']}, {info['mode']}"
    yield "reasoning", info["reasoning"]
    yield "directory", say.clean(info["cwd"])
    yield "opened", f"{stamp(info['created_at'])} from {info['origin'] or 'the host'}"
    yield "parent", info["parent"]
    yield (
        "turns",
        f"{info['turns']} in {span(info['active_ms'])}, {say.many(info['messages'], 'message')}",
    )
    cost = f", ${info['cost']:.4f}" if info["cost"] else ""
    yield "tokens", f"{usage['input']} in, {usage['output']} out{cost}"
    yield "attached", ", ".join(who(one, "") for one in found["present"])
    yield "events", f"1 to {info['last_seq']}"


def export(args: Args) -> int:
    """Write the session to stdout or a file of our user's own."""
    with reach.host(args) as host:
        session = reach.session_id(host, args.session)
        info = host.call("dragoman/session", {"session_id": session})["session"]
        events = [*reach.history(host, session)]
    from dragoman.markup.story import written

    text = written(args.format, info, events)
    if not args.output or args.output == "-":
        sys.stdout.write(text)
        return 0
    try:
        made = os.open(args.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(made, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise BadInput(f"{args.output} cannot be written: {problem.strerror}.") from None
    if args.json:
        say.plain_json({"session": session, "file": args.output, "events": len(events)})
    else:
        say.err(f"{say.many(len(events), 'event')} written to {args.output}")
    return 0
