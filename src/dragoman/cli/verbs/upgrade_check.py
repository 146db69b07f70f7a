"""`dragoman upgrade-check`: can this version take over what is there? Reads only."""

import os

import dragoman
from dragoman.engine.faults import Fault

from .. import say
from ..parse import Args
from ..places import find


def run(args: Args) -> int:
    """One row per part. Exit code 1 when something has to be done first."""
    from ..local.upgrades import examine_store

    where = find(args.config_dir)
    rows, store = _configuration(where.config_file)
    rows += examine_store(store or os.path.join(where.data_dir, "sessions.db"))
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


def _configuration(path: str) -> tuple[list[tuple[str, str, str]], str]:
    """What is to be said of the configuration, and the store's file that it names."""
    from dragoman.settings.load import load

    try:
        loaded = load(path)
    except Fault as fault:
        return [("error", "configuration", str(fault))], ""
    rows = [("warn", "configuration", text) for text in loaded.warnings]
    there = "is understood" if os.path.exists(path) else "is not there; defaults are used"
    return rows or [("ok", "configuration", f"{path} {there}")], loaded.settings.store.path
