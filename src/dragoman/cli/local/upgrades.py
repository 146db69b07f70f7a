"""Looks at a store before a newer version takes it over."""

import os
import sqlite3

from dragoman.engine.faults import Fault
from dragoman.store.migrations import STEPS, recognise


def examine_store(path: str) -> list[tuple[str, str, str]]:
    """Whether this version can take over a store, without changing it."""
    if path == ":memory:":
        return [("ok", "store", "sessions are kept in memory only")]
    try:
        os.stat(path)
    except FileNotFoundError:
        return [("ok", "store", f"{path} is not there; it is made at the first start")]
    except OSError as problem:
        return [("error", "store", f"{path} cannot be read: {problem.strerror}")]
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
