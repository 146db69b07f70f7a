"""`dragoman tap [SESSION]`: the wire lines of all other connections, side by side."""

import os
import sys

from dragoman import TYPE_CHECKING
from dragoman.client.problems import ConnectionGone
from dragoman.dialects.descriptor import REGISTRY
from dragoman.engine.faults import BadInput

from .. import reach, say
from ..parse import Args
from ..times import clock

if TYPE_CHECKING:
    from typing import Any, TextIO

_COLOURS = ("cyan", "magenta", "green", "blue", "yellow")


def run(args: Args) -> int:
    """Show lines until interrupted."""
    if args.dialect and REGISTRY.find(args.dialect) is None:
        names = ", ".join(one.name for one in REGISTRY.all())
        raise BadInput(f"There is no dialect {args.dialect!r}.", f"Known: {names}.")
    record = _recording(args.record)
    try:
        with reach.daemon(args) as host:
            params = {}
            if args.session:
                params["session_id"] = reach.session_id(host, args.session)
            host.call("dragoman/tap", params)
            if not args.json:
                say.err(say.style("listening; Ctrl-C ends", "dim", stream=sys.stderr))
            colours: dict[str, str] = {}
            for method, row in host.notices(reader=say.reader()):
                if method != "dragoman/wire" or args.dialect not in (None, row["dialect"]):
                    continue
                if record is not None:
                    _write(record, row)
                _show(args, row, colours)
    except ConnectionGone as gone:
        say.err(f"dragoman: {gone}")
        return 1
    finally:
        if record is not None:
            record.close()
    return 0


def _recording(path: str | None) -> "TextIO | None":
    if path is None:
        return None
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        return open(made, "w", encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"{path} cannot be written: {problem.strerror}.") from None


def _write(file: "TextIO", row: "dict[str, Any]") -> None:
    from json import dumps

    file.write(dumps(row, ensure_ascii=False) + "\n")
    file.flush()


def _show(args: Args, row: "dict[str, Any]", colours: "dict[str, str]") -> None:
    if args.json:
        say.plain_json(row, indent=None)
    else:
        if row.get("lost"):
            say.out(
                say.style(f"({say.many(row['lost'], 'line was', 'lines were')} skipped)", "dim")
            )
        name = row["connection"]
        colour = colours.setdefault(name, _COLOURS[len(colours) % len(_COLOURS)])
        arrow = "→" if row["direction"] == "in" else "←"
        head = f"{clock(row['at'])}.{row['at'] % 1000:03d} {name:<14} {arrow}"
        say.out(f"{say.style(head, colour)} {say.clean(row['line'])}")
    sys.stdout.flush()
