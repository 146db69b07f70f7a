"""The same protocol over HTTP, operation by operation: `rest.approvals`, `rest.document`,
`rest.files`, `rest.host`.
"""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from tests.dialects.humanlayer.desk import make

from dragoman.dialects.humanlayer.faults import Wrong
from dragoman.dialects.humanlayer.rest import approvals, files, host, shapes
from dragoman.dialects.humanlayer.rest.document import _plain, document
from dragoman.dialects.humanlayer.rest.table import Asked, Refused
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, UnknownSession
from dragoman.engine.host import OpenSpec


def asked(desk: Any, body: Any = None, query: Any = None, **path: str) -> Asked:
    return Asked(desk, Who("humanlayer", id="me"), path, query, body)


# --- rest.approvals ---


async def test_rest_approvals_are_made_shown_and_decided() -> None:
    door, desk = make()
    session = (await door.open(OpenSpec(cwd="/"))).id
    body = shapes.CreateApproval(session, "Bash", Raw(b"{}"))
    id = (await approvals.create(asked(desk, body))).approval_id
    listed = await approvals.list_(asked(desk, query=shapes.ApprovalsQuery(session)))
    assert [row.id for row in listed] == [id]
    assert (await approvals.show(asked(desk, id=id))).status == "pending"
    yes = shapes.Decide("approve")
    assert (await approvals.decide(asked(desk, yes, id=id))).success
    for wrong, status in ((id, 400), ("nope", 404)):
        with pytest.raises(Refused) as found:
            await approvals.decide(asked(desk, yes, id=wrong))
        assert found.value.status == status
    with pytest.raises(UnknownSession):
        await approvals.list_(asked(desk, query=shapes.ApprovalsQuery("nope")))


# --- rest.document ---


def test_rest_document_has_every_operation_and_no_defaults() -> None:
    made = document((*approvals.OPERATIONS, *files.OPERATIONS, *host.OPERATIONS))
    assert set(made["paths"]["/approvals"]) == {"get", "post"}
    one = made["paths"]["/approvals/{id}/decide"]["post"]
    assert one["parameters"][0] == {
        "name": "id", "in": "path", "required": True, "schema": {"type": "string"},
    }  # fmt: skip
    assert one["requestBody"]["required"] and "404" in one["responses"]
    stream = made["paths"]["/stream/events"]["get"]["responses"]["200"]["content"]
    assert list(stream) == ["text/event-stream"]
    assert '"default"' not in json.dumps(made["components"])
    assert _plain({"default": 1, "a": [{"default": 2, "b": 3}]}) == {"a": [{"b": 3}]}


# --- rest.files ---


def test_rest_files_say_how_a_folder_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    there, file, free = (files._state(str(tmp_path / name)) for name in ("", "file", "a/b/c"))
    assert (there.exists, there.isDirectory) == (True, True)
    assert (file.exists, file.isDirectory, file.error) == (True, False, "it is no directory")
    assert (free.exists, free.canCreate) == (False, True)
    assert files._state("/proc/1/no/such").canCreate is False
    assert os.path.isdir(files.made_folder(str(tmp_path / "new" / "er")))
    for path, why in (("relative", "as a whole path"), (str(tmp_path / "file" / "x"), "cannot be")):
        with pytest.raises((Refused, Wrong), match=why):
            files.made_folder(path)


@pytest.mark.parametrize(
    ("query", "text", "places"),
    [
        ("", "any", []),
        ("abc", "a/b/c", [0, 2, 4]),
        ("ABC", "xabc", [1, 2, 3]),
        ("cb", "a/b/c", None),
    ],
)
def test_rest_files_match_letters_in_order(query: str, text: str, places: Any) -> None:
    found = files.matched(query, text)
    assert (found[1] if found else None) == places


def test_rest_files_whole_names_come_before_scattered_letters() -> None:
    near, far = files.matched("main", "src/main.py"), files.matched("main", "m/a/i/n.py")
    assert near is not None and far is not None and near[0] > far[0]


def test_rest_files_search_leaves_out_what_nobody_looks_for(tmp_path: Path) -> None:
    for name in ("src/main.py", "node_modules/main.js", "main"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    def search(**more: Any) -> list[str]:
        wanted = shapes.FuzzySearch(query="ma in", paths=[str(tmp_path)], **more)
        return [hit.displayPath for hit in files._search(wanted).results]

    assert search() == ["main", "src/main.py"] and len(search(respectGitignore=False)) == 3
    assert len(search(limit=1)) == 1


async def test_rest_files_agents_that_are_broken_hide_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door, desk = make()
    known = door.profile

    def profile(alias: str) -> Any:
        if alias == "broken":
            raise BadInput("gone")
        return known(alias)

    monkeypatch.setattr(door, "agents", lambda: ["broken", "default"])
    monkeypatch.setattr(door, "profile", profile)
    rows = (await files.agents(asked(desk))).agents
    assert [(row.name, msgspec.structs.astuple(row)[3]) for row in rows] == [
        ("broken", ""), ("default", "scripted/test"),
    ]  # fmt: skip


# --- rest.host ---


def test_rest_host_finds_the_store_of_sessions_among_others(tmp_path: Path) -> None:
    tmp_path = tmp_path / "odd #1?x"  # which an address would cut off
    tmp_path.mkdir()
    assert host._database("") == host._database(str(tmp_path)) == (":memory:", 0, 0, 0)
    for name in ("checkpoints.db", "sessions.db"):
        made = sqlite3.connect(tmp_path / name)
        made.execute("CREATE TABLE t (x)")
        made.close()
    path, size, changed, tables = host._database(str(tmp_path))
    assert path.endswith("sessions.db") and size > 0 and changed > 0 and tables == 1


async def test_rest_host_keeps_the_settings_of_the_desktop_app() -> None:
    _, desk = make()
    before = await host.user_settings(asked(desk))
    assert before.advanced_providers is False
    body = shapes.UpdateUserSettings(advanced_providers=True)
    await host.update_user_settings(asked(desk, body))
    after = await host.user_settings(asked(desk))
    assert after.advanced_providers is True
    await host.update_user_settings(asked(desk, shapes.UpdateUserSettings()))
    assert (await host.user_settings(asked(desk))).advanced_providers is True


async def test_rest_host_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    door, desk = make()
    assert (await host.health(asked(desk))).status == "ok"
    figures = (await host.debug_info(asked(desk))).stats
    assert figures["sessions"] == 0
    with pytest.raises(Refused, match="agents of its own"):
        await host.update_config(asked(desk, shapes.UpdateConfig(claude_path="/x")))
    monkeypatch.setattr(door, "agents", lambda: [])
    assert (await host.health(asked(desk))).status == "degraded"


async def test_rest_host_streams_events_without_the_envelope() -> None:
    _, desk = make()
    query = shapes.EventsQuery(eventTypes=["a,b", ""], runId="r1")
    stream: Any = await host.events(asked(desk, query=query))
    line = host._HEAD + b'{"type":"x"}' + b"}}"

    class Told:
        def speak(self, events: Any) -> Any:
            return type("Blob", (), {"messages": [line]})() if events else None

    stream._told = Told()
    assert stream.speak([1]) == b'data: {"type":"x"}\n\n' and stream.speak([]) is None
    await desk.close()
