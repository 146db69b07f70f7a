"""Looks at a store before a newer version takes it over."""

import os
import sqlite3
from contextlib import closing

from dragoman.engine.faults import Fault
from dragoman.host.doctor import data_directory, log_alone, looked_at
from dragoman.host.wanted import lacks_place
from dragoman.settings.places import Places
from dragoman.standing import in_place_of_file
from dragoman.store.file import Damaged, explain, rescue
from dragoman.store.migrations import STEPS, recognise

Row = tuple[str, str, str]  # severity, part, message


def examine_data(where: Places) -> list[Row]:
    """Why no daemon can start in the data folder; nothing when one can."""
    found = [row for row in data_directory(where) if row.severity == "error"]
    return [("error", row.category, f"{row.message}. {row.fix}") for row in found]


def examine_database(address: str) -> list[Row]:
    """The same of a database that the settings name; what takes long is left to `doctor`."""
    from dragoman.host import database

    return [
        (severity, "store", f"{message}. {fix}" if fix else message)
        for severity, message, fix in database.examine(address)
    ]


def examine_store(path: str) -> list[Row]:
    """Whether this version can take over a store, without changing it."""
    if path == ":memory:":
        return [("ok", "store", "sessions are kept in memory only")]
    if wrong := in_place_of_file(path):
        return [("error", "store", f"{wrong[0]}. {wrong[1]}, or set store.path.")]
    try:
        os.stat(path)
        with closing(looked_at(path)) as connection:
            recognise(connection, path)
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except FileNotFoundError:
        if alone := log_alone(path):
            return [("error", "store", " ".join(alone))]
        if why := lacks_place(path):
            fix = "Make its directory writable, or choose another with store.path."
            return [("error", "store", f"{path} {why}: sessions would not survive. {fix}")]
        return [("ok", "store", f"{path} is not there; it is made at the first start")]
    except OSError as problem:
        text = f"{path} cannot be read: {problem.strerror}. Repair its permissions."
        return [("error", "store", text)]
    except Fault as fault:
        return [("error", "store", str(fault))]
    except sqlite3.Error as problem:
        found = explain(problem, path)
        if not isinstance(found, Damaged):
            return [("error", "store", str(found))]
        damage = str(problem)
    if damage != "ok":
        text = f"{path} is damaged: {damage.splitlines()[-1]}. {rescue(path)}"
        return [("error", "store", text)]
    for place in (path, os.path.dirname(path) or "."):  # its log lies beside it
        if not os.access(place, os.W_OK):
            return [("error", "store", f"{place} cannot be written. Repair its permissions.")]
    if version in (0, len(STEPS)):
        shown = f"of schema {version}, the newest" if version else "empty"
        return [("ok", "store", f"{path} is {shown}")]
    text = f"{path} is of schema {version}; the first start brings it to {len(STEPS)}."
    return [("warn", "store", f"{text} An older version cannot read it then: keep a copy.")]
