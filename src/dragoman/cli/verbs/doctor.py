"""`dragoman doctor`: looks the installation over. Exit code 1 when something needs repair."""

from .. import say
from ..places import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "error": ("ERROR", "red")}


def _attacked(where: "Any") -> "list[Any]":
    from dragoman.host.attacking import attack
    from dragoman.settings.load import load

    return list(attack(load(where.config_file).settings))


def _beside(args: "Any") -> "list[Any]":
    """What only a running daemon knows: its apps and servers."""
    from dragoman.client.problems import NotRunning
    from dragoman.host.doctor import Row

    from ..reach import daemon

    try:
        with daemon(args) as host:
            found = host.call("doctor/run")["results"]
    except NotRunning:
        return []
    return [
        Row(one["severity"], one["category"], one["message"])
        for one in found
        if one["category"] in ("apps", "mcp")
    ]


def run(args: "Any") -> int:
    """Print one row per finding, each with its way out."""
    from dragoman.host.doctor import examine
    from dragoman.observe.redact import scrub

    where = find(args.config_dir)
    rows = _attacked(where) if args.attack else [*examine(where), *_beside(args)]
    counts = {name: sum(1 for row in rows if row.severity == name) for name in _MARKS}
    if args.json:
        shown = [
            {
                "severity": row.severity,
                "category": row.category,
                "message": scrub(row.message),
                "fix": scrub(row.fix),
            }
            for row in rows
        ]
        say.plain_json({"rows": shown, "summary": counts})
    else:
        for row in rows:
            mark, colour = _MARKS[row.severity]
            message = say.clean(scrub(row.message))
            say.out(f"{say.style(f'{mark:<6}', colour)} {row.category:<14} {message}")
            if row.fix:
                say.out(f"{'':<6} {'':<14} {say.style('→ ' + say.clean(scrub(row.fix)), 'bold')}")
        say.out(f"{counts['ok']} ok, {counts['warn']} to note, {counts['error']} to repair")
    return 1 if counts["error"] else 0
