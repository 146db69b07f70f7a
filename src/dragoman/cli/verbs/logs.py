"""`dragoman logs [-f]`: the newest lines of the daemon's log, and those to come."""

import os
import sys

from dragoman.client.problems import ConnectionGone
from dragoman.engine.faults import BadInput
from dragoman.settings import places

from .. import reach, say
from ..parse import Args
from ..places import find, tell

_CHUNK = 65536


def run(args: Args) -> int:
    """Print lines; with `-f` stay, and let the daemon tell what it logs."""
    if not args.follow:
        for line in newest(log_file(args), args.lines):
            _print(line)
        return 0
    with reach.daemon(args) as host:
        path = log_file(args)
        host.call("logs/subscribe")  # before the file is read: nothing is missed
        shown = newest(path, args.lines)
        for line in shown:
            _print(line)
        sys.stdout.flush()
        known = set(shown)
        try:
            for method, params in host.notices(reader=say.reader()):
                line = line_of(params) if method == "logs/event" else ""
                if line and line not in known:
                    known.clear()  # only the lines around the beginning can come twice
                    _print(line)
                    sys.stdout.flush()
        except ConnectionGone as gone:
            say.err(f"dragoman: {gone}")
    return 1


def log_file(args: Args) -> str:
    """Where the daemon writes its log. A configuration that cannot be read is told, no obstacle."""
    loaded = tell(args.config_dir, "The log is looked for where it is by default.")
    chosen = loaded.settings.log.file if loaded else ""
    return places.log_file(chosen, find(args.config_dir))


def newest(path: str, count: int) -> list[str]:
    """The last lines of a file, read from its end."""
    if count <= 0:
        return []
    try:
        with open(path, "rb") as file:
            at = file.seek(0, os.SEEK_END)
            data = b""
            while at > 0 and data.count(b"\n") <= count:
                step = min(_CHUNK, at)
                at = file.seek(at - step)
                data = file.read(step) + data
    except FileNotFoundError:
        raise BadInput(
            f"There is no log at {path}.", "The daemon writes it: dragoman daemon --background"
        ) from None
    except OSError as problem:
        raise BadInput(f"The log {path} cannot be read: {problem.strerror}.") from None
    return data.decode("utf-8", "replace").splitlines()[-count:]


def line_of(event: reach.Row) -> str:
    """A line as the log file has it, from what the daemon tells."""
    from dragoman.observe.log import word

    level = {"WARN": "warning"}.get(event["severity_text"], event["severity_text"].lower())
    words = [event["@timestamp"], level, event["event"]["category"], word(event["message"])]
    words += (f"{name}={word(str(value))}" for name, value in event["attributes"].items())
    return " ".join(words)


def _print(line: str) -> None:
    words = line.split(" ", 2)
    colour = {"error": "red", "warning": "yellow", "debug": "dim"}.get(
        words[1] if len(words) > 1 else ""
    )
    text = say.clean(line)
    say.out(say.style(text, colour) if colour else text)
