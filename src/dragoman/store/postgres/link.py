"""Connections to the database: how they are made, mended and explained."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from dragoman.engine.faults import BadInput, Fault, StoreFailed

from ..rules import closed
from .address import STATEMENT_SECONDS, read_address

if TYPE_CHECKING:
    from asyncpg import Connection
    from asyncpg.pool import Pool

READERS = 4  # connections for reading, made when they are needed
IDLE_SECONDS = 300.0


class PostgresLink:
    """One address. Reading goes over a small pool, each other use has a connection of its own."""

    def __init__(self, url: str, *, readers: int = READERS) -> None:
        self.address = read_address(url)
        self.place = self.address.place
        self._readers = readers
        self._pool: Pool[Any] | None = None
        self._opening = asyncio.Lock()
        self.closed = False

    async def connect(self, *, timeout: float | None = None) -> "Connection[Any]":
        """A connection of its own. Raises what the driver raises."""
        asyncpg, address = driver(), self.address
        made: Connection[Any] = await asyncpg.connect(
            address.url, timeout=timeout or address.connect, **address.terms()
        )
        return made

    @asynccontextmanager
    async def reading(self) -> "AsyncIterator[Connection[Any]]":
        """A connection for reading committed state. Raises StoreFailed."""
        if self.closed:
            raise closed()
        address = self.address
        try:
            if self._pool is None:
                async with self._opening:
                    if self._pool is None:
                        asyncpg = driver()
                        self._pool = await asyncpg.create_pool(
                            address.url,
                            min_size=0,
                            max_size=self._readers,
                            timeout=address.connect,
                            max_inactive_connection_lifetime=IDLE_SECONDS,
                            **address.terms(),
                        )
            assert self._pool is not None
            async with self._pool.acquire(timeout=address.connect + STATEMENT_SECONDS) as one:
                yield one
        except Fault:
            raise
        except Exception as error:
            raise self.explain(error) from error

    async def close(self) -> None:
        self.closed = True
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), self.address.connect)
            except (TimeoutError, OSError, driver().PostgresError):
                self._pool.terminate()

    def explain(self, error: BaseException) -> Fault:
        """What went wrong, in our words."""
        if isinstance(error, Fault):
            return error
        asyncpg = driver()
        said = (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
        if isinstance(error, TimeoutError):
            said = "it did not answer in time"
        if isinstance(error, asyncpg.InternalClientError | asyncpg.InterfaceError) and is_lost(
            error
        ):
            said = "the connection was closed"
        if isinstance(error, asyncpg.DataError | OverflowError | UnicodeEncodeError):
            return BadInput(f"This cannot be stored: {said}.")
        if isinstance(error, ssl.SSLCertVerificationError):
            return StoreFailed(
                f"The certificate of the database {self.place} is not trusted:"
                f" {error.verify_message or said}.",
                "Name a file of those who vouch for it in the address: sslrootcert=FILE.",
                stalled=True,
            )
        if isinstance(error, asyncpg.ClientConfigurationError):
            return BadInput(
                f"The address of the database {self.place} cannot be used: {said}.",
                "For TLS: sslmode=require, or verify-full with sslrootcert=FILE, or"
                " sslrootcert=system for those whom this machine trusts.",
            )
        if is_pooled(error):
            return StoreFailed(
                f"Before the database {self.place} is a pooler that keeps no sessions: {said}.",
                "Connect past it, or let it pool by session and take the startup parameters that it"
                " names (PgBouncer: pool_mode, ignore_startup_parameters).",
            )
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            return StoreFailed(
                f"The database {self.place} can only be read: {said}.",
                "It is tried again until it can be written. Of several hosts one that can be is"
                " found with target_session_attrs=read-write in the address.",
                stalled=True,
            )
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            return StoreFailed(
                f"The database {self.place} is not there: {said}.",
                "Make it: createdb --encoding=UTF8 NAME",
            )
        if isinstance(error, asyncpg.DiskFullError):
            return StoreFailed(
                f"The disk of the database {self.place} is full: {said}.", "Make room on it."
            )
        if isinstance(error, asyncpg.QueryCanceledError):
            return StoreFailed(
                f"The database {self.place} did not do it in time: {said}.",
                "Somebody may hold a lock: look at pg_stat_activity.",
            )
        if isinstance(error, asyncpg.UndefinedObjectError | asyncpg.CantChangeRuntimeParamError):
            if "parameter" in said:
                return BadInput(
                    f"The database {self.place} refuses the address: {said}.",
                    "Take it out of the address.",
                )
        if is_lost(error):
            return StoreFailed(
                f"The database {self.place} cannot be reached: {said}.",
                "Start it, or correct its address; a running daemon tries again until it is back.",
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


def is_pooled(error: BaseException) -> bool:
    """Whether something between us and the server mixes up who uses which connection."""
    asyncpg = driver()
    if isinstance(error, asyncpg.ProtocolViolationError):
        return "startup parameter" in str(error)
    return isinstance(
        error, asyncpg.DuplicatePreparedStatementError | asyncpg.InvalidSQLStatementNameError
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
        from dragoman.observe.extras import adding

        raise BadInput(
            "PostgreSQL needs a package that is not installed.",
            f"Install it: {adding('postgres')}",
        ) from None
    return asyncpg


def clean(text: str) -> str:
    """Text as the database takes it: it has no NUL."""
    return text.replace("\0", "\ufffd") if "\0" in text else text
