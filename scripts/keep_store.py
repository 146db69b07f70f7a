"""Keep a store and a configuration of this version for the tests: python scripts/keep_store.py

Runs two turns with the demo model, and writes the store as SQL to tests/store/released/, unless one of
its schema is there. A version that changes the schema keeps one of the schema before it first. The configuration has every key and
goes to tests/settings/released/, by the version that it is of.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import tomlkit

from dragoman import __version__
from dragoman.settings import shape
from dragoman.settings.explain import explain
from dragoman.settings.load import load

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "tests" / "store" / "released"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "project"
        work.mkdir()
        env = {**os.environ, "HOME": folder, "DRAGOMAN_CONFIG_DIR": f"{folder}/config"}
        env["DRAGOMAN_agents__default__model"] = "demo/demo"
        for words in (["run echo hello", "--approve", "all"], ["what is dragoman"]):
            command = [sys.executable, "-m", "dragoman", "run", *words]
            subprocess.run(command, cwd=work, env=env, stdin=subprocess.DEVNULL, check=True)
        base = sqlite3.connect(f"{folder}/config/data/sessions.db")
        rows = list(dump(base))
        for pragma in ("user_version", "application_id"):
            rows.append(f"PRAGMA {pragma} = {base.execute(f'PRAGMA {pragma}').fetchone()[0]};")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        base.close()
        text = (
            "\n".join(rows).replace(str(work), "/home/user/project").replace(folder, "/home/user")
        )
        target = KEPT / f"schema-{version}.sql"
        if target.exists():
            print(f"a store of schema {version} is kept already")
        else:
            target.write_text(text + "\n")
            print(f"kept schema {version}")
    keep_configuration()


def dump(base: sqlite3.Connection) -> Iterator[str]:
    """The database as SQL. What an index of words is made of is kept as it is, table by table:
    the index itself cannot be read through, and made anew it would be another."""
    schema = base.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql <> ''")
    later = []
    yield "BEGIN TRANSACTION;"
    for kind, name, table, sql in schema.fetchall():
        if sql.upper().startswith("CREATE VIRTUAL TABLE"):
            values = ", ".join(_quoted(base, one) for one in (kind, name, table))
            later.append(f"INSERT INTO sqlite_master VALUES({values}, 0, {_quoted(base, sql)});")
            continue
        if kind != "table":
            later.append(f"{sql};")
            continue
        if name.startswith("sqlite_"):
            continue  # SQLite makes it by itself
        yield f"{sql};"
        columns = [row[1] for row in base.execute(f'PRAGMA table_info("{name}")')]
        picked = " || ',' || ".join(f'quote("{column}")' for column in columns)
        for (values,) in base.execute(f'SELECT {picked} FROM "{name}"'):
            yield f'INSERT INTO "{name}" VALUES({values});'
    yield "PRAGMA writable_schema = ON;"
    yield from later
    yield "PRAGMA writable_schema = OFF;"
    yield "COMMIT;"


def _quoted(base: sqlite3.Connection, text: str) -> str:
    found: str = base.execute("SELECT quote(?)", (text,)).fetchone()[0]
    return found


def keep_configuration() -> None:
    """Write every key with a value that it may have."""
    raw: dict[str, Any] = {}
    for row in explain(load("", {})):
        path = tuple("text" if part == "<name>" else part for part in shape.split(row.key))
        value = row.default if row.default is not None else sample(shape.key(path).kind)
        here = raw
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = value
    raw["mcp"]["text"]["command"] = "text"  # a server has one of two keys
    version = ".".join(__version__.split(".")[:2])
    target = ROOT / "tests" / "settings" / "released" / f"config-{version}.toml"
    target.parent.mkdir(exist_ok=True)
    target.write_text(tomlkit.dumps(raw))
    print(f"kept the configuration of {version}")


def sample(kind: Any) -> Any:
    """A value that a key of this type takes."""
    words = [one for one in get_args(kind) if isinstance(one, str)]
    values = [*words, "text", 1, 0.5, True, ["text"], {}]
    return next(one for one in values if not shape.problem(kind, one))


if __name__ == "__main__":
    main()
