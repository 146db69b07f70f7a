"""`dragoman upgrade-check`: can this version take over what is there? Reads only."""

import os

import dragoman
from dragoman import TYPE_CHECKING
from dragoman.engine.faults import Fault

from .. import say
from ..parse import Args
from ..places import find

if TYPE_CHECKING:
    from dragoman.settings.model import Settings

    from ..local.upgrades import Row


def run(args: Args) -> int:
    """One row per part. Exit code 1 when something has to be done first."""
    from dragoman.host.stores import database_of, file_of

    from ..local.upgrades import examine_data, examine_database, examine_store

    where = find(args.config_dir)
    rows, settings = _configuration(where.config_file)
    address = database_of(settings)
    data = examine_data(where)
    rows += data
    if address:
        rows += examine_database(address)
    elif not data:  # else nothing can be said of what is in it
        rows += examine_store(file_of(settings, where))
    rows += _daemon(args.config_dir)
    wrong = [row for row in rows if row[0] == "error"]
    if args.json:
        found = [{"severity": mark, "part": part, "message": text} for mark, part, text in rows]
        say.plain_json({"version": dragoman.__version__, "ready": not wrong, "rows": found})
    else:
        for mark, part, text in rows:
            say.out(f"{mark:<6} {part:<14} {say.clean(text)}")
        say.out(
            f"Version {dragoman.__version__} "
            + ("cannot take over yet." if wrong else "can take over.")
        )
    return 1 if wrong else 0


def _configuration(path: str) -> "tuple[list[Row], Settings]":
    """What is to be said of the configuration, and what it says; the defaults if it is broken."""
    from dragoman.settings.load import load
    from dragoman.settings.model import Settings

    try:
        loaded = load(path)
    except Fault as fault:
        return [("error", "configuration", str(fault))], Settings()
    rows = [("warn", "configuration", text) for text in loaded.warnings]
    there = "is understood" if os.path.exists(path) else "is not there; defaults are used"
    return rows or [("ok", "configuration", f"{path} {there}")], loaded.settings


def _daemon(config_dir: str | None) -> "list[Row]":
    """Who has the store now: a newer version can start only when he has ended."""
    from dragoman.client.address import socket_path
    from dragoman.client.problems import NotRunning
    from dragoman.host import lock

    if os.name != "posix":
        return []
    try:
        owner = lock.owner(socket_path(config_dir))
    except NotRunning:  # no socket can have such a path
        owner = None
    if owner is None:
        return []
    text = f"process {owner} runs with it; end it before the newer version starts: dragoman stop"
    return [("warn", "daemon", text)]
