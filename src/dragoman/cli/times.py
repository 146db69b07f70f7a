"""Times as people read them."""

import time


def span(ms: float) -> str:
    """A duration: `0.3 s`, `12 s`, `3 min`, `2 h 5 min`, `4 d`."""
    if 0 < ms < 1000:
        return f"{max(0.1, ms // 100 / 10):.1f} s"
    seconds = max(int(ms // 1000), 0)
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d"


def interval(ms: int) -> str:
    """All of a duration, as `cron add --every` takes it: `2h`, `1h30m`."""
    said = ""
    for unit, long in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, ms = divmod(ms, long)
        said += f"{count}{unit}" if count else ""
    return said


def ago(ms: int, now: float | None = None) -> str:
    """How long ago a moment was."""
    passed = (time.time() * 1000 if now is None else now) - ms
    return "now" if passed < 1000 else f"{span(passed)} ago"


def clock(ms: int) -> str:
    """The time of day, here."""
    return time.strftime("%H:%M:%S", time.localtime(ms / 1000))


def stamp(ms: int) -> str:
    """Date and time, here."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
