"""`dragoman upgrade-check`: can this version take over what is there? Reads only."""

import os
from typing import Any

import dragoman
from dragoman.engine.faults import Fault

from .. import say
from ..places import find


def run(args: Any) -> int:
    """One row per part. Exit code 1 when something has to be done first."""
    where = find(args.config_dir)
    rows, store = _configuration(where.config_file)
    rows += _store(store or os.path.join(where.data_dir, "sessions.db"))
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


def _store(path: str) -> list[tuple[str, str, str]]:
    import sqlite3

    from dragoman.store.migrations import STEPS, recognise

    if path == ":memory:":
        return [("ok", "store", "sessions are kept in memory only")]
    if not os.path.exists(path):
        return [("ok", "store", f"{path} is not there; it is made at the first start")]
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            recognise(connection, path)
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except Fault as fault:
        return [("error", "store", str(fault))]
    except sqlite3.Error as problem:
        return [("error", "store", f"{path} cannot be read: {problem}")]
    if damage != "ok":
        return [("error", "store", f"{path} is damaged: {damage}")]
    if version == len(STEPS):
        return [("ok", "store", f"{path} is of schema {version}, the newest")]
    text = f"{path} is of schema {version}; the first start brings it to {len(STEPS)}."
    return [("warn", "store", f"{text} An older version cannot read it then: keep a copy.")]
