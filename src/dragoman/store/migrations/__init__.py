"""The schema, step by step: step N brings a database from version N-1 to version N.

A step that was released is never changed; a new version appends a step.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.engine.faults import StoreFailed

from . import first, second, third

if TYPE_CHECKING:
    from sqlite3 import Connection

Step = Sequence[str] | Callable[["Connection"], None]


class Foreign(StoreFailed):
    """The file is not ours to change: of a newer version, or of another program."""


APPLICATION_ID = 0x44_52_41_47  # "DRAG", in the file's header
STEPS: tuple[Step, ...] = (first.STATEMENTS, second.STATEMENTS, third.step)


def migrate(connection: "Connection", path: str, steps: Sequence[Step] = STEPS) -> int:
    """Bring the database to the newest version in one transaction; returns the version it had."""
    before = _number(connection, "user_version")
    if before == len(steps) and _number(connection, "application_id") == APPLICATION_ID:
        return before
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = _number(connection, "user_version")  # another process may have been faster
        recognise(connection, path, steps)
        for number, step in enumerate(steps[before:], before + 1):
            if callable(step):
                step(connection)
            else:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return before


def recognise(connection: "Connection", path: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise Foreign unless the file is empty, or ours and of a version that we know."""
    version, newest = _number(connection, "user_version"), len(steps)
    owner = _number(connection, "application_id")
    if owner == APPLICATION_ID and version > newest:
        raise Foreign(
            f"{path} was written by a newer version of Dragoman "
            f"(schema {version}; this one knows schemas up to {newest}).",
            "Update Dragoman, or choose another file for the session store.",
            path=path,
            version=version,
        )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise Foreign(
            f"{path} is a database of another program.",
            "Choose another file for the session store.",
            path=path,
        )


def is_older(connection: "Connection") -> bool:
    """Whether the file, which is ours, has a version from before ours."""
    return 0 < _number(connection, "user_version") < len(STEPS)


def used_by_older(path: str) -> Foreign:
    """It does not look at the version again: its numbers and ours would be the same ones."""
    return Foreign(
        f"{path} is in use by an older version of Dragoman.",
        "End that one first, the daemon before all; this version then brings the file up to date.",
        path=path,
    )


def _number(connection: "Connection", pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
