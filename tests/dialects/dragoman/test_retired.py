"""Names of methods of earlier versions are heard until a date, and told in the log."""

from datetime import date
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.dialects.dragoman import calls
from dragoman.dialects.dragoman.calls import CALLS, Entry, heard

UNTIL = date(2030, 1, 1)


def test_an_older_name_does_the_same_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    log = SimpleNamespace(warning=lambda text, **more: told.append(more))
    monkeypatch.setattr(calls, "log", log)
    monkeypatch.setitem(CALLS, "dragoman/sum", Entry(lambda *given: sum(given), changes=True))
    found = heard({"dragoman/plus": (UNTIL, "dragoman/sum")}, date(2029, 12, 31))
    assert found["dragoman/plus"].changes and found["dragoman/sum"] is CALLS["dragoman/sum"]
    assert [found["dragoman/plus"].run(1, 2), found["dragoman/plus"].run(3, 4)] == [3, 7]
    assert told == [{"method": "dragoman/plus", "now": "dragoman/sum", "until": "2030-01-01"}]


def test_what_waits_waits_by_its_older_name_too() -> None:
    waiting = next(name for name, one in CALLS.items() if iscoroutinefunction(one.run))
    found = heard({"dragoman/old": (UNTIL, waiting)}, date(2029, 1, 1))
    assert iscoroutinefunction(found["dragoman/old"].run)


def test_after_its_date_it_is_unknown() -> None:
    assert "dragoman/old" not in heard({"dragoman/old": (UNTIL, "dragoman/status")}, UNTIL)


def test_no_row_leads_nowhere_or_hides_a_method() -> None:
    for old, (_, new) in calls.RETIRED.items():
        assert new in CALLS and old not in CALLS
