"""What every store refuses, and that it says what to do."""

from typing import Any

import msgspec
import pytest
from tests.store.making import make_ask, make_batch, make_info

from dragoman.engine import faults
from dragoman.store import rules


def test_a_batch_that_continues_is_taken() -> None:
    rules.check_batch(make_batch("s", 2, 4, 3), 2, 3)
    rules.check_batch(make_batch("s", 2, 1, 0), 2, 3)


@pytest.mark.parametrize("epoch", [1, 3])
def test_another_epoch_is_another_writer(epoch: int) -> None:
    with pytest.raises(faults.StaleEpoch, match="taken over") as caught:
        rules.check_batch(make_batch("s", epoch, 1, 1), 2, 0)
    assert "Open the session again" in caught.value.hint


@pytest.mark.parametrize(("first", "last"), [(2, 0), (1, 1), (1, 5)])
def test_a_gap_or_a_repetition_is_refused(first: int, last: int) -> None:
    with pytest.raises(faults.StoreFailed, match="does not follow"):
        rules.check_batch(make_batch("s", 1, first, 2), 1, last)


def test_a_row_of_another_session_is_refused() -> None:
    batch = msgspec.structs.replace(make_batch("s", 1, 1, 1), info=make_info("other"))
    with pytest.raises(faults.BadInput, match="carries the row of other"):
        rules.check_batch(batch, 1, 0)


def test_the_moment_of_a_batch_is_its_last_entry_or_its_row() -> None:
    batch = make_batch("s", 1, 1, 3)
    assert rules.moment(batch) == batch.entries[-1].at
    empty = msgspec.structs.replace(batch, entries=())
    assert rules.moment(empty) == batch.info.updated_at


def test_an_approval_belongs_to_its_session() -> None:
    ask = make_ask("a1", "s1")
    rules.check_ask(ask, "s1")
    with pytest.raises(faults.BadInput, match="belongs to session s1, not s2"):
        rules.check_ask(ask, "s2")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({"a": 1}, True), ({"a": 1, "b": None}, True), ({"a": 2}, False), ({"c": None}, False)],
)
def test_extra_values_must_be_there_and_equal(wanted: dict[str, Any], found: bool) -> None:
    info = msgspec.structs.replace(make_info("s"), extra={"a": 1, "b": None})
    assert rules.has_extra(info, wanted) is found


def test_limits_and_empty_searches() -> None:
    rules.check_limit(None)
    rules.check_limit(0)
    with pytest.raises(faults.BadInput, match="-1 is negative"):
        rules.check_limit(-1)
    rules.check_find({"a": 1})
    with pytest.raises(faults.BadInput, match="Nothing was said"):
        rules.check_find({})


def test_refusals_name_what_they_are_about() -> None:
    assert "s1" in rules.exists("s1").message and "another id" in rules.exists("s1").hint
    taken = rules.in_use("s1", "77:1")
    assert "77:1" in taken.message and taken.data["owner"] == "77:1"
    assert "a9" in faults.UnknownAsk.named("a9").message and "a9" in rules.ask_exists("a9").message
