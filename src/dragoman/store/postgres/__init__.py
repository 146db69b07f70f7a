"""Sessions in a PostgreSQL database that several machines may share."""

from .store import PostgresStore as PostgresStore


def is_address(text: str) -> bool:
    """Whether it names a database server, and no file."""
    return text.startswith(("postgresql://", "postgres://"))
