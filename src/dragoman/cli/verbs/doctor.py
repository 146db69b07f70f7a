"""`dragoman doctor`: looks the installation over. Exit code 1 when something needs repair."""

import re

from dragoman import TYPE_CHECKING

from .. import reach, say
from ..parse import Args
from ..places import find

if TYPE_CHECKING:
    from typing import Any

_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "error": ("ERROR", "red")}


def _attacked(where: "Any") -> "list[Any]":
    from dragoman.host.attacking import attack
    from dragoman.settings.load import load

    return list(attack(load(where.config_file).settings))


def _examined(args: Args, where: "Any") -> "list[Any]":
    """As the daemon sees it when one runs: its environment and its apps count, not the shell's."""
    from dragoman.client.problems import ConnectionGone
    from dragoman.engine.faults import Fault
    from dragoman.host.doctor import Row, beside, examine

    try:
        with reach.daemon(args) as daemon:
            rows = [Row(**row) for row in daemon.call("dragoman/doctor")["rows"]]
            pid = daemon.call("dragoman/status")["pid"]
    except ConnectionGone as silent:
        return [*(_unanswered(row, silent.message) for row in examine(where)), *beside()]
    except Fault:  # none runs here, or one that cannot say: look from this shell
        return [*examine(where), *beside()]
    runs = Row("ok", "daemon", f"process {pid} listens at {daemon.path}; all this is as it sees it")
    rows = [row for row in rows if (row.severity, row.category) != ("ok", "daemon")]
    return [runs, *rows, *beside()]


def _unanswered(row: "Any", why: str) -> "Any":
    """The row of a daemon that listens; one that does not answer is to be repaired."""
    found = re.match(r"process (\d+) listens at", row.message)
    if row.category != "daemon" or row.severity != "ok" or not found:
        return row
    fix = (
        f"If it is suspended, let it go on: kill -CONT {found[1]}. Else end it: kill -9 {found[1]}"
    )
    return type(row)("error", "daemon", f"process {found[1]} holds the socket. {why}", fix)


def run(args: Args) -> int:
    """Print one row per finding, each with its way out."""
    from dragoman.observe.redact import scrub

    where = find(args.config_dir)
    rows = _attacked(where) if args.attack else _examined(args, where)
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
