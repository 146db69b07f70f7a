"""When a schedule is due."""

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from dragoman.engine.faults import BadInput
from dragoman.engine.ports.schedules import When
from dragoman.schedules.cron import Cron
from dragoman.schedules.times import check, interval, moment, told, upcoming

BERLIN = ZoneInfo("Europe/Berlin")


def after(expr, text, zone=BERLIN):
    return Cron(expr).after(datetime.fromisoformat(text).replace(tzinfo=zone))


@pytest.mark.parametrize(
    ("expr", "now", "then"),
    [
        ("* * * * *", "2026-01-01T00:00:30", "2026-01-01T00:01"),
        ("*/15 * * * *", "2026-01-01T00:15", "2026-01-01T00:30"),
        ("5/20 * * * *", "2026-01-01T00:26", "2026-01-01T00:45"),
        ("30 7 * * mon-fri", "2026-01-02T07:30", "2026-01-05T07:30"),
        ("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00"),
        ("0 0 31 * *", "2026-01-31T00:00", "2026-03-31T00:00"),
        ("0 12 13 * fri", "2026-01-01T00:00", "2026-01-02T12:00"),  # either day is enough
        ("0 12 */2 * sun", "2026-01-01T13:00", "2026-01-11T12:00"),  # a star restricts nothing
        ("0 0 * * 7", "2026-01-01T00:00", "2026-01-04T00:00"),
        ("0 0 1 jan,JUL *", "2026-01-01T00:00", "2026-07-01T00:00"),
        ("@daily", "2026-12-31T05:00", "2027-01-01T00:00"),
        ("10-12,50 3 * * *", "2026-01-01T03:12", "2026-01-01T03:50"),
    ],
)
def test_the_next_time(expr, now, then):
    assert after(expr, now).replace(tzinfo=None) == datetime.fromisoformat(then)


def test_clocks_are_put_forward_and_back():
    spring = after("30 2 * * *", "2026-03-28T03:00")
    assert spring.timestamp() > datetime(2026, 3, 28, 3, tzinfo=BERLIN).timestamp()
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)
    assert Cron("30 2 * * *").after(first).day == 26


def _instants(expr, first, count):
    found, at = [], first
    for _ in range(count):
        at = datetime.fromtimestamp(Cron(expr).after(at).timestamp(), BERLIN)
        found.append(at)
    return found


def test_what_runs_every_hour_runs_in_both_of_the_hour_that_comes_twice():
    found = _instants("*/30 * * * *", datetime(2026, 10, 25, 1, 40, tzinfo=BERLIN), 6)
    assert [(at.hour, at.minute, at.fold) for at in found] == [
        (2, 0, 0), (2, 30, 0), (2, 0, 1), (2, 30, 1), (3, 0, 0), (3, 30, 0),
    ]  # fmt: skip
    named = _instants("*/30 2 * * *", datetime(2026, 10, 25, 1, 40, tzinfo=BERLIN), 3)
    assert [(at.day, at.minute) for at in named] == [(25, 0), (25, 30), (26, 0)]
    assert all(at.fold == 0 for at in named)


def test_what_runs_every_hour_leaves_out_the_hour_that_there_is_not():
    found = _instants("*/30 * * * *", datetime(2026, 3, 29, 1, 20, tzinfo=BERLIN), 3)
    assert [(at.hour, at.minute) for at in found] == [(1, 30), (3, 0), (3, 30)]


@pytest.mark.parametrize(
    ("zone", "hour"),
    [
        ("Europe/Berlin", 5),
        (":/usr/share/zoneinfo/Europe/Berlin", 5),
        ("CET-1CEST,M3.5.0,M10.5.0/3", 5),  # the rule itself
        ("Nowhere/There", 7),  # the system takes what it does not know for UTC
        ("", 7),
    ],
)
def test_summer_time_of_this_machine_whatever_tells_its_zone(zone, hour, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        noon_before = int(datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp() * 1000)
        due = upcoming(When(cron="30 7 * * *"), noon_before)
        assert due is not None
        assert datetime.fromtimestamp(due / 1000, UTC) == datetime(
            2026, 3, 29, hour, 30, tzinfo=UTC
        )
        assert told(When(at=due)).startswith("at 2026-03-29 07:30:00 ")
        assert moment("2026-03-29T07:30", noon_before) == due
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "expr",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "*/0 * * * *", "5-1 * * * *", "a * * * *", "1,,2 * * * *", "-1 * * * *",
        "1- * * * *", "* * * foo *", "@never", "0 0 31 2 *", "² * * * *", "1/x * * * *",
    ],
)  # fmt: skip
def test_what_is_no_expression(expr):
    with pytest.raises(BadInput):
        after(expr, "2026-01-01T00:00")


@pytest.mark.parametrize(
    ("text", "ms"), [("90s", 90_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("500ms", 500)]
)
def test_intervals(text, ms):
    assert interval(text) == ms
    assert interval(told(When(every_ms=ms)).removeprefix("every ")) == ms


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "1.5h", "5y", "9999999999s"])
def test_what_is_no_interval(text):
    with pytest.raises(BadInput):
        interval(text)


def test_moments():
    now = int(datetime(2026, 1, 1, 12, 0).astimezone().timestamp() * 1000)
    assert moment("in 2h", now) == now + 7_200_000
    assert moment("2026-01-01T12:00:00+00:00", now) == 1_767_268_800_000
    assert 0 < moment("11:59", now) - now <= 86_400_000
    for text in ("24:00", "25:00", "12:60", "0:99"):
        with pytest.raises(BadInput, match=f"^'{text}' is no time. For example .*12:30"):
            moment(text, now)
    for text in ("yesterday", "25:00", "in", "in five minutes", "12:60", "0001-01-01"):
        with pytest.raises(BadInput):
            moment(text, now)


@pytest.mark.parametrize(
    "when",
    [
        When(), When(at=5, every_ms=5_000), When(every_ms=10), When(every_ms=10**15),
        When(at=10**18), When(cron="* * * * *", tz="Nowhere/Land"), When(at=5, tz="Europe/Berlin"),
        When(cron="0 0 30 2 *"), When(cron="* * * * *", tz="../../etc/passwd"),
    ],
)  # fmt: skip
def test_what_is_no_schedule(when):
    with pytest.raises(BadInput):
        check(when)


def test_what_comes_after():
    assert upcoming(When(at=5), 4) == 5 and upcoming(When(at=5), 5) is None
    assert upcoming(When(every_ms=1000), 7) == 1007
    assert upcoming(When(cron="0 0 1 1 *", tz="UTC"), 0) == 31_536_000_000
