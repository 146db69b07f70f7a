"""Stores of versions that kept fields side by side are read as if they had traits."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.events import ExtraSet, Opened, decode_body, encode_body
from dragoman.engine.info import SessionQuery
from dragoman.engine.ports import Batch, Entry
from dragoman.engine.traits import Correspondent, Given, Waiver
from dragoman.store import rows
from dragoman.store.old_extra import OLD, regrouped, renewed
from dragoman.store.sqlite import SqliteStore

from .making import make_info

FLAT: dict[str, Any] = {
    "run_id": "r1",
    "key": "k1",
    "tools": ["read"],
    "roots": ["/a"],
    "skip_permissions": True,
    "skip_permissions_until": 77,
    "auto_accept_edits": True,
    "hosted": {"session": "x", "command": ["y"]},
    "ours": 1,
}
GROUPED: dict[str, Any] = {
    "humanlayer": {"run_id": "r1"},
    "correspondent": {"key": "k1"},
    "given": {"tools": ["read"], "roots": ["/a"]},
    "waiver": {"everything": True, "until": 77, "tools": ["write", "edit"]},
    "hosted": {"session": "x", "command": ["y"]},
    "ours": 1,
}


def test_fields_come_under_their_traits_names() -> None:
    assert regrouped(FLAT) == GROUPED
    assert regrouped(GROUPED) == GROUPED
    assert Given.of(GROUPED) == Given(tools=("read",), roots=("/a",))
    assert Waiver.of(GROUPED).tools == ("write", "edit")
    assert Correspondent.of(GROUPED).key == "k1"
    for trait, field in OLD.values():  # what is regrouped is what the trait reads
        for known in (Given, Waiver, Correspondent):
            assert trait != known.NAME or field in known.__struct_fields__


@pytest.mark.parametrize("off", [False, None])
def test_switching_off_stays_off(off: Any) -> None:
    gone = {"auto_accept_edits": off, "skip_permissions": None}
    assert regrouped(gone) == {"waiver": {"tools": None, "everything": None}}


def test_other_events_pass_untouched() -> None:
    body = encode_body(Opened("a", "/", "m/m", "full", extra=GROUPED))
    assert renewed("opened", body) is body
    assert renewed("noted", b'{"values":{"key":"k"}}') == b'{"values":{"key":"k"}}'
    assert renewed("opened", b'{"type":"opened"}') == b'{"type":"opened"}'


async def test_an_old_file_is_read_found_and_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    old = make_info("s1", extra=FLAT)
    with monkeypatch.context() as patch:  # written as it was: fields at the top have the columns
        patch.setattr(rows, "columns_of", lambda extra: (extra["run_id"], extra["key"]))
        store = SqliteStore(path)
        epoch = await store.create(old, "me")
        bodies = (
            Opened("a", "/", "m/m", "full", extra=FLAT),
            ExtraSet({"run_id": None, "key": "k2"}),
        )
        entries = [
            Entry(n, n, ("opened", "extra_set")[n - 1], encode_body(body))
            for n, body in enumerate(bodies, 1)
        ]
        await store.append(Batch("s1", epoch, entries, old))
        await store.close()
    store = SqliteStore(path)
    info = await store.info("s1")
    assert info is not None and info.extra == GROUPED
    for wanted in ({"humanlayer": {"run_id": "r1"}}, {"waiver": {"until": 77}}, {"ours": 1}):
        found = await store.find(**wanted)
        assert found is not None and found.id == "s1", wanted
        page = await store.list(SessionQuery(extra=wanted))
        assert [one.id for one in page.sessions] == ["s1"]
    first, second = [decode_body(entry.body) for entry in await store.entries("s1")]
    assert isinstance(first, Opened) and first.extra == GROUPED
    assert isinstance(second, ExtraSet)
    assert second.values == {"humanlayer": {"run_id": None}, "correspondent": {"key": "k2"}}
    await store.close()
