"""Keys that a running daemon does not follow: what they say is taken up at its next start."""

from .shape import Path

_ONCE = {
    "gateway": (
        *("enabled", "host", "port", "path_prefix"),
        *("tls_cert", "tls_key", "tls_self_signed"),
    ),
    "listen": (),  # all of it
    "store": (),
}


def waits(path: Path) -> bool:
    """Whether a change of this key, or of one below it, waits for the next start."""
    names = _ONCE.get(path[0])
    return names is not None and (not names or len(path) < 2 or path[1] in names)
