"""Times as people read them."""

import time

import pytest

from dragoman.cli.times import ago, clock, interval, span, stamp
from dragoman.markup.story import utc


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.004, "0.1 s"),
        (0.38, "0.3 s"),
        (0.999, "0.9 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d"),
        (10 * 86400, "10 d"),
    ],
)
def test_spans(seconds: float, said: str) -> None:
    assert span(seconds * 1000) == said


def test_intervals() -> None:
    given = (7_200_000, 5_400_000, 90_000_500)
    assert [interval(ms) for ms in given] == ["2h", "1h30m", "1d1h500ms"]


def test_ago() -> None:
    assert (ago(1000, 1999), ago(1000, 2000), ago(5000, 1000)) == ("now", "1 s ago", "now")
    assert ago(int(time.time() * 1000) - 61_000) == "1 min ago"


def test_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        assert (clock(0), stamp(0)) == ("02:00:00", "1970-01-01 02:00:00")
        assert utc(0) == "1970-01-01 00:00:00 UTC"
    finally:
        monkeypatch.undo()
        time.tzset()
