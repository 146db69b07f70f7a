"""Moments as RFC 3339, in the two precisions that the protocol mixes."""

from datetime import UTC, datetime

LAST = 253_402_300_799_999  # the end of the calendar; clients name times beyond it


def later(now: int, ms: int) -> int:
    """So many milliseconds from now, within the calendar."""
    return min(now + ms, LAST)


def precise(ms: int) -> str:
    """Milliseconds since the epoch, trailing zeros of the fraction left out."""
    ms = min(ms, LAST)
    moment = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    rest = ms % 1000
    return f"{moment}.{rest:03d}".rstrip("0") + "Z" if rest else moment + "Z"


def seconds(ms: int) -> str:
    """Whole seconds."""
    return datetime.fromtimestamp(min(ms, LAST) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
