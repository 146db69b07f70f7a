"""The address of a database: what of it is for us, for the driver and for the server.

The driver hands what it does not know to the server, which refuses it; so what other programs take
from the same address is taken out here, or refused when leaving it out would mean less safety.
"""

import os
import ssl
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import msgspec

from dragoman.engine.faults import BadInput

CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 30.0
LATER = 5.0  # seconds after which a server that should have given up is taken for silent
# What the program at our end would do, and ours does otherwise or not at all.
LEFT_OUT = frozenset(
    {
        "channel_binding", "connect_timeout", "fallback_application_name", "gssdelegation",
        "gssencmode", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
        "load_balance_hosts", "sslcertmode", "sslcompression", "sslsni", "tcp_user_timeout",
    }
)  # fmt: skip
# What asks for more safety than we can give.
DEMANDS = frozenset({("channel_binding", "require"), ("gssencmode", "require")})
REFUSED = frozenset({"require_auth", "requirepeer"})
FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
SYSTEM = "system"  # an sslrootcert: those whom this machine trusts
# What the server is told, unless the address says otherwise. The fence wants each statement to see
# what is committed, and a lock is waited for as long as a statement may take.
SETTINGS = {
    "application_name": "dragoman",
    "statement_timeout": str(int(STATEMENT_SECONDS * 1000)),
    "idle_in_transaction_session_timeout": "60000",
    "lock_timeout": "0",
}
FIXED = {"client_encoding": "utf-8", "default_transaction_isolation": "read committed"}


class Address(msgspec.Struct, frozen=True):
    """One address, as the driver takes it."""

    url: str
    place: str  # without what is secret
    settings: dict[str, str]
    connect: float  # seconds for a connection
    statement: float | None  # seconds for a statement; None: as long as it takes

    def terms(self) -> dict[str, Any]:
        """What the driver is told beside the address."""
        # The server gives up first, and says why; ours is for a server that is silent.
        silent = None if self.statement is None else self.statement + LATER
        return {"command_timeout": silent, "server_settings": self.settings}


def read_address(url: str) -> Address:
    """Take an address apart. Raises BadInput."""
    place = place_of(url)
    parts = _parts(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in given.items():
        if name in REFUSED or (name, value) in DEMANDS:
            raise _wrong(
                f"{name}={value} cannot be kept",
                "Leave it out; sslmode=verify-full makes sure who is at the other end.",
            )
    if given.get("sslrootcert") == SYSTEM:  # anybody can have a certificate that many trust
        if given.setdefault("sslmode", "verify-full") != "verify-full":
            raise _wrong("sslrootcert=system needs sslmode=verify-full")
        given["sslrootcert"] = _trusted()
    for name in FILES:
        path = given.get(name)
        if path and not os.access(path, os.R_OK):
            what = "cannot be read" if os.path.exists(path) else "is not there"
            raise _wrong(f"its {name}, {path}, {what}", "Name a file that this daemon may read.")
    connect = _seconds(given, "connect_timeout", 1) or CONNECT_SECONDS
    statement = STATEMENT_SECONDS
    if "statement_timeout" in given:
        statement = _seconds(given, "statement_timeout", 1000)
    rest = {name: value for name, value in given.items() if name not in LEFT_OUT}
    known = {name: rest.pop(name, value) for name, value in SETTINGS.items()}
    return Address(
        urlunsplit(parts._replace(query=urlencode(rest))),
        place,
        {**known, **FIXED},
        connect,
        statement or None,
    )


def place_of(url: str) -> str:
    """The address without what is secret in it."""
    parts = _parts(url)
    given = dict(parse_qsl(parts.query))
    hosts = []
    for one in parts.netloc.rpartition("@")[2].split(","):  # one of several answers
        each = _parts(f"//{one}")
        port = f":{each.port}" if each.port else ""
        hosts.append(f"{each.hostname or given.get('host', 'localhost')}{port}")
    name = parts.path.lstrip("/") or unquote(parts.username or "")
    return f"{name or os.environ.get('PGDATABASE', '')} at {', '.join(hosts)}"


def _parts(url: str) -> SplitResult:
    """Newer Pythons, and the driver with them, take no IPv6 address behind another host."""
    try:
        parts = urlsplit(url)
        if "," not in parts.netloc:
            _ = parts.port
    except ValueError:  # whose words could show a part of the password
        raise _wrong("a host or a port in it cannot be read") from None
    return parts


def _seconds(given: dict[str, str], name: str, parts: int) -> float:
    """A time in so many parts of a second."""
    text = given.get(name) or "0"
    if not text.isdecimal():
        raise _wrong(f"{name}={text} is no number")
    return int(text) / parts


def _trusted() -> str:
    """The file of those whom this machine trusts."""
    paths = ssl.get_default_verify_paths()
    for path in (paths.cafile, paths.openssl_cafile, "/etc/ssl/certs/ca-certificates.crt"):
        if path and os.path.isfile(path):
            return path
    raise _wrong("sslrootcert=system: this machine has no file of those it trusts")


def _wrong(
    what: str, hint: str = "Write it like postgresql://user:password@host:5432/name."
) -> BadInput:
    return BadInput(f"The address of the database is not valid: {what}.", hint)
