"""Connections to the database: how they are made, mended and explained."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from dragoman.engine.faults import BadInput, Fault, StoreFailed

from ..rules import closed

if TYPE_CHECKING:
    from asyncpg import Connection
    from asyncpg.pool import Pool

CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 30.0
READERS = 4  # connections for reading, made when they are needed
IDLE_SECONDS = 300.0


class PostgresLink:
    """One address. Reading goes over a small pool, each other use has a connection of its own."""

    def __init__(self, url: str, *, readers: int = READERS) -> None:
        self.url = url
        self.place = place_of(url)
        self._readers = readers
        self._pool: Pool[Any] | None = None
        self._opening = asyncio.Lock()
        self.closed = False

    async def connect(self, *, timeout: float = CONNECT_SECONDS) -> "Connection[Any]":
        """A connection of its own. Raises what the driver raises."""
        asyncpg = driver()
        made: Connection[Any] = await asyncpg.connect(self.url, timeout=timeout, **self._terms())
        return made

    @asynccontextmanager
    async def reading(self) -> "AsyncIterator[Connection[Any]]":
        """A connection for reading committed state. Raises StoreFailed."""
        if self.closed:
            raise closed()
        try:
            if self._pool is None:
                async with self._opening:
                    if self._pool is None:
                        asyncpg = driver()
                        self._pool = await asyncpg.create_pool(
                            self.url,
                            min_size=0,
                            max_size=self._readers,
                            timeout=CONNECT_SECONDS,
                            max_inactive_connection_lifetime=IDLE_SECONDS,
                            **self._terms(),
                        )
            assert self._pool is not None
            async with self._pool.acquire(timeout=CONNECT_SECONDS + STATEMENT_SECONDS) as one:
                yield one
        except Fault:
            raise
        except Exception as error:
            raise self.explain(error) from error

    async def close(self) -> None:
        self.closed = True
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), CONNECT_SECONDS)
            except (TimeoutError, OSError, driver().PostgresError):
                self._pool.terminate()

    def _terms(self) -> dict[str, Any]:
        return {
            # The server gives up first, and says why; ours is for a server that is silent.
            "command_timeout": STATEMENT_SECONDS + 5,
            "server_settings": {
                "application_name": "dragoman",
                "statement_timeout": str(int(STATEMENT_SECONDS * 1000)),
                "idle_in_transaction_session_timeout": "60000",
                "client_encoding": "utf-8",
            },
        }

    def explain(self, error: BaseException) -> Fault:
        """What went wrong, in our words."""
        if isinstance(error, Fault):
            return error
        asyncpg = driver()
        said = (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
        if isinstance(error, TimeoutError):
            said = "it did not answer in time"
        if isinstance(error, asyncpg.DataError | OverflowError | UnicodeEncodeError):
            return BadInput(f"This cannot be stored: {said}.")
        if isinstance(error, ssl.SSLCertVerificationError):
            return StoreFailed(
                f"The certificate of the database {self.place} is not trusted:"
                f" {error.verify_message or said}.",
                "Name a file of those who vouch for it in the address: sslrootcert=FILE.",
                stalled=True,
            )
        if is_lost(error):
            return StoreFailed(
                f"The database {self.place} cannot be reached: {said}.",
                "It is tried again until it is back.",
                stalled=True,
            )
        if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
            return StoreFailed(
                f"The database {self.place} does not let us in: {said}.",
                "Look at user and password in the address.",
            )
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            return StoreFailed(
                f"The database {self.place} does not allow this: {said}.",
                "Give the role the rights that docs/guides/fleet.md names.",
            )
        return StoreFailed(f"The database {self.place} failed: {said}.")


def is_lost(error: BaseException) -> bool:
    """Whether the way to the database, or the server, is gone: trying again may help."""
    asyncpg = driver()
    if isinstance(error, asyncpg.InterfaceError):
        return "clos" in str(error)  # the connection is, or is being
    return isinstance(
        error,
        OSError  # TimeoutError is one
        # A server that ends says so before it hangs up; in between the driver takes nothing more.
        | asyncpg.InternalClientError
        | EOFError
        | asyncpg.PostgresConnectionError
        | asyncpg.CannotConnectNowError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.TooManyConnectionsError
        | asyncpg.IdleSessionTimeoutError
        | asyncpg.ReadOnlySQLTransactionError,
    )


def is_gone(error: BaseException) -> bool:
    """Whether there is no server, or one that begins or ends: no connection to it can last."""
    return isinstance(
        error, ConnectionRefusedError | FileNotFoundError | driver().CannotConnectNowError
    )


def driver() -> Any:
    """The driver, which only those need who use this store. Raises BadInput."""
    try:
        import asyncpg
    except ImportError:
        raise BadInput(
            "PostgreSQL needs a package that is not installed.",
            "Install it: pip install 'dragoman[postgres]'",
        ) from None
    return asyncpg


def place_of(url: str) -> str:
    """The address without what is secret in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise BadInput(
            f"The address of the database is not valid: {error}.",
            "Write it like postgresql://user:password@host:5432/name.",
        ) from None
    name = parts.path.lstrip("/") or parts.username or os.environ.get("PGDATABASE", "")
    return f"{name} at {host}{port}"


def clean(text: str) -> str:
    """Text as the database takes it: it has no NUL."""
    return text.replace("\0", "\ufffd") if "\0" in text else text
