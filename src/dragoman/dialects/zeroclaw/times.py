"""Times as this protocol writes them."""

from time import gmtime, strftime


def rfc3339(ms: int) -> str:
    """Milliseconds since the epoch as `2026-01-31T12:00:00.000Z`."""
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(ms // 1000))}.{ms % 1000:03d}Z"
