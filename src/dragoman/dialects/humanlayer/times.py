"""Moments as RFC 3339, in the two precisions that the protocol mixes."""

from datetime import UTC, datetime


def precise(ms: int) -> str:
    """Milliseconds since the epoch, trailing zeros of the fraction left out."""
    moment = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    rest = ms % 1000
    return f"{moment}.{rest:03d}".rstrip("0") + "Z" if rest else moment + "Z"


def seconds(ms: int) -> str:
    """Whole seconds."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
