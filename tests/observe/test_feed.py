"""`observe.feed`: the newest lines are kept as they were, and only those."""

from dragoman.observe import log
from dragoman.observe.feed import KEPT, Feed, LogLine


def test_lines_come_back_as_they_were_the_newest_first() -> None:
    feed = Feed()
    told: list[LogLine] = []
    stop = feed.follow(told.append)
    try:
        for number in range(KEPT + 2):
            feed.take(f"T{number}", "info", "area", f"odd \udc80 {number}", {"k": str(number)})
        stop()
        feed.take("T", "error", "area", "nobody follows", {})
    finally:
        feed.close()
    kept = list(feed.newest())
    assert kept[0] == LogLine(KEPT + 3, "T", "error", "area", "nobody follows", {})
    assert kept[1:] == told[:2:-1] and len(kept) == KEPT


def test_what_is_logged_is_in_it_until_it_is_closed() -> None:
    feed = Feed()
    log.get_log("here").warning("something", why="because")
    feed.close()
    log.get_log("here").warning("later")
    assert [(one.area, one.event, one.pairs) for one in feed.newest()] == [
        ("here", "something", {"why": "because"})
    ]
