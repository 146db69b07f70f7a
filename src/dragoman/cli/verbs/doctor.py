"""`dragoman doctor`: looks the installation over. Exit code 1 when something needs repair."""

from dragoman import TYPE_CHECKING

from .. import reach, say
from ..parse import Args
from ..places import find

if TYPE_CHECKING:
    from typing import Any

_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "error": ("ERROR", "red")}


def _attacked(where: "Any") -> "list[Any]":
    from dragoman.host.attacking import attack
    from dragoman.leaving import leaving_in_order
    from dragoman.settings.load import load

    with leaving_in_order():
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
    except ConnectionGone as fault:
        # Who asked the doctor is not sent to the doctor.
        fix = "See: dragoman logs" if "doctor" in fault.hint else fault.hint
        silent = Row("error", "daemon", fault.message, fix)
        rows = [row for row in examine(where) if (row.severity, row.category) != ("ok", "daemon")]
        return [silent, *rows, *beside()]
    except Fault:  # none runs here, or one that cannot say: look from this shell
        return [*examine(where), *beside()]
    runs = Row("ok", "daemon", f"process {pid} listens at {daemon.path}; all this is as it sees it")
    rows = [row for row in rows if (row.severity, row.category) != ("ok", "daemon")]
    return [runs, *rows, *beside()]


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
