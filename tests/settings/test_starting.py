"""Which keys a running daemon follows, and which wait for its next start."""

import pytest

from dragoman.settings import shape
from dragoman.settings.model import Settings
from dragoman.settings.starting import waits


@pytest.mark.parametrize(
    ("key", "does"),
    [
        ("gateway.port", True),
        ("gateway.tls_cert", True),
        ("gateway", True),
        ("gateway.require_pairing", False),
        ("gateway.allowed_origins", False),
        ("listen.native", True),
        ("listen", True),
        ("store.path", True),
        ("telemetry.enabled", False),
        ("agents.default.model", False),
        ("mcp.gateway.command", False),
    ],
)
def test_what_waits_for_the_next_start(key: str, does: bool) -> None:
    assert waits(shape.split(key)) is does


def test_what_is_said_to_wait_is_there() -> None:
    known = Settings()
    for key in ("enabled", "host", "port", "path_prefix", "tls_cert", "tls_key", "tls_self_signed"):
        assert hasattr(known.gateway, key) and waits(("gateway", key))
    assert hasattr(known, "listen") and hasattr(known, "store")
