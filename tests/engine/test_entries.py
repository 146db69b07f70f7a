"""Entries of the store, whole and damaged."""

from typing import Any

import pytest

from dragoman.engine import entries
from dragoman.engine import events as ev
from dragoman.engine.faults import StoreFailed
from dragoman.engine.ports import Entry

WHOLE = Entry(seq=3, at=5, body=ev.encode_body(ev.Noted("info", "a", "b")), kind="noted", gseq=7)
TORN = Entry(seq=4, at=5, body=b"{", kind="noted", gseq=8)


def test_one_that_is_whole_is_read_and_folded() -> None:
    told: list[Any] = []
    found = entries.read("s", WHOLE, lambda *facts, **more: told.append(facts))
    assert (found.session, found.at, found.seq, found.gseq) == ("s", 5, 3, 7)
    assert found.body == entries.body_of("s", WHOLE) == ev.Noted("info", "a", "b") and not told


def test_one_that_is_damaged_is_told_and_stops_folding_only() -> None:
    told: list[Any] = []
    found = entries.read("s", TORN, lambda what, error, **more: told.append((what, more)))
    assert isinstance(found.body, ev.Noted) and "Entry 4" in found.body.text
    assert told == [("an entry cannot be read", {"session": "s", "seq": 4})]
    with pytest.raises(StoreFailed, match="Entry 4 of session s cannot be read"):
        entries.body_of("s", TORN)
