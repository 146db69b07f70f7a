"""`dragoman fleet`, `dragoman store copy` and `dragoman doctor` as people type them."""

import asyncio
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fleet.making import Fleet, place_of
from tests.postgres import new_database
from tests.store.making import make_batch, make_info

from dragoman.cli.local import stores
from dragoman.cli.verbs import fleet as fleet_verb
from dragoman.cli.verbs import store as store_verb
from dragoman.engine.faults import BadInput
from dragoman.fleet.desk import NodeRow
from dragoman.host import database
from dragoman.providers.scripted import Scripted
from dragoman.store.sqlite import SqliteStore
from dragoman.testing.postgres import Server


async def typed(folder: Path, url: str, *words: str) -> tuple[int, Any, str]:
    env = {**os.environ, "DRAGOMAN_fleet__database": url}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dragoman", *words, "--json", "--config-dir", str(folder),
        env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out) if out else None, err.decode()


async def test_nodes_are_listed_drained_and_sessions_moved(fleet: Fleet, tmp_path: Path) -> None:
    a = await fleet.join("a", Scripted([]), labels=("gpu",), lease=10.0)
    session = await a.open()
    code, found, _ = await typed(tmp_path, fleet.url, "fleet")
    assert code == 0
    (row,) = found["nodes"]
    assert (row["name"], row["alive"], row["labels"]) == ("a", True, ["gpu"])
    assert row["sessions"] == 1
    for words, said in (
        (("fleet", "drain", "nobody"), "no node nobody"),
        (("fleet", "move", session, "nobody"), "no node nobody"),
        (("fleet", "move", "nothing", "a"), "not found"),
    ):
        code, _, problem = await typed(tmp_path, fleet.url, *words)
        assert code != 0 and said in problem
    assert (await typed(tmp_path, fleet.url, "fleet", "drain", "a"))[0] == 0
    assert (await a.node.desk.nodes())[0].draining
    assert (await typed(tmp_path, fleet.url, "fleet", "move", session, "a"))[0] == 0
    assert (await place_of(a.node.desk, session)).pinned


async def test_a_store_is_copied_and_looked_over(postgres: Server, tmp_path: Path) -> None:
    url = await new_database(postgres, migrated=False)
    old = SqliteStore(tmp_path / "old.db")
    epoch = await old.create(make_info("s1"), "me")
    await old.append(make_batch("s1", epoch, 1, 3))
    await old.close()
    code, found, problem = await typed(
        tmp_path, url, "store", "copy", str(tmp_path / "old.db"), url
    )
    assert (code, found["sessions"], found["events"]) == (0, 1, 3), problem
    code, found, _ = await typed(tmp_path, url, "store", "copy", url, str(tmp_path / "new.db"))
    assert (code, found["events"]) == (0, 3)
    code, _, problem = await typed(tmp_path, url, "store", "copy", str(tmp_path / "none.db"), url)
    assert code != 0 and "does not exist" in problem
    _, found, _ = await typed(tmp_path, url, "doctor")
    rows = [row for row in found["rows"] if row["category"] == "store"]
    assert [row["severity"] for row in rows] == ["ok"] * 5, rows
    said = " ".join(row["message"] for row in rows)
    for word in ("PostgreSQL", "read and write", "ms", "clock", "connections"):
        assert word in said


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ready"),
        ({"alive": False}, "gone"),
        ({"draining": True}, "draining"),
        ({"facts": {"degraded": "cut off"}}, "degraded"),
    ],
)
def test_the_state_of_a_node(changes: dict[str, Any], state: str) -> None:
    values: dict[str, Any] = {
        "name": "a", "owner": "o", "alive": True, "draining": False, "labels": [], "schema": 1,
        "protocol": 1, "version": "1", "silent": 0.0, "seen_ms": 0, "sessions": 3,
    }  # fmt: skip
    row = fleet_verb._row(NodeRow(**(values | changes)))
    assert row[:3] == ("a", state, "3")


def test_without_a_fleet_the_way_in_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        stores.with_desk(str(tmp_path), lambda desk: desk.nodes())
    assert "[fleet] database" in str(caught.value)


def test_a_store_is_not_copied_onto_itself(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        stores.copied("x.db", "x.db", lambda done: None)
    given = SimpleNamespace(
        source=str(tmp_path / "no.db"), target="y.db", json=True, config_dir=str(tmp_path)
    )
    with pytest.raises(BadInput):
        store_verb.run(given)


def test_a_database_that_is_not_there_is_one_row(tmp_path: Path) -> None:
    ((severity, message, _),) = database.examine(f"postgresql://x@/y?host={tmp_path}")
    assert severity == "error" and "cannot be reached" in message
